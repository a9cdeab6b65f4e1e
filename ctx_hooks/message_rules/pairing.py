"""Every tool call has its result, and every result has its call, in the place that each format requires."""

from bisect import bisect
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from heapq import heappop, heappush
from typing import TypeAlias

from ctx_hooks.conversation import placeholders
from ctx_hooks.conversation.conversation import Conversation
from ctx_hooks.conversation.model import Message, Part, ToolCall, ToolResult
from ctx_hooks.formats import ANTHROPIC, CHAT, GEMINI, RESPONSES, WIRE_FORMATS
from ctx_hooks.formats.openai_responses import ANSWERABLE
from ctx_hooks.message_rules.rule import Repair, Repaired
from ctx_hooks.policy.settings import Language

Place: TypeAlias = tuple[int, int]
"""Of a call or a result: (message index, part index)."""


@dataclass(slots=True)
class Pairs:
    """Calls and results of a conversation; `doubles` are further results of an answered call."""

    answer: dict[Place, Place] = field(default_factory=dict)
    unanswered: list[Place] = field(default_factory=list)
    orphans: list[Place] = field(default_factory=list)
    doubles: list[Place] = field(default_factory=list)


def calls_answered(conversation: Conversation, *, continues: bool, language: Language) -> Repaired:
    """Move misplaced results behind their call, drop orphans and doubles, add a result for a call without one."""
    pairs, wire = pairs_of(conversation.messages), WIRE_FORMATS[conversation.format]
    if wire.has_items:
        # The provider may have the calls; and only some calls can be answered by a text.
        if continues or conversation.references:
            pairs.orphans = []
        pairs.unanswered = [p for p in pairs.unanswered if conversation.messages[p[0]].raw.get("type") in ANSWERABLE]

    def added(call: Part) -> Message:
        return wire.tool_result(call, placeholders.MISSING_RESULT[language], is_error=True)

    arranged = conversation.with_messages(tuple(ARRANGED[wire.name](conversation.messages, pairs, added)))
    broken = {
        "a call without a result": pairs.unanswered,
        "a result without a call": pairs.orphans,
        "a second result for a call": pairs.doubles,  # Anthropic: "each tool_use must have a single result"
    }
    repairs = [Repair(calls_answered.__name__, i, what) for what, places in broken.items() for i, _ in places]
    if arranged is conversation:
        return conversation, ()
    return arranged, tuple(repairs) or (Repair(calls_answered.__name__, 0, "results that are not behind their calls"),)


def pairs_of(messages: tuple[Message, ...]) -> Pairs:
    """Pair each result with the nearest open call of its id before it, else with one behind it: then it is misplaced."""
    pairs = Pairs()
    waiting: defaultdict[str, list[Place]] = defaultdict(list)  # heaps of open calls by id, the nearest message first
    answered: set[str] = set()
    early: list[tuple[str, Place]] = []
    for i, message in enumerate(messages):
        for k, part in enumerate(message.parts):
            if isinstance(part, ToolCall):
                heappush(waiting[part.id], (-i, k))
            elif isinstance(part, ToolResult) and waiting[part.call_id]:
                before, place = heappop(waiting[part.call_id])
                pairs.answer[-before, place] = (i, k)
                answered.add(part.call_id)
            elif isinstance(part, ToolResult):
                if part.call_id in answered:
                    pairs.doubles.append((i, k))
                else:
                    early.append((part.call_id, (i, k)))
    late = {call_id: sorted((-before, k) for before, k in calls) for call_id, calls in waiting.items()}
    for call_id, result in early:
        behind = bisect(late.get(call_id, ()), result)
        if behind < len(late.get(call_id, ())):
            pairs.answer[late[call_id].pop(behind)] = result
        else:
            pairs.orphans.append(result)
    pairs.unanswered = sorted(call for calls in late.values() for call in calls)
    return pairs


Added: TypeAlias = Callable[[Part], Message]
Arrange: TypeAlias = Callable[[Sequence[Message], Pairs, Added], Iterator[Message]]
# The layouts yield the messages with one result for each call in the format's place, and no other results. A message whose
# results are in their place is yielded unchanged, in any order of results.


