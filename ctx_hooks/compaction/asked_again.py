"""Calls that an agent makes once more, and whether it has to: what they returned before is no longer shown to it.

So a gateway sees what compaction costs an agent, as a pure function of the history: what the request before showed is found
again from its compaction. In doubt a call is no re-read, which hides a cost and invents none:

- a file that was changed since is read for its own sake, whatever its folder: only the names of files are compared;
- what names no file may depend on anything that was changed since, by an edit or by a tool whose name says that it acts;
- the changes behind so many calls that to read them takes long are not looked for;
- what changes a file or states a plan, done twice, is no reading at all.
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
"""Of one answer that are looked for: agents make a few at once, and each is looked for in the whole history."""
MOST_READ_CHARS = 200_000
"""Of the arguments of calls that may have changed something: a quarter of a second, which the request waits for."""
READING = ("read", "ran")
"""The kinds of actions that may be repeated for what they return."""


@dataclass(frozen=True, slots=True)
class AskedAgain:
    """The calls of the newest answer that had been made before and had returned something, by the tool's name.

    Attributes:
        rereads: what the call had returned was removed or shortened in what the model saw.
        repeats: it still stood there whole, or something was changed since: the agent has its own reasons.
    """

    rereads: Mapping[str, int] = field(default_factory=dict)
    repeats: Mapping[str, int] = field(default_factory=dict)


NOTHING = AskedAgain()


def asked_again(history: History, thresholds: Thresholds, summaries: Summaries) -> AskedAgain:
    """Return the calls of the newest answer that had been made before, each at the first request that has its result.

    Raises:
        MalformedConversationError: a message that has to be read is none.
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
    """Return the call of that digest at `start`, and the place of its result and this; None if the user speaks before it."""
    call = next(c for c in history.messages.message(start).calls if call_digest(c) == digest)
    for i in range(start + 1, end):
        for result in history.messages.message(i).results:
            if result.call_id == call.id:
                return call, i, result
        if history.index[i].is_request:
            break
    return None


class _Changes:
    """What the calls of a history may have changed: each is read once, and only as many as are read quickly."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._read: dict[tuple[int, int], Action | None] = {}
        self._left_chars = MOST_READ_CHARS

    def of(self, call: ToolCall, places: range) -> bool:
        """Whether a call of the messages at `places` may have changed what a call returns; with too many it may."""
        names = _file_names(action_of(call, None))
        for i in places:
            for n, other in enumerate(self._history.messages.message(i).calls if self._history.index[i].calls else ()):
                if not names and acts(other):
                    return True
                if names and not any(name in other.arguments or not name.isascii() for name in names):
                    continue  # it names none of them, in whatever form JSON has it
                if (i, n) not in self._read:
                    self._left_chars -= len(other.arguments)
                    self._read[i, n] = action_of(other, None) if self._left_chars >= 0 else None
                action = self._read[i, n]
                if action is None or (action.kind == "changed" and (not names or names & _file_names(action))):
                    return True
        return False


def _file_names(action: Action) -> set[str]:
    return {PurePath(path).name for path in action.files}
