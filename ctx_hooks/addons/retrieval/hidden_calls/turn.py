"""What the answers of all formats have in common where calls of one tool are hidden from the client.

The provider answers, and calls the hidden tool; the calls are answered out of the client's sight, and the provider goes on
in a further answer. The client sees the answers as one, without the calls.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ctx_hooks.conversation.model import Format, ToolCall
from ctx_hooks.formats import WIRE_FORMATS
from ctx_hooks.formats.fields import mapping_or_empty

CUT_OFF = frozenset({"length", "content_filter", "max_tokens", "refusal", "model_context_window_exceeded"})
"""Why OpenAI and Anthropic stop without the model having come to its end: a call before it may be half of one."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One answer of the provider.

    Attributes:
        messages: what it goes back to the provider by, with all its calls: one assistant message, or items of Responses.
        shown: the same without the hidden calls, which nothing answers.
        hidden: the calls of the hidden tool, in their order.
        has_other_calls: whether it calls tools of the client, too.
        stop_reason: why it ended; None where it did not come to its end.
    """

    messages: Sequence[Mapping[str, Any]]
    shown: Sequence[Mapping[str, Any]]
    hidden: tuple[ToolCall, ...]
    has_other_calls: bool
    stop_reason: str | None

    @property
    def is_whole(self) -> bool:
        """Whether its calls can be answered: the stream came to its end, and nothing cut the turn off."""
        return self.stop_reason is not None and self.stop_reason not in CUT_OFF

    @property
    def waits(self) -> bool:
        """Whether the provider waits for results of hidden calls only, so that it can be asked to go on."""
        return bool(self.hidden) and self.is_whole and not self.has_other_calls


class Stream(Protocol):
    """The streams of the answers of one request, as the client is to see them: as one, without calls of the hidden tool."""

    def seen(self, event: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Return what the client sees of an event: the very event, a changed one, or None where it is hidden or withheld."""

    def turn(self) -> Turn:
        """Return what the provider has said since the stream of its last answer began."""

    def go_on(self) -> None:
        """Begin the stream of a further answer; the end of the last one is dropped."""

    def end(self) -> Sequence[Mapping[str, Any]]:
        """Return the withheld end of the last answer, with the usage of all."""


class HiddenCalls(Protocol):
    """What each format's module has."""

    FORMAT: Format
    NO_CALLS: Mapping[str, Any]
    """The fields by which a request forbids every call."""
    REPEATS_TOOLS: bool
    """Whether an answer repeats the tools of its request, so that each is changed, whether it calls anything or not."""

    def stream(self, tool: str) -> Stream:
        """Return what makes one stream of the streams of a request's answers, without calls of `tool`."""

    def turn_of(self, answer: Mapping[str, Any], tool: str) -> Turn:
        """Return what a whole answer says."""

    def joined(self, answers: Sequence[Mapping[str, Any]], tool: str, *, is_whole: bool = True) -> dict[str, Any]:
        """Return the answers of a request as one, without calls of `tool`; one that is not whole says that it is cut off."""


def results_of(fmt: Format, calls: Sequence[ToolCall], texts: Sequence[str]) -> tuple[Mapping[str, Any], ...]:
    """Return what answers the calls: messages of chat, blocks of a user message of Anthropic, items of Responses."""
    write = WIRE_FORMATS[fmt].tool_result
    answers = [write(call, text, is_error=False) for call, text in zip(calls, texts, strict=True)]
    return tuple(answer.results[0].raw or answer.raw for answer in answers)


def messages_of(results: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    """Return the messages that bring results of calls, where no others come with them."""
    is_blocks = any("tool_use_id" in result for result in results)
    return ({"role": "user", "content": list(results)},) if is_blocks else results


def total(usages: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the sum of usage records, their details included; what is no number is the last one's.

    >>> total([{"prompt_tokens": 10, "details": {"cached": 1}}, {"prompt_tokens": 5, "details": None, "tier": "x"}])
    {'prompt_tokens': 15, 'details': {'cached': 1}, 'tier': 'x'}
    """
    summed: dict[str, Any] = {}
    for usage in usages:
        for name, value in usage.items():
            summed[name] = _sum(summed.get(name), value)
    return summed


def _sum(before: Any, value: Any) -> Any:
    if value is None:
        return before
    if isinstance(value, Mapping):
        return total([mapping_or_empty(before), value])
    both_count = {type(before), type(value)} <= {int, float}
    return before + value if both_count else value


def object_of(arguments: str) -> dict[str, Any]:
    """Return the arguments of a call as an object, an empty one where they are none: providers take nothing else back."""
    try:
        return dict(mapping_or_empty(json.loads(arguments)))
    except (ValueError, RecursionError):
        return {}
