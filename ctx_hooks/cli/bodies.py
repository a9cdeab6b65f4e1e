"""Bodies of requests as clients send them: which format they have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ctx_hooks.conversation.model import Format
from ctx_hooks.formats.fields import mapping_or_empty
from ctx_hooks.request.request import Request

ANTHROPIC_BLOCKS = frozenset({"tool_use", "tool_result", "thinking", "redacted_thinking"})


def request_of_body(body: Mapping[str, Any]) -> Request | None:
    """Return the request of a body, None where it holds no conversation."""
    if body.get("contents") and isinstance(body["contents"], (list, Mapping)):
        return Request("gemini", body)
    if body.get("messages") and isinstance(body["messages"], list):
        return Request(_format_of_messages(body), body)
    if body.get("input") and _is_conversation(body["input"]):
        return Request("openai-responses", body)
    return None


def format_of(body: Mapping[str, Any]) -> Format:
    """Return the format of a body that has one of the fields of a conversation."""
    if "contents" in body:
        return "gemini"
    return _format_of_messages(body) if "messages" in body else "openai-responses"


def _is_conversation(items: Any) -> bool:
    """Whether an `input` is one of the Responses API: that of embeddings is a text, texts or tokens."""
    return isinstance(items, list) and isinstance(items[0], Mapping)


def _format_of_messages(body: Mapping[str, Any]) -> Format:
    """Return which of the two formats with `messages` a body has; where nothing tells them apart, they are alike."""
    tools = body.get("tools")
    if "system" in body or (isinstance(tools, list) and any("input_schema" in mapping_or_empty(t) for t in tools)):
        return "anthropic"
    messages = body["messages"] if isinstance(body["messages"], list) else []
    contents = (mapping_or_empty(m).get("content") for m in messages)
    kinds = {str(mapping_or_empty(b).get("type")) for c in contents if isinstance(c, list) for b in c}
    return "openai-chat" if ANTHROPIC_BLOCKS.isdisjoint(kinds) else "anthropic"
