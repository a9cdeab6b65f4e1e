"""The models that refuse an assistant message without the reasoning that they gave with it."""

import re

from ctx_hooks.conversation.conversation import Conversation
from ctx_hooks.conversation.model import Reasoning
from ctx_hooks.formats import WIRE_FORMATS

WANTING: tuple[tuple[str, str], ...] = (
    # api-docs.deepseek.com/guides/thinking_mode: "must be fully passed back to the API in all subsequent requests". V3.2 and
    # its alias: deepseek-ai/DeepSeek-V3#1053, continuedev/continue#10193.
    ("deepseek", r"(?<![a-z])v(?:3[.p-]2(?!\d)|[4-9]|\d\d)|flash|reasoner"),
    # platform.moonshot.ai/docs/guide/use-kimi-k2-thinking-model, continuedev/continue#11711, anomalyco/opencode#10996.
    ("kimi|moonshot|k2p5", r"thinking|k2[.p-][5-9](?!\d)|k[3-9]|k\d\d|for-coding"),
    # platform.xiaomimimo.com/docs/en-US/usage-guide/passing-back-reasoning_content, chatboxai/chatbox#3716.
    ("mimo", r"v[2-9]"),
)
"""Patterns of a family's name, and of its versions that want their reasoning back."""
_FAMILIES = re.compile("|".join(family for family, _ in WANTING))


def wants_reasoning(model: str) -> bool:
    """Return whether a model, behind any provider's prefix, wants its reasoning back.

    One character is enough (LiteLLM writes a blank for its moonshot/), none is not (NousResearch/hermes-agent#17341).
    DeepSeek V4 wants it on answers without calls, too (MoonshotAI/kimi-cli#2141, vercel/ai#14740).
    """
    name = model.lower()
    if not _FAMILIES.search(name):
        return False
    return any(re.search(family, name) and re.search(versions, name) for family, versions in WANTING)


def with_elisions(before: Conversation, after: Conversation) -> Conversation:
    """Return `after` with elided reasoning in the answers that are new in it, if others have reasoning."""
    elided, known = WIRE_FORMATS[after.format].elided, {id(message.raw) for message in before.messages}
    if elided is None or not any(isinstance(part, Reasoning) for message in after.messages for part in message.parts):
        return after
    new = {id(m): m.with_parts((elided, *m.parts)) for m in after.messages if id(m.raw) not in known}
    return after.with_messages(tuple(new[id(m)] if m.role == "assistant" and id(m) in new else m for m in after.messages))
