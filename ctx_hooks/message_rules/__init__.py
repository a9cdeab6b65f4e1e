"""The message rules that providers enforce with status 400: what breaks them, and how a conversation is repaired."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_hooks.message_rules import alternation
from ctx_hooks.message_rules.alternation import FirstMessageIsUsers
from ctx_hooks.message_rules.cache_markers import CacheMarkers
from ctx_hooks.message_rules.content import AnthropicContent, ChatContent
from ctx_hooks.message_rules.gemini_turns import CallsFollowUser, GeminiContent
from ctx_hooks.message_rules.pairing import CallsAnswered
from ctx_hooks.message_rules.reasoning import CurrentLoopThinks, ReasoningHasItem
from ctx_hooks.message_rules.rule import Repair, Rule, Violation

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ctx_hooks.conversation.model import Conversation, Format

RULES: Mapping[Format, tuple[Rule, ...]] = {
    "openai-chat": (ChatContent(), CallsAnswered()),
    "anthropic": (
        AnthropicContent(),
        CallsAnswered(),
        FirstMessageIsUsers(),
        CurrentLoopThinks(),
        CacheMarkers(),
    ),
    "openai-responses": (CallsAnswered(), ReasoningHasItem()),
    "gemini": (GeminiContent(), CallsAnswered(), CallsFollowUser(), FirstMessageIsUsers()),
}
"""Each format's rules, in the order in which they repair.

LiteLLM translates the chat format for Mistral, Bedrock and Gemini. Their rules (a call directly after a user turn, as many
results as calls, a user message first) follow from these rules and from cuts between exchanges.
"""


def violations(conversation: Conversation, *, continues: bool = False) -> tuple[Violation, ...]:
    """Return every violation of the format's rules.

    Args:
        conversation: The conversation to check.
        continues: Whether the provider stores earlier messages, which may hold the calls of results here.

    """
    return tuple(v for rule in RULES[conversation.format] for v in rule.violations(conversation, continues=continues))


def repair(conversation: Conversation, *, continues: bool = False) -> tuple[Conversation, tuple[Repair, ...]]:
    """Return the conversation with every repairable violation repaired, and the repairs in order.

    Args:
        conversation: The conversation; it is not changed.
        continues: Whether the provider stores earlier messages, which may hold the calls of results here.

    Returns:
        The repaired conversation, the same object when nothing was broken, and what was done.

    """
    done: list[Repair] = []
    repaired = conversation
    for rule in RULES[conversation.format]:
        repaired, repairs = rule.repair(repaired, continues=continues)
        done += repairs
    alternating = alternation.kept(conversation, repaired)
    if alternating is not repaired:
        done.append(Repair("alternation", 0, "added", "the repaired roles no longer alternated"))
    return alternating, tuple(done)


__all__ = ["RULES", "Repair", "Rule", "Violation", "alternation", "repair", "violations"]