def _wanted(messages: Sequence[Message], pairs: Pairs, index: int, added: Added) -> Iterator[ToolResult]:
    """Yield the results of a message's calls, in their order; an added result becomes a part of the next user message."""
    for k, call in enumerate(messages[index].parts):
        if isinstance(call, ToolCall):
            answer = pairs.answer.get((index, k))
            found = messages[answer[0]].parts[answer[1]] if answer else None
            yield found if isinstance(found, ToolResult) else replace(added(call).results[0], is_missing=True)


def _results_message(results: list[ToolResult]) -> Message:
    return Message("user", tuple(results), raw={"role": "user"}, edited=True)


# OpenAI chat: "An assistant message with 'tool_calls' must be followed by tool messages responding to each
# 'tool_call_id'." and "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."
def _chat(messages: Sequence[Message], pairs: Pairs, added: Added) -> Iterator[Message]:
    for i, message in enumerate(messages):
        if message.results:
            continue
        yield message
        calls = [k for k, part in enumerate(message.parts) if isinstance(part, ToolCall)]
        yield from (messages[place] for place, _ in sorted(pairs.answer[i, k] for k in calls if (i, k) in pairs.answer))
        yield from (added(message.parts[k]) for k in calls if (i, k) not in pairs.answer)


# Anthropic: "`tool_use` ids were found without `tool_result` blocks immediately after", "unexpected `tool_use_id` found in
# `tool_result` blocks", "tool_result blocks must come before any other content". The server merges neighbours of one role,
# and Claude Code puts system messages between them.
# Google: "Please ensure that function response turn comes immediately after a function call turn. And the number of
# function response parts should be equal to number of function call parts of the function call turn." A user's words before
# the responses become a separate turn behind them: Gemini 3 ignores words beside responses.
def _in_next_turn(messages: Sequence[Message], pairs: Pairs, added: Added, *, joins_words: bool) -> Iterator[Message]:
    waiting: list[ToolResult] = []
    for i, message in enumerate(messages):
        rest = tuple(p for p in message.parts if not isinstance(p, ToolResult))
        if waiting and (message.role == "user" if joins_words else message.results):
            in_place = not joins_words or _are_same(message.parts[: len(waiting)], waiting)
            yield message if in_place and _are_same(message.results, waiting) else message.with_parts((*waiting, *rest))
            waiting = []
        else:
            if waiting and not (joins_words and message.role in {"assistant", "system"}):
                yield _results_message(waiting)
                waiting = []
            if rest or (joins_words and not message.parts):
                yield message.with_parts(rest)
        waiting += _wanted(messages, pairs, i, added)
    if waiting:
        yield _results_message(waiting)


# Responses: "No tool output found for function call", "No tool call found for function call output with call_id". Items of
# other kinds may come between them.
def _responses(messages: Sequence[Message], pairs: Pairs, added: Added) -> Iterator[Message]:
    gone = {i for i, _ in (*pairs.doubles, *pairs.orphans)}
    early = {result[0] for call, result in pairs.answer.items() if result[0] < call[0]}
    missing = {i for i, _ in pairs.unanswered}
    waiting: list[Message] = []
    for i, message in enumerate(messages):
        if not message.calls:
            # A run of parallel calls stays together; its missing results follow it.
            yield from waiting
            waiting = []
        if i not in gone and i not in early:
            yield message
        if i in missing:
            waiting.append(added(message.calls[0]))
        elif (i, 0) in pairs.answer and pairs.answer[i, 0][0] in early:
            waiting.append(messages[pairs.answer[i, 0][0]])
    yield from waiting


def _are_same(found: Sequence[Part], wanted: list[ToolResult]) -> bool:
    """Whether these are the same objects, in any order."""
    return sorted(map(id, found)) == sorted(map(id, wanted))


ARRANGED: Mapping[str, Arrange] = {
    CHAT: _chat,
    ANTHROPIC: partial(_in_next_turn, joins_words=True),
    RESPONSES: _responses,
    GEMINI: partial(_in_next_turn, joins_words=False),
}
