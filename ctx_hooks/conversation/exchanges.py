"""Who speaks in a message, and what the model is to answer next, as pure functions of messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_hooks.conversation import placeholders

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ctx_hooks.conversation.model import Message

QUESTION_MARKS = "?\uff1f\u061f\u037e\u055e\u1367"
"""Of Latin and most other scripts, of Chinese and Japanese, Arabic, Greek, Armenian and Ethiopic."""


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


def is_request(message: Message) -> bool:
    """Whether a user speaks here: user messages that carry tool results back are the client's, not the user's.

    Nor is a message that stands for a removed one. A result that a repair has put before words was not sent by the client.
    """
    if message.role != "user" or message.text == placeholders.REMOVED_MESSAGE:
        return False
    results = message.results
    return not results or (len(results) < len(message.parts) and all(r.is_missing for r in results))


def is_question(message: Message) -> bool:
    """Whether a user speaks here and asks: a question mark stands in what is said."""
    text = message.text if is_request(message) else ""
    return any(mark in text for mark in QUESTION_MARKS)
