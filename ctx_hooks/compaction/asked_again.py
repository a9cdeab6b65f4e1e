"""Calls that an agent repeats, and whether it must: compaction has removed their earlier results from its view.

So a gateway sees what compaction costs an agent. The count is a pure function of the history, which gives the previous
request's compaction again. In doubt a call is no re-read: the count may miss a cost, and never invents one.

- A file that changed since is read for its own sake. Only file names are compared, not folders.
- A call that names no file may depend on any later change: by an edit, or by a tool whose name says that it acts.
- The search for changes stops after MOST_READ_CHARS.
- A repeated call that changes a file or states a plan is no reading.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import PurePath

from ctx_hooks.compaction.history import History
from ctx_hooks.compaction.message_index import call_digest, request_points
from ctx_hooks.compaction.prefix_stable import shown_results
from ctx_hooks.compaction.summary.actions import Action, action_of, acts
from ctx_hooks.compaction.summary.model_written import Summaries
from ctx_hooks.compaction.thresholds import Thresholds
from ctx_hooks.conversation.model import ToolCall, ToolResult

MOST_CALLS = 32
"""Calls of one answer that are searched: agents make a few at once, and each search takes the whole history."""
MOST_READ_CHARS = 200_000
"""Most characters read of the arguments of calls that may change something: the request waits a quarter of a second."""
READING = ("read", "ran")
"""The kinds of actions that an agent may repeat for their result."""


@dataclass(frozen=True, slots=True)
class AskedAgain:
    """The calls of the newest answer that had an earlier call with a result, counted by the tool's name.

    Attributes:
        rereads: the earlier result was removed or shortened in the previous request.
        repeats: the model still saw it whole, or something changed since: the agent has its own reasons.
    """

    rereads: Mapping[str, int] = field(default_factory=dict)
    repeats: Mapping[str, int] = field(default_factory=dict)


NOTHING = AskedAgain()


def asked_again(history: History, thresholds: Thresholds, summaries: Summaries) -> AskedAgain:
    """Return the repeated calls of the newest answer; each counts at the first request that has its result.

    Raises:
        MalformedConversationError: a message that must be read is malformed.
        CompressionTimeoutError: the deadline of the budget's counter is over.
    """
    index, points = history.index, request_points(history.index)
    seen = points[-2] if len(points) > 1 else 0
    new = [(i, digest) for i in range(seen, len(index)) for digest in index[i].calls]
    wanted = {digest for _, digest in new}
    before = {digest: i for i in range(seen) for digest in index[i].calls if digest in wanted} if wanted else {}
    again = islice(((i, digest) for i, digest in new if digest in before), MOST_CALLS)
    made = {(i, digest): _call_with_result(history, i, digest, len(index)) for i, digest in again}
    if not any(made.values()):
        return NOTHING
    is_shown = shown_results(replace(history, index=index[:seen]), thresholds, summaries)
    changes = _Changes(history)
    rereads, repeats = Counter[str](), Counter[str]()
    for (i, digest), answered in made.items():
        first = _call_with_result(history, before[digest], digest, seen)
        if answered is None or first is None or first[2].is_error:
            continue
        call, place, result = first
        if action_of(call, None).kind in READING:
            has_own_reasons = is_shown(place, result) or changes.of(call, range(place, i))
            (repeats if has_own_reasons else rereads)[call.name] += 1
    return AskedAgain(rereads, repeats)


def _call_with_result(history: History, start: int, digest: bytes, end: int) -> tuple[ToolCall, int, ToolResult] | None:
    """Return the call with the digest at `start`, the place of its result, and the result; None if the user speaks first."""
    call = next(c for c in history.messages.message(start).calls if call_digest(c) == digest)
    for i in range(start, end):
        for result in history.messages.message(i).results:
            if result.call_id == call.id:
                return call, i, result
        if history.index[i].is_request:
            break
    return None


class _Changes:
    """Changes that the calls of a history may have made. Each call is read once, up to MOST_READ_CHARS in all."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._read: dict[tuple[int, int], Action | None] = {}
        self._left_chars = MOST_READ_CHARS

    def of(self, call: ToolCall, places: range) -> bool:
        """Whether a call of the messages at `places` may have changed the result of `call`; true if there are too many."""
        names = _file_names(action_of(call, None))
        for i in places:
            for n, other in enumerate(self._history.messages.message(i).calls if self._history.index[i].calls else ()):
                if not names and acts(other):
                    return True
                if names and not any(name in other.arguments or not name.isascii() for name in names):
                    continue  # it names none of these files, in any JSON escape
                if (i, n) not in self._read:
                    self._left_chars -= len(other.arguments)
                    self._read[i, n] = action_of(other, None) if self._left_chars >= 0 else None
                action = self._read[i, n]
                if action is None or (action.kind == "changed" and (not names or names & _file_names(action))):
                    return True
        return False


def _file_names(action: Action) -> set[str]:
    return {PurePath(path).name for path in action.files}
