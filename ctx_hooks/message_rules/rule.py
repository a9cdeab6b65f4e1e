"""The interface of a message rule, and what it reports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from ctx_hooks.conversation.model import Conversation

Action = Literal["moved", "dropped", "added", "edited"]


@dataclass(frozen=True, slots=True)
class Violation:
    """A broken rule: its name, the message where it shows, and what is wrong there."""

    rule: str
    message_index: int
    what: str


@dataclass(frozen=True, slots=True)
class Repair:
    """What was done about a violation, at the index the message had before."""

    rule: str
    message_index: int
    action: Action
    what: str


class Rule(Protocol):
    """One rule that a provider enforces with status 400.

    >>> from ctx_hooks.formats import CODECS
    >>> class NoEmptyConversation:
    ...     name = "no_empty_conversation"
    ...
    ...     def violations(self, conversation, *, continues):
    ...         return () if conversation.messages else (Violation(self.name, 0, "there is no message"),)
    ...
    ...     def repair(self, conversation, *, continues):
    ...         return conversation, ()
    >>> rule: Rule = NoEmptyConversation()
    >>> [v.what for v in rule.violations(CODECS["openai-chat"].read([]), continues=False)]
    ['there is no message']
    """

    name: str

    def violations(self, conversation: Conversation, *, continues: bool) -> tuple[Violation, ...]:
        """Return what breaks the rule. With `continues` the provider stores earlier messages, which may hold the calls."""

    def repair(self, conversation: Conversation, *, continues: bool) -> tuple[Conversation, tuple[Repair, ...]]:
        """Return a conversation that keeps the rule, and the repairs; the same object when nothing is broken."""
