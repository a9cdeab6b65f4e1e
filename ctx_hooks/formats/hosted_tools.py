"""Whether a tool that the provider runs was used for an answer: its input is billed, and was not sent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

CALLERS_CALLS = frozenset(
    {"function_call", "custom_tool_call", "local_shell_call", "shell_call", "apply_patch_call", "computer_call"}
)
"""Items of a Responses answer that call tools of the caller's, whoever has defined them."""
SEARCH_NOTES = ("groundingMetadata", "grounding_metadata", "vertex_ai_grounding_metadata", "annotations")
"""What an answer has beside its text if a search was made for it (Google, OpenAI's chat)."""
USAGE_NOTES = ("server_tool_use", "toolUsePromptTokenCount", "web_search_requests", "num_search_queries", "num_sources_used")


def used_hosted_tools(answer: Any) -> bool:
    """Return whether an answer of any route says that the provider ran a tool for it.

    >>> used_hosted_tools({"output": [{"type": "web_search_call"}, {"type": "message"}]})
    True
    >>> used_hosted_tools({"output": [{"type": "function_call"}]})
    False
    """
    usage = _field(answer, "usage") or _field(answer, "usageMetadata")
    details = _field(usage, "prompt_tokens_details")
    blocks = [_field(block, "type") for name in ("output", "content") for block in _items(_field(answer, name))]
    choices = [choice for name in ("choices", "candidates") for choice in _items(_field(answer, name))]
    notes = [_field(holder, n) for c in choices for holder in (c, _field(c, "message")) for n in SEARCH_NOTES]
    return (
        any(_says_something(_field(record, name)) for record in (usage, details) for name in USAGE_NOTES)
        or any(map(_is_hosted, blocks))
        or any(map(_says_something, [*notes, _field(answer, "vertex_ai_grounding_metadata")]))
    )


def _is_hosted(kind: Any) -> bool:
    name = str(getattr(kind, "value", kind) or "")
    return name == "server_tool_use" or (name.endswith("_call") and name not in CALLERS_CALLS)


def _says_something(value: Any) -> bool:
    """Whether a note holds a figure above 0 or any entry."""
    if isinstance(value, Mapping):
        return any(map(_says_something, value.values()))
    if isinstance(value, (int, float, str, list, tuple)):
        return bool(value)
    return value is not None and any(map(_says_something, getattr(value, "__dict__", {}).values()))


def _items(value: Any) -> Iterable[Any]:
    return value if isinstance(value, (list, tuple)) else ()


def _field(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)
