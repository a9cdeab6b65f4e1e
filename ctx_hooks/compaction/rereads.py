"""Calls that an agent repeats because compaction has removed their earlier results from its view.

In doubt a call is no re-read: the count may miss a cost of compaction, and never invents one.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import PurePath

from ctx_hooks.compaction.cut_points import Thresholds
from ctx_hooks.compaction.history import History, call_digest, request_points
from ctx_hooks.compaction.prefix_stable import shown_results
from ctx_hooks.compaction.summary.actions import Action, action_of, acts
from ctx_hooks.compaction.summary.model_written import Summaries
from ctx_hooks.conversation.model import ToolCall, ToolResult

MOST_CALLS = 8
"""Calls of one answer that are searched: agents make a few at once, and each search takes the whole history."""
READING = ("read", "ran")
"""The kinds of actions that an agent may repeat for their result."""


def rereads(history: History, thresholds: Thresholds, summaries: Summaries) -> Mapping[str, int]:
    """Return the calls of the newest answer whose earlier result the previous request lacked, by the tool's name.

    Each counts at the first request that has its own result. The errors are those of `prefix_stable.compacted`.
    """
    index, points = history.index, request_points(history.index)
    seen = points[-2] if len(points) > 1 else 0
    new = [(i, digest) for i in range(seen, len(index)) for digest in index[i].calls]
    before = {digest: i for i in range(seen) for digest in index[i].calls} if new else {}
    repeated = [
        (first, i)
        for i, digest in [(i, digest) for i, digest in new if digest in before][:MOST_CALLS]
        if _call_with_result(history, i, digest, len(index)) is not None
        and (first := _call_with_result(history, before[digest], digest, seen)) is not None
    ]
    if not repeated:
        return {}
    is_shown = shown_results(replace(history, index=index[:seen]), thresholds, summaries)
    found = Counter[str]()
    for (call, place, result), i in repeated:
        is_reading = not result.is_error and action_of(call, None).kind in READING
        if is_reading and not is_shown(place, result) and not _may_have_changed(history, call, range(place, i)):
            found[call.name] += 1
    return found


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


def _may_have_changed(history: History, call: ToolCall, places: range) -> bool:
    """Whether a call of the messages at `places` may have changed the result of `call`.

    A call that names no file may depend on any change. Only file names are compared, not folders.
    """
    names = _file_names(action_of(call, None))
    others = (other for i in places if history.index[i].calls for other in history.messages.message(i).calls)
    if not names:
        return any(acts(other) or action_of(other, None).kind == "changed" for other in others)
    named = (action_of(other, None) for other in others if any(name in other.arguments for name in names))
    return any(action.kind == "changed" and names & _file_names(action) for action in named)


def _file_names(action: Action) -> set[str]:
    return {PurePath(path).name for path in action.files}
