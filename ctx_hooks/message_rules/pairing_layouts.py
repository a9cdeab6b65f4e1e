"""Where results have to stand, one layout a format."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from ctx_hooks.conversation.model import Conversation, Message, ToolCall, ToolResult
from ctx_hooks.formats import WIRE_FORMATS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from ctx_hooks.conversation.model import Format, Part
    from ctx_hooks.message_rules.pairing import Pairs

MISSING_RESULT = "[No result was recorded for this call.]"
"""The text of the result that is added for a call that has none."""


Arrange: TypeAlias = "Callable[[Conversation, Pairs], Iterator[Message]]"
"""Yields the messages with every result where the format wants it, a result for each call, and no other results.

A message whose results stand there is yielded as it is, in whatever order they are.
"""


def _missing_result(conversation: Conversation, call: Part) -> Message:
    return WIRE_FORMATS[conversation.format].tool_result(call, MISSING_RESULT, is_error=True)


def _wanted(conversation: Conversation, pairs: Pairs, index: int) -> list[ToolResult]:
    """Return the results of a message's calls, in their order; one that is added is a part of what the user says next."""
    results = []
    for k, call in enumerate(conversation.messages[index].parts):
        if isinstance(call, ToolCall):
            answer = pairs.answer.get((index, k))
            found = conversation.messages[answer[0]].parts[answer[1]] if answer else None
            if not isinstance(found, ToolResult):
                found = replace(_missing_result(conversation, call).results[0], is_missing=True)
            results.append(found)
    return results


def _results_message(results: list[ToolResult]) -> Message:
    return Message("user", tuple(results), raw={"role": "user"}, edited=True)


# OpenAI chat: "An assistant message with 'tool_calls' must be followed by tool messages responding to each
# 'tool_call_id'." and "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."


def _chat(conversation: Conversation, pairs: Pairs) -> Iterator[Message]:
    for i, message in enumerate(conversation.messages):
        if message.results:
            continue
        yield message
        calls = [(i, k) for k, part in enumerate(message.parts) if isinstance(part, ToolCall)]
        for place, _ in sorted(pairs.answer[call] for call in calls if call in pairs.answer):
            yield conversation.messages[place]
        for _, k in (call for call in calls if call not in pairs.answer):
            yield _missing_result(conversation, message.parts[k])


# Anthropic: "`tool_use` ids were found without `tool_result` blocks immediately after", "unexpected `tool_use_id` found in
# `tool_result` blocks", "tool_result blocks must come before any other content". The server merges neighbours of one role,
# and Claude Code puts system messages in between.


def _anthropic(conversation: Conversation, pairs: Pairs) -> Iterator[Message]:
    waiting: list[ToolResult] = []
    for i, message in enumerate(conversation.messages):
        rest = tuple(p for p in message.parts if not isinstance(p, ToolResult))
        if waiting and message.role == "user":
            are_first = _are_same(message.parts[: len(waiting)], waiting) and len(message.results) == len(waiting)
            yield message if are_first else message.with_parts((*waiting, *rest))
            waiting = []
        elif waiting and message.role not in {"assistant", "system"}:
            yield _results_message(waiting)
            waiting = []
            yield message
        elif rest or not message.parts:
            yield message.with_parts(rest)
        waiting += _wanted(conversation, pairs, i)
    if waiting:
        yield _results_message(waiting)


# Responses: "No tool output found for function call", "No tool call found for function call output with call_id". Items of
# other kinds may stand in between.


def _responses(conversation: Conversation, pairs: Pairs) -> Iterator[Message]:
    gone = {i for i, _ in (*pairs.doubles, *pairs.orphans)}
    early = {result[0] for call, result in pairs.answer.items() if result[0] < call[0]}
    missing = {i for i, _ in pairs.unanswered}
    waiting: list[Message] = []
    for i, message in enumerate(conversation.messages):
        if not message.calls:
            # A run of parallel calls stays together; the results that it lacks come behind it.
            yield from waiting
            waiting = []
        if i not in gone and i not in early:
            yield message
        if i in missing:
            waiting.append(_missing_result(conversation, message.calls[0]))
        elif (i, 0) in pairs.answer and pairs.answer[i, 0][0] in early:
            waiting.append(conversation.messages[pairs.answer[i, 0][0]])
    yield from waiting


# Google: "Please ensure that function response turn comes immediately after a function call turn. And the number of
# function response parts should be equal to number of function call parts of the function call turn."


def _gemini(conversation: Conversation, pairs: Pairs) -> Iterator[Message]:
    """Yield the contents with each turn of calls and, directly behind it, the one turn of its responses.

    A user's words that came before the responses are a turn of their own behind them: Gemini 3 passes over words that
    stand beside responses, and LiteLLM's translation for other providers puts them before these.
    """
    waiting: list[ToolResult] = []
    for i, message in enumerate(conversation.messages):
        rest = tuple(p for p in message.parts if not isinstance(p, ToolResult))
        if waiting and message.results:
            yield message if _are_same(message.results, waiting) else message.with_parts((*waiting, *rest))
        else:
            if waiting:
                yield _results_message(waiting)
            if rest:
                yield message.with_parts(rest)
        waiting = _wanted(conversation, pairs, i)
    if waiting:
        yield _results_message(waiting)


def _are_same(found: Sequence[Part], wanted: list[ToolResult]) -> bool:
    """Whether these are the very results that are wanted, in whatever order."""
    return sorted(map(id, found)) == sorted(map(id, wanted))


ARRANGED: Mapping[Format, Arrange] = {
    "openai-chat": _chat,
    "anthropic": _anthropic,
    "openai-responses": _responses,
    "gemini": _gemini,
}
