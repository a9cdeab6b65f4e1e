"""Which messages stand or fall together, and what the model is to answer next, as pure functions of messages."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from ctx_hooks.conversation import placeholders

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ctx_hooks.conversation.model import Message

QUESTION_MARKS = "?\uff1f\u061f\u037e\u055e\u1367"
"""Of Latin and most other scripts, of Chinese and Japanese, Arabic, Greek, Armenian and Ethiopic."""


def exchanges_of(messages: Sequence[Message], *, joins_assistant_items: bool) -> tuple[range, ...]:
    """Return the ranges of messages that stand or fall together, side by side and covering all.

    A cut between two of them never parts a call from its result.

    Args:
        messages: all messages of a conversation.
        joins_assistant_items: whether assistant messages side by side are one answer, as the items of Responses are:
            reasoning, text and calls belong together.
    """
    ends: list[int] = []
    open_calls: set[str] = set()
    for i, message in enumerate(messages):
        results = message.results
        continues = joins_assistant_items and i > 0 and messages[i - 1].role == message.role == "assistant"
        if i > 0 and not (results or continues or (open_calls and message.role == "assistant")):
            ends.append(i)
            open_calls = set()
        open_calls.update([c.id for c in message.calls])
        open_calls.difference_update([r.call_id for r in results])
    return tuple(range(start, end) for start, end in pairwise([0, *ends, len(messages)]) if messages)


def newest_request_of(messages: Sequence[Message]) -> int | None:
    """Return the index of the newest message in a user's own words, whoever speaks; None when there is none."""
    return next((i for i in range(len(messages) - 1, -1, -1) if is_request(messages[i])), None)


def request_of_first_speaker(messages: Sequence[Message]) -> int | None:
    """Return the index of the newest message of the user who speaks first, None when there is none.

    Multi-agent frameworks send other agents' output as named user messages behind the question that all of them work on.
    """
    user = next((m.name for m in messages if is_request(m)), None)
    newest_first = range(len(messages) - 1, -1, -1)
    return next((i for i in newest_first if is_request(messages[i]) and messages[i].name in (user, None)), None)


def prefill_of(messages: Sequence[Message]) -> int | None:
    """Return the index of the beginning that the caller gives the answer: an assistant's last message that calls nothing."""
    last = len(messages) - 1
    return last if messages and messages[last].role == "assistant" and not messages[last].calls else None


def newest_loop_of(messages: Sequence[Message], exchanges: Sequence[range]) -> range:
    """Return the tool loop that waits for the model's next step, else an empty range: the last exchange before a prefill.

    Reasoning may stand before a prefill, and be one exchange with it.
    """
    prefill = prefill_of(messages)
    newest = exchanges[-1] if exchanges else range(0)
    if prefill in newest and not _holds_tools(messages, newest):
        newest = exchanges[-2] if len(exchanges) > 1 else range(0)
    return newest if _holds_tools(messages, newest) else range(0)


def _holds_tools(messages: Sequence[Message], exchange: range) -> bool:
    return any(messages[i].results or messages[i].calls for i in exchange)


def is_request(message: Message) -> bool:
    """Whether a user speaks here: user messages that carry tool results back are the client's, not the user's.

    Nor does one speak that stands for a removed message, so that turns alternate. A result that a repair has put before what
    the user says was not sent by the client.
    """
    if message.role != "user" or message.text == placeholders.REMOVED_MESSAGE:
        return False
    results = message.results
    return not results or (len(results) < len(message.parts) and all(r.is_missing for r in results))


def is_question(message: Message) -> bool:
    """Whether a user speaks here and asks: a question mark stands in what is said."""
    text = message.text if is_request(message) else ""
    return any(mark in text for mark in QUESTION_MARKS)
