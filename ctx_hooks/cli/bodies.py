"""Bodies of requests as clients send them: where they stand, and in which format they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ctx_hooks.cli.replay.lines import loads
from ctx_hooks.cli.replay.recorded import mapping_of
from ctx_hooks.conversation.model import Format
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


def _is_conversation(items: Any) -> bool:
    """Whether an `input` is one of the Responses API: that of embeddings is a text, texts or tokens."""
    return isinstance(items, list) and isinstance(items[0], Mapping)


def _format_of_messages(body: Mapping[str, Any]) -> Format:
    """Return which of the two formats with `messages` a body has; where nothing tells them apart, they are alike."""
    tools = body.get("tools")
    if "system" in body or (isinstance(tools, list) and any("input_schema" in mapping_of(t) for t in tools)):
        return "anthropic"
    contents = (mapping_of(m).get("content") for m in body["messages"])
    kinds = {str(mapping_of(b).get("type")) for c in contents if isinstance(c, list) for b in c}
    return "openai-chat" if ANTHROPIC_BLOCKS.isdisjoint(kinds) else "anthropic"


def json_of(value: Any) -> Any:
    """Return a value that may be given as its JSON text, as the columns of a CSV are; a text that is no JSON as it is."""
    if not isinstance(value, str) or value[:1] not in ("{", "["):
        return value
    try:
        return loads(value)
    except (ValueError, RecursionError):
        return value
