"""A rule returns a conversation that keeps it (the same object if nothing is broken), and its repairs."""

from collections.abc import Callable, Iterator
from functools import wraps
from typing import NamedTuple, TypeAlias

from ctx_hooks.conversation.conversation import Conversation
from ctx_hooks.conversation.model import Message


class Repair(NamedTuple):
    """One repair: the rule that was broken, by which message (its index before the repair), and how."""

    rule: str
    message_index: int
    what: str


Repaired: TypeAlias = tuple[Conversation, tuple[Repair, ...]]
Rule: TypeAlias = Callable[..., Repaired]
"""By keyword it gets `language`, and `continues`: whether the provider stores earlier messages, perhaps with calls."""
Change: TypeAlias = tuple[int, Message | None, str]
"""The index of a message, its replacement or None if the message is dropped, and what was wrong with it."""


def rule_on_messages(find: Callable[[Conversation], Iterator[Change]]) -> Rule:
    """Return the rule whose repairs `find` yields, with its name."""

    @wraps(find)
    def repaired(conversation: Conversation, **_: object) -> Repaired:
        messages: list[Message | None] = list(conversation.messages)
        repairs = []
        for i, message, what in find(conversation):
            messages[i] = message
            repairs.append(Repair(find.__name__, i, what))
        return conversation.with_messages(tuple(m for m in messages if m is not None)), tuple(repairs)

    return repaired
