"""The message rules that providers enforce with status 400, and the repair of conversations that break one."""

from collections.abc import Mapping

from ctx_hooks.conversation.conversation import Conversation
from ctx_hooks.formats import ANTHROPIC, CHAT, GEMINI, RESPONSES
from ctx_hooks.message_rules import alternation
from ctx_hooks.message_rules.alternation import calls_follow_user, first_message_is_users
from ctx_hooks.message_rules.pairing import calls_answered
from ctx_hooks.message_rules.rule import (
    Repair,
    Repaired,
    Rule,
    anthropic_content,
    cache_markers,
    chat_content,
    gemini_content,
    reasoning_has_item,
)
from ctx_hooks.policy.settings import Language

RULES: Mapping[str, tuple[Rule, ...]] = {
    CHAT: (chat_content, calls_answered),
    ANTHROPIC: (anthropic_content, calls_answered, first_message_is_users, cache_markers),
    RESPONSES: (calls_answered, reasoning_has_item),
    GEMINI: (gemini_content, calls_answered, calls_follow_user, first_message_is_users),
}
"""Each format's rules, in the order in which they repair. Anthropic's signed thinking needs none: no step touches it."""


def repair(conversation: Conversation, *, continues: bool = False, language: Language = "en") -> Repaired:
    """Return a conversation that keeps every rule (the same object if none was broken), and the repairs."""
    done: list[Repair] = []
    repaired = conversation
    for rule in RULES[conversation.format]:
        repaired, repairs = rule(repaired, continues=continues, language=language)
        done += repairs
    alternating = alternation.kept(conversation, repaired, language)
    if alternating is not repaired:
        done.append(Repair("alternation", 0, "the repaired roles no longer alternated"))
    return alternating, tuple(done)
