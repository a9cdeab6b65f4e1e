"""The message rules that providers enforce: where a conversation may be cut, what is broken, how it is repaired."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_hooks.message_rules import alternation
from ctx_hooks.message_rules.cache_markers import CacheMarkers
from ctx_hooks.message_rules.content import AnthropicContent, ChatContent
from ctx_hooks.message_rules.first_message import FirstMessageIsUsers
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

Mistral, Bedrock and Gemini behind chat are spoken to in the chat format, which LiteLLM translates: a call directly behind
a user turn, as many results as calls, and a user message first follow from these rules and from cuts between exchanges.
"""


def violations(conversation: Conversation, *, continues: bool = False) -> tuple[Violation, ...]:
    """Return every broken rule. `continues`: earlier messages lie with the provider and may hold the calls."""
    return tuple(v for rule in RULES[conversation.format] for v in rule.violations(conversation, continues=continues))


def repair(conversation: Conversation, *, continues: bool = False) -> tuple[Conversation, tuple[Repair, ...]]:
    """Return the conversation with every repairable rule kept, and what was done; the same object when all is well."""
    done: list[Repair] = []
    repaired = conversation
    for rule in RULES[conversation.format]:
        repaired, repairs = rule.repair(repaired, continues=continues)
        done += repairs
    alternating = alternation.kept(conversation, repaired)
    if alternating is not repaired:
        done.append(Repair("alternation", 0, "added", "the repaired roles no longer alternated"))
    return alternating, tuple(done)


def safe_cuts(conversation: Conversation) -> frozenset[int]:
    """Return the indices at which everything before may go without breaking a rule for what stays."""
    rules = RULES[conversation.format]
    return frozenset(i for i in range(len(conversation.messages)) if all(rule.may_cut(conversation, i) for rule in rules))


__all__ = ["RULES", "Repair", "Rule", "Violation", "alternation", "repair", "safe_cuts", "violations"]
