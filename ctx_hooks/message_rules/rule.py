"""The signature of a rule: it returns a conversation that keeps the rule, and its repairs."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import wraps
from typing import Literal, Protocol, TypeAlias

from ctx_hooks.conversation.model import Conversation, Message
from ctx_hooks.policy.settings import Language

Action = Literal["moved", "dropped", "added", "edited"]


@dataclass(frozen=True, slots=True)
class Repair:
    """One repair: the problem, at the message's index before the repair, and the change."""

    rule: str
    message_index: int
    action: Action
    what: str


Change: TypeAlias = "tuple[int, Message | None, str]"
"""The index of a message, its replacement or None if the message is dropped, and what was wrong with it."""


class Rule(Protocol):
    """One rule that a provider enforces with status 400."""

    def __call__(
        self, conversation: Conversation, *, continues: bool, language: Language
    ) -> tuple[Conversation, tuple[Repair, ...]]:
        """Return a conversation that keeps the rule, and the repairs; the same object if nothing is broken.

        `continues`: whether the provider stores earlier messages, which may contain the calls of results here.
        `language`: of the texts that are added.
        """


def rule_on_messages(find: Callable[[Conversation], Iterator[Change]]) -> Rule:
    """Return the rule whose repairs `find` yields, with its name."""

    @wraps(find)
    def repaired(conversation: Conversation, **_: object) -> tuple[Conversation, tuple[Repair, ...]]:
        messages: list[Message | None] = list(conversation.messages)
        repairs = []
        for i, message, what in find(conversation):
            messages[i] = message
            repairs.append(Repair(find.__name__, i, "dropped" if message is None else "edited", what))
        return conversation.with_messages(tuple(m for m in messages if m is not None)), tuple(repairs)

    return repaired
