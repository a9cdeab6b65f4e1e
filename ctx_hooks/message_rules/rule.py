"""The interface of a message rule, and what it reports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

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
    """What was wrong, at the index that the message had before, and what was done about it."""

    rule: str
    message_index: int
    action: Action
    what: str


class Rule:
    """One rule that a provider enforces with status 400; a rule says how it is repaired, or what breaks it, or both.

    >>> from ctx_hooks.formats import CODECS
    >>> class NoEmptyConversation(Rule):
    ...     name = "no_empty_conversation"
    ...
    ...     def violations(self, conversation, *, continues):
    ...         return () if conversation.messages else (Violation(self.name, 0, "there is no message"),)
    >>> [v.what for v in NoEmptyConversation().violations(CODECS["openai-chat"].read([]), continues=False)]
    ['there is no message']
    """

    name: ClassVar[str]

    def violations(self, conversation: Conversation, *, continues: bool) -> tuple[Violation, ...]:
        """Return what breaks the rule: what its repair mends.

        Args:
            conversation: what is sent.
            continues: whether the provider stores earlier messages, which may hold the calls of results here.
        """
        _, repairs = self.repair(conversation, continues=continues)
        return tuple(Violation(self.name, repair.message_index, repair.what) for repair in repairs)

    def repair(self, conversation: Conversation, *, continues: bool) -> tuple[Conversation, tuple[Repair, ...]]:
        """Return a conversation that keeps the rule, and the repairs; the same object when nothing is broken."""
        del continues
        return conversation, ()
