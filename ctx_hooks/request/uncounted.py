"""Whether a request holds what only the provider can count: its size here says nothing of the provider's limit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ctx_hooks.formats.fields import MEDIA_KINDS, text_or_empty
from ctx_hooks.formats.payloads import SEALED_FIELDS, SIGNATURE_FIELDS, payload_kind
from ctx_hooks.tokens.media import has_known_size
from ctx_hooks.tokens.units import LocalTokens

UNCOUNTED_FIELDS = (
    "previous_response_id",
    "conversation",
    "prompt",
    "container",
    "mcp_servers",
    "cached_content",
    "cachedContent",
    "web_search_options",
    "search_parameters",
    "enable_search",
    "plugins",
    "vector_store_ids",
    "documents",
    "data_sources",
)
"""Fields that name or fetch text on the provider's side, or have it change what was sent.

OpenAI: stored responses, conversations and prompt templates, web search. Anthropic: containers, MCP servers; context
editing only takes away, and coding agents ask for it in every request. Gemini: cached content. xAI, DashScope,
OpenRouter, LiteLLM's vector stores, Cohere, Azure: search and retrieval.
"""
NOT_GIVEN: tuple[object, ...] = (None, False, "", [])
"""Values of a field that asks for nothing; `web_search_options: {}` asks for a search (OpenAI's own example)."""
SYSTEM_FIELDS = ("system", "systemInstruction", "system_instruction")
"""Fields that may hold more than text beside the messages."""
COUNTED_TOOL_TYPES = frozenset({"", "function", "custom", "namespace"})
"""Tools that are wholly defined in the request. Any other type is the provider's, with instructions of its own."""
FETCHED_TOOL_TYPES = frozenset({"mcp", "mcp_toolset"})
FETCHED_TOOL_NAMES = frozenset({"retrieval", "googleSearchRetrieval", "google_search_retrieval"})
"""Tools whose definitions or texts the provider fetches for every request."""
HOSTED_TOOL_TOKENS = LocalTokens(1_000)
"""The most that the definition of a tool of the provider's adds: Anthropic states 245 tokens for bash, 700 for the text
editor, and 735 with a prompt of 499 for computer use, of which the prompt is in every request with tools."""
HOSTED_CALL_TYPES = frozenset(
    {
        "web_search_call",
        "file_search_call",
        "code_interpreter_call",
        "server_tool_use",
        "web_search_tool_result",
        "web_fetch_tool_result",
        "code_execution_tool_result",
    }
)
"""What a hosted tool leaves in the history: a call without its results, or results that are sealed and sent again."""
TOOL_DEFINITIONS = frozenset({"name", "function", "functionDeclarations", "function_declarations"})
"""Fields of which a tool without a type has one; Gemini's search has none: `{"googleSearch": {}}`."""
UNCOUNTED_TYPES = frozenset(
    {
        "item_reference",
        "compaction",
        "container_upload",
        "image_generation_call",
        "mcp_call",
        "mcp_list_tools",
        "media",
        *HOSTED_CALL_TYPES,
    }
)
"""Types of items and blocks that refer to or stand for what the provider keeps, did or watches itself."""
UNCOUNTED_KEYS = frozenset(
    {
        "file_id",
        "file_ids",
        "file_url",
        "file_uri",
        "fileUri",
        "container_id",
    }
)
COUNTED_TYPES = frozenset({"tool_use", "function_call", "custom_tool_call", "function", "custom", "redacted_thinking"})
"""Calls of the caller's tools, whose arguments are text whatever they hold; and sealed reasoning, which is guessed."""


def has_uncounted_content(
    fields: Mapping[str, Any], items: object, uncounted_types: frozenset[str] = UNCOUNTED_TYPES
) -> bool:
    """Return whether a request, of these `fields` and message `items`, holds content whose tokens cannot be counted here.

    Such are stored histories, templates and caches, files, documents and sounds, images by reference, and what a tool
    that the provider runs has left; a tool that is only offered adds a definition of `hosted_tools_tokens` at most. An image
    whose size in pixels can be read is counted. The walk is linear and ends at the first find.
    """
    tools = fields.get("tools")
    return (
        fields.get("truncation") == "auto"
        or any(fields.get(name) not in NOT_GIVEN for name in UNCOUNTED_FIELDS)
        or (isinstance(tools, (list, tuple)) and any(_is_fetched(tool) for tool in tools))
        or _holds_uncounted([items, *map(fields.get, SYSTEM_FIELDS)], uncounted_types)
    )


def hosted_tools_tokens(tools: object) -> LocalTokens:
    """Return the most that the definitions of the provider's own tools add to a request that offers these."""
    hosted = sum(map(_is_hosted, tools)) if isinstance(tools, (list, tuple)) else 0
    return LocalTokens(HOSTED_TOOL_TOKENS * hosted)


def _is_fetched(tool: object) -> bool:
    if not isinstance(tool, Mapping):
        return False
    return text_or_empty(tool.get("type")) in FETCHED_TOOL_TYPES or not FETCHED_TOOL_NAMES.isdisjoint(tool)


def _is_hosted(tool: object) -> bool:
    if not isinstance(tool, Mapping):
        return False
    kind = text_or_empty(tool.get("type"))
    return kind not in COUNTED_TOOL_TYPES or (not kind and TOOL_DEFINITIONS.isdisjoint(tool))


def _holds_uncounted(waiting: list[object], uncounted_types: frozenset[str]) -> bool:
    while waiting:
        value = waiting.pop()
        if isinstance(value, (list, tuple)):
            waiting += value
        elif isinstance(value, Mapping):
            kind = text_or_empty(value.get("type"))
            if kind in uncounted_types or any(value.get(key) for key in UNCOUNTED_KEYS):
                return True
            if kind in MEDIA_KINDS and not _is_text(value.get("source")):
                if not has_known_size(value):
                    return True
            elif kind not in COUNTED_TYPES:
                if any(_is_uncounted_string(key, inner) for key, inner in value.items()):
                    return True
                waiting += value.values()
    return False


def _is_text(source: object) -> bool:
    """Whether this is the source of an Anthropic document that is given as text or as content blocks."""
    return isinstance(source, Mapping) and source.get("type") in ("text", "content")


def _is_uncounted_string(key: object, value: object) -> bool:
    if not isinstance(value, str) or key in SIGNATURE_FIELDS or key in SEALED_FIELDS:
        return False
    return payload_kind(str(key), value) is not None and not has_known_size(value)
