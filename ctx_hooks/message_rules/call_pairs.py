"""Which result answers which call. Formats differ in where results have to stand, not in this."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ctx_hooks.conversation.model import Message, Part, ToolCall, ToolResult

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(slots=True)
class Pairs:
    """Calls and results of a conversation, each as (message index, part index).

    `answer` has the result of each answered call. `unanswered` are calls without a result, `orphans` results without a
    call, `doubles` further results of a call that has one.
    """

    answer: dict[tuple[int, int], tuple[int, int]]
    unanswered: list[tuple[int, int]]
    orphans: list[tuple[int, int]]
    doubles: list[tuple[int, int]]


def call_id_of(part: Part) -> str:
    """Return the id of the call that a result answers, "" for any other part."""
    return part.call_id if isinstance(part, ToolResult) else ""


def pairs_of(messages: tuple[Message, ...]) -> Pairs:
    """Pair calls and results. Ids may repeat: a result belongs to the nearest unanswered call of its id before it."""
    pairs = Pairs({}, [], [], [])
    # By id, for each message with unanswered calls, their part indices. Two calls of one message are answered in order, of
    # two messages the nearer one first.
    waiting: dict[str, list[tuple[int, deque[int]]]] = {}
    answered: set[str] = set()
    for i, message in enumerate(messages):
        for k, part in enumerate(message.parts):
            if isinstance(part, ToolCall):
                calls = waiting.setdefault(part.id, [])
                if not calls or calls[-1][0] != i:
                    calls.append((i, deque()))
                calls[-1][1].append(k)
            elif isinstance(part, ToolResult):
                calls = waiting.get(part.call_id, [])
                if calls:
                    nearest, places = calls[-1]
                    pairs.answer[nearest, places.popleft()] = (i, k)
                    answered.add(part.call_id)
                    if not places:
                        calls.pop()
                else:
                    (pairs.doubles if part.call_id in answered else pairs.orphans).append((i, k))
    late = {call_id: deque((i, k) for i, places in calls for k in places) for call_id, calls in waiting.items() if calls}
    return _with_late_calls(pairs, late, messages)


def _with_late_calls(pairs: Pairs, late: Mapping[str, deque[tuple[int, int]]], messages: tuple[Message, ...]) -> Pairs:
    """Return the pairs with results that came before their call; `late` are the unanswered calls of each id, in order."""
    orphans, pairs.orphans = pairs.orphans, []
    for i, k in orphans:
        # A result that came before its call is misplaced, not an orphan.
        calls_behind = late.get(call_id_of(messages[i].parts[k]), deque())
        while calls_behind and calls_behind[0] < (i, k):
            pairs.unanswered.append(calls_behind.popleft())
        if calls_behind:
            pairs.answer[calls_behind.popleft()] = (i, k)
        else:
            pairs.orphans.append((i, k))
    pairs.unanswered = sorted((*pairs.unanswered, *(call for calls in late.values() for call in calls)))
    return pairs
