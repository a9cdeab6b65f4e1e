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
    """One rule that a provider enforces with a 400."""

    name: str

    def violations(self, conversation: Conversation, *, continues: bool) -> tuple[Violation, ...]:
        """Return what breaks the rule. `continues`: earlier messages lie with the provider and may hold the calls."""

    def repair(self, conversation: Conversation, *, continues: bool) -> tuple[Conversation, tuple[Repair, ...]]:
        """Return a conversation that keeps the rule, the same object when it does already."""
