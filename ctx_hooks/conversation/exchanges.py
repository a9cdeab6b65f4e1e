"""Who speaks in a message, and which request the model answers next, as pure functions of messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_hooks.conversation import placeholders

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ctx_hooks.conversation.model import Message

QUESTION_MARKS = "?\uff1f\u061f\u037e\u055e\u1367"
"""Question marks of Latin and most other scripts, Chinese and Japanese, Arabic, Greek, Armenian and Ethiopic."""


def request_of_first_speaker(messages: Sequence[Message]) -> int | None:
    """Return the index of the newest message of the user who speaks first, None without one.

    Multi-agent frameworks send the output of other agents as named user messages, after the question that all work on.
    """
    user = next((m.name for m in messages if is_request(m)), None)
    newest_first = range(len(messages) - 1, -1, -1)
    return next((i for i in newest_first if is_request(messages[i]) and messages[i].name in (user, None)), None)


def prefill_of(messages: Sequence[Message]) -> int | None:
    """Return the index of a prefilled answer: the last message, if the assistant's and without tool calls."""
    last = len(messages) - 1
    return last if messages and messages[last].role == "assistant" and not messages[last].calls else None


def is_request(message: Message) -> bool:
    """Whether a user speaks here: user messages that return tool results are the client's words, not the user's.

    A message that replaces a removed one is no request either. A result that a repair added before words does not count.
    """
    if message.role != "user" or message.text in placeholders.REMOVED_MESSAGES:
        return False
    results = message.results
    return not results or (len(results) < len(message.parts) and all(r.is_missing for r in results))


def is_question(message: Message) -> bool:
    """Whether a user speaks here and asks: the words contain a question mark."""
    text = message.text if is_request(message) else ""
    return any(mark in text for mark in QUESTION_MARKS)
