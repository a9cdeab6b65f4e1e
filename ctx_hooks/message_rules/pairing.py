"""Every tool call has its result, and every result has its call."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ctx_hooks.conversation.model import Message, Part, ToolCall, ToolResult
from ctx_hooks.formats import WIRE_FORMATS
from ctx_hooks.message_rules.pairing_layouts import ARRANGED
from ctx_hooks.message_rules.rule import Repair

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ctx_hooks.conversation.model import Conversation

CALLS_ANSWERED = "calls_answered"


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


def calls_answered(conversation: Conversation, *, continues: bool = False) -> tuple[Conversation, tuple[Repair, ...]]:
    """Move misplaced results behind their call, drop orphans and doubles, add a result for a call without one.

    Where a format wants the results, and how its providers say so, is its layout. Anthropic: "each tool_use must have a
    single result". Ids may repeat across turns, as in logs of agents: see `pairs_of`.
    """
    pairs = pairs_of(conversation.messages)
    if continues and WIRE_FORMATS[conversation.format].has_items:
        pairs.orphans = []
    arranged = conversation.with_messages(tuple(ARRANGED[conversation.format](conversation, pairs)))
    return arranged, () if arranged is conversation else tuple(_repairs(conversation, arranged, pairs))


def _repairs(before: Conversation, after: Conversation, pairs: Pairs) -> Iterator[Repair]:
    """Yield what was missing and what was too much; without either, what stood in the wrong place."""
    messages = before.messages
    for i, k in pairs.unanswered:
        call = messages[i].parts[k]
        yield Repair(CALLS_ANSWERED, i, "added", f"call {getattr(call, 'id', '')!r} has no result")
    for i, k in pairs.orphans:
        yield Repair(CALLS_ANSWERED, i, "dropped", f"result {_call_id(messages[i].parts[k])!r} has no call")
    for i, k in pairs.doubles:
        yield Repair(CALLS_ANSWERED, i, "dropped", f"second result for call {_call_id(messages[i].parts[k])!r}")
    if not (pairs.unanswered or pairs.orphans or pairs.doubles):
        differ = (i for i, pair in enumerate(zip(messages, after.messages, strict=False)) if pair[0] is not pair[1])
        first = next(differ, len(after.messages))
        yield Repair(CALLS_ANSWERED, first, "moved", "results are not behind their calls")


def _call_id(part: Part) -> str:
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
    if pairs.orphans:
        _claim_late_calls(pairs, late, messages)
    pairs.unanswered = sorted((*pairs.unanswered, *(call for calls in late.values() for call in calls)))
    return pairs


def _claim_late_calls(pairs: Pairs, late: Mapping[str, deque[tuple[int, int]]], messages: tuple[Message, ...]) -> None:
    """Pair results that came before their call, misplaced ones and no orphans; `late` has the unanswered calls by id."""
    orphans, pairs.orphans = pairs.orphans, []
    for i, k in orphans:
        calls_behind = late.get(_call_id(messages[i].parts[k]), deque())
        while calls_behind and calls_behind[0] < (i, k):
            pairs.unanswered.append(calls_behind.popleft())
        if calls_behind:
            pairs.answer[calls_behind.popleft()] = (i, k)
        else:
            pairs.orphans.append((i, k))
