"""A model's summary as it stands in a compaction: quoted, with what it lost and what it was not written of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_hooks.compaction.summary.extractive import sections
from ctx_hooks.conversation import placeholders
from ctx_hooks.texts.identifiers import identifiers

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ctx_hooks.conversation.model import Conversation, Message
    from ctx_hooks.tokens.budget import Budget

NEWEST_MESSAGES = 10
"""As many as an overflow leaves nanobot: what they name is being worked on."""


def written_form(text: str, unsummarised: int, conversation: Conversation, removed: Sequence[int], budget: Budget) -> str:
    """Return what stands for the removed messages: a heading, the model's summary, and extracts of some of them.

    Extracts are made of messages that the summary was not written of, and of those that hold an identifier which the newest
    messages use and the summary lost.

    Args:
        text: the summary.
        unsummarised: how many of the newest messages it was not written of. Where repairs have added or removed one, a
            message is summarised twice, or by its neighbours alone.
        conversation: what exchanges are removed from.
        removed: the indices of the removed messages.
        budget: its policy has the language.
    """
    messages, language = conversation.messages, budget.policy.language
    end = len(messages) - unsummarised
    lost = {name for m in messages[-NEWEST_MESSAGES:] for name in _used(m) if name not in text}
    extracted = [messages[i] for i in removed if i >= end or not lost.isdisjoint(_named(messages[i]))]
    extracts = sections(extracted, budget)
    lines = [placeholders.written_heading(len(removed), language), placeholders.block_quoted(text)]
    return "\n".join((*lines, placeholders.extracts_heading(language), *extracts) if extracts else lines)


def _used(message: Message) -> Iterator[str]:
    """Yield the identifiers that the user or the assistant names; a tool's result may list thousands."""
    for said in (message.text, *(call.arguments for call in message.calls)):
        yield from identifiers(said)


def _named(message: Message) -> Iterator[str]:
    yield from _used(message)
    for result in message.results:
        yield from identifiers(result.text)
