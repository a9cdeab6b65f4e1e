"""Every call is answered, and every answer has its call."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from dataclasses import dataclass
from itertools import accumulate, takewhile
from typing import TYPE_CHECKING

from ctx_hooks.conversation.model import Conversation, Message, Part, ToolCall, ToolResult
from ctx_hooks.formats import CODECS
from ctx_hooks.message_rules.rule import Repair, Violation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from ctx_hooks.conversation.model import Format

MISSING_RESULT = "[No result was recorded for this call.]"
"""The text of the result that is added for a call that has none."""


@dataclass(slots=True)
class _Pairs:
    """Calls and results found together, by (message index, part index)."""

    answer: dict[tuple[int, int], tuple[int, int]]
    unanswered: list[tuple[int, int]]
    orphans: list[tuple[int, int]]
    doubles: list[tuple[int, int]]


class CallsAnswered:
    """A call's results stand where the format wants them, one per call.

    OpenAI chat: "An assistant message with 'tool_calls' must be followed by tool messages responding to each
    'tool_call_id'." and "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."
    Anthropic: "`tool_use` ids were found without `tool_result` blocks immediately after", "unexpected `tool_use_id` found
    in `tool_result` blocks", "each tool_use must have a single result".
    Responses: "No tool output found for function call", "No tool call found for function call output with call_id".
    Google: "Please ensure that function response turn comes immediately after a function call turn. And the number of
    function response parts should be equal to number of function call parts of the function call turn."

    Ids may repeat across turns (agent logs do that): a result belongs to the nearest unanswered call before it.
    """

    name = "calls_answered"

    def violations(self, conversation: Conversation, *, continues: bool) -> tuple[Violation, ...]:
        """Return calls without result, results without call, second results, and results in the wrong place."""
        return tuple(Violation(self.name, r.message_index, r.what) for r in self._repairs(conversation, continues))

    def repair(self, conversation: Conversation, *, continues: bool) -> tuple[Conversation, tuple[Repair, ...]]:
        """Move misplaced results behind their call, drop orphans and doubles, add a result for a call without one."""
        repairs = tuple(self._repairs(conversation, continues))
        if not repairs:
            return conversation, ()
        pairs = _pair(conversation.messages)
        layout = LAYOUTS[conversation.format]
        return conversation.with_messages(tuple(layout(conversation, pairs, continues))), repairs

    def may_cut(self, conversation: Conversation, index: int) -> bool:
        """Return whether `index` starts an exchange."""
        starts = conversation.exchanges
        at = bisect_left(starts, index, key=lambda exchange: exchange.start)
        return at < len(starts) and starts[at].start == index

    def _repairs(self, conversation: Conversation, continues: bool) -> Iterator[Repair]:  # noqa: FBT001 - as given
        messages = conversation.messages
        pairs = _pair(messages)
        for i, k in pairs.unanswered:
            call = messages[i].parts[k]
            yield Repair(self.name, i, "added", f"call {getattr(call, 'id', '')!r} has no result")
        for i, k in () if continues else pairs.orphans:
            yield Repair(self.name, i, "dropped", f"result {_call_id(messages[i].parts[k])!r} has no call")
        for i, k in pairs.doubles:
            yield Repair(self.name, i, "dropped", f"second result for call {_call_id(messages[i].parts[k])!r}")
        in_place = _in_place(conversation)
        for call_at, (i, k) in pairs.answer.items():
            if not in_place(call_at, (i, k)):
                yield Repair(self.name, i, "moved", f"result {_call_id(messages[i].parts[k])!r} is not behind its call")


def _call_id(part: Part) -> str:
    return part.call_id if isinstance(part, ToolResult) else ""


def _pair(messages: tuple[Message, ...]) -> _Pairs:
    pairs = _Pairs({}, [], [], [])
    # By id, for each message with calls that wait, their part indices. Two calls of one message are answered in order, of
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
    late = {call_id: deque((i, k) for i, places in calls for k in places) for call_id, calls in waiting.items()}
    return _with_late_calls(pairs, late, messages)


def _with_late_calls(pairs: _Pairs, late: Mapping[str, deque[tuple[int, int]]], messages: tuple[Message, ...]) -> _Pairs:
    """Return the pairs with results that came before their call; `late` are the unanswered calls of each id, in order."""
    orphans, pairs.orphans = pairs.orphans, []
    for i, k in orphans:
        # A result that came before its call is misplaced, not an orphan.
        calls_behind = late.get(_call_id(messages[i].parts[k]), deque())
        while calls_behind and calls_behind[0] < (i, k):
            pairs.unanswered.append(calls_behind.popleft())
        if calls_behind:
            pairs.answer[calls_behind.popleft()] = (i, k)
        else:
            pairs.orphans.append((i, k))
    pairs.unanswered = sorted((*pairs.unanswered, *(call for calls in late.values() for call in calls)))
    return pairs


def _in_place(conversation: Conversation) -> Callable[[tuple[int, int], tuple[int, int]], bool]:
    """Return whether a result of the conversation stands where its format wants it, given the places of call and result."""
    messages = conversation.messages
    if conversation.format == "openai-responses":
        return lambda call, result: result[0] > call[0]
    if conversation.format == "gemini":
        return lambda call, result: result[0] == call[0] + 1
    if conversation.format == "openai-chat":
        apart = (0, *accumulate(not m.results for m in messages))
        return lambda call, result: result[0] > call[0] and apart[call[0] + 1] == apart[result[0]]
    # The server merges neighbours of one role, and Claude Code puts system messages in between.
    apart = (0, *accumulate(m.role not in {"assistant", "system"} for m in messages))
    results = [sum(1 for _ in takewhile(lambda p: isinstance(p, ToolResult), m.parts)) for m in messages]

    def stands(call: tuple[int, int], result: tuple[int, int]) -> bool:
        i, k = result
        return i > call[0] and apart[call[0] + 1] == apart[i] and k < results[i]

    return stands


def _added(conversation: Conversation, call: ToolCall) -> Message:
    return CODECS[conversation.format].tool_result(call, MISSING_RESULT, is_error=True)


def _chat(conversation: Conversation, pairs: _Pairs, continues: bool) -> Iterator[Message]:  # noqa: FBT001 - as given
    del continues  # chat requests hold their whole history
    for i, message in enumerate(conversation.messages):
        if message.results:
            continue
        yield message
        for k, part in enumerate(message.parts):
            if isinstance(part, ToolCall):
                answer = pairs.answer.get((i, k))
                yield conversation.messages[answer[0]] if answer else _added(conversation, part)


def _responses(conversation: Conversation, pairs: _Pairs, continues: bool) -> Iterator[Message]:  # noqa: FBT001 - as given
    gone = {i for i, _ in (*pairs.doubles, *(() if continues else pairs.orphans))}
    early = {result[0] for call, result in pairs.answer.items() if result[0] < call[0]}
    missing = {i for i, _ in pairs.unanswered}
    waiting: list[Message] = []
    for i, message in enumerate(conversation.messages):
        if not message.calls:
            # A run of parallel calls stays together; what it lacks comes behind it.
            yield from waiting
            waiting = []
        if i not in gone and i not in early:
            yield message
        if i in missing:
            waiting.append(_added(conversation, message.calls[0]))
        elif (i, 0) in pairs.answer and pairs.answer[i, 0][0] in early:
            waiting.append(conversation.messages[pairs.answer[i, 0][0]])
    yield from waiting


def _anthropic(conversation: Conversation, pairs: _Pairs, continues: bool) -> Iterator[Message]:  # noqa: FBT001 - as given
    del continues  # messages requests hold their whole history
    waiting: list[ToolResult] = []
    for i, message in enumerate(conversation.messages):
        rest = tuple(p for p in message.parts if not isinstance(p, ToolResult))
        if waiting and message.role == "user":
            yield message.with_parts((*waiting, *rest))
            waiting = []
        elif waiting and message.role not in {"assistant", "system"}:
            yield _carrier(waiting)
            waiting = []
            yield message
        elif rest or not message.parts:
            yield message.with_parts(rest)
        for k, part in enumerate(message.parts):
            if isinstance(part, ToolCall):
                answer = pairs.answer.get((i, k))
                found = conversation.messages[answer[0]].parts[answer[1]] if answer else None
                waiting.append(found if isinstance(found, ToolResult) else _added(conversation, part).results[0])
    if waiting:
        yield _carrier(waiting)


def _carrier(results: list[ToolResult]) -> Message:
    return Message("user", tuple(results), raw={"role": "user", "content": []}, edited=True)


def _gemini(conversation: Conversation, pairs: _Pairs, continues: bool) -> Iterator[Message]:  # noqa: FBT001 - as given
    """Yield the contents with each turn of calls and, directly behind it, the one turn of its responses.

    A user's words that came before the responses are a turn of their own behind them: Gemini 3 passes over words that
    stand beside responses, and LiteLLM's translation for other providers puts them before these.
    """
    del continues  # Google keeps no history
    waiting: list[ToolResult] = []
    for i, message in enumerate(conversation.messages):
        rest = tuple(p for p in message.parts if not isinstance(p, ToolResult))
        if waiting and message.results:
            yield message if _same(message.results, waiting) else message.with_parts((*waiting, *rest))
        else:
            if waiting:
                yield _response_turn(waiting)
            if rest:
                yield message.with_parts(rest)
        waiting = []
        for k, part in enumerate(message.parts):
            if isinstance(part, ToolCall):
                answer = pairs.answer.get((i, k))
                found = conversation.messages[answer[0]].parts[answer[1]] if answer else None
                waiting.append(found if isinstance(found, ToolResult) else _added(conversation, part).results[0])
    if waiting:
        yield _response_turn(waiting)


def _same(found: tuple[ToolResult, ...], wanted: list[ToolResult]) -> bool:
    """Whether these are the very results that are wanted, in whatever order."""
    return sorted(map(id, found)) == sorted(map(id, wanted))


def _response_turn(results: list[ToolResult]) -> Message:
    return Message("user", tuple(results), raw={"role": "user", "parts": []}, edited=True)


LAYOUTS: Mapping[Format, Callable[[Conversation, _Pairs, bool], Iterator[Message]]] = {
    "openai-chat": _chat,
    "anthropic": _anthropic,
    "openai-responses": _responses,
    "gemini": _gemini,
}
"""Each format's order of calls and results."""
