"""An upper bound of a request's tokens, fast enough for the event loop, and content that only its provider can count."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from itertools import starmap
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from ctx_hooks.formats.fields import (
    MAPPINGS,
    MEDIA_KINDS,
    SEALED_FIELDS,
    SIGNATURE_FIELDS,
    TEXT_FIELDS,
    may_be_payload,
    payload_kind,
    text_or_empty,
)
from ctx_hooks.formats.gemini import MEDIA_FIELDS
from ctx_hooks.formats.wire_format import FLAGS_FIELD
from ctx_hooks.tokens.media import has_known_size
from ctx_hooks.tokens.units import LocalTokens

if TYPE_CHECKING:
    from ctx_hooks.attempts.request import Request

VALUE_TOKENS = 8
"""More than the overhead of a message, call or result, each of which has some fields."""
MOST_MEDIA_TOKENS = 4_200
"""More than any image costs beside its base64 text, 3,279."""
MOST_VALUES, MOST_CHARS = 5_000, 1_000_000
"""About 3 ms of reading each, and at least the tokens of nearly all windows. A request with more is counted in a thread."""
LEAST_MEDIA_CHARS = 32
"""A shorter data URL holds no image, sound or file."""
MARKS = frozenset({"type", FLAGS_FIELD, *MEDIA_FIELDS})
"""Fields of a mapping at which the bound looks more closely."""
UNREAD = sys.maxsize // 2
"""More than the tokens of any window."""


class Bound(NamedTuple):
    """An upper bound of a request's tokens, and whether it may have a field `context`, which may hold the caller's flags."""

    tokens: int
    may_have_flags: bool


def bound_of(  # noqa: C901 - calls of further functions would double its time
    values: Iterable[Any],
    most_chars: int = MOST_CHARS,
    most_values: float = MOST_VALUES,
    write: Callable[[Any], bytes] = orjson.dumps,
) -> Bound:
    """Return an upper bound of the tokens of JSON `values`, in every vocabulary.

    A token has at least one byte, so the bytes of the JSON text bound its tokens. Fixed costs a message, and content that
    costs more than its text, are added. The bound is at least UNREAD if the values have more than `most_chars`
    characters, if they are more than `most_values`, or if `write` cannot make JSON of them.
    """
    row: list[Any] = list(values)
    whole, chars, held, media, has_flags = row, 0, len(row), 0, False
    while row and held <= most_values and chars <= most_chars:
        below: list[Any] = []
        for value in row:
            if isinstance(value, MAPPINGS):
                held += len(value)
                if held > most_values:
                    break
                if not MARKS.isdisjoint(value):
                    media += _is_media(value)
                    has_flags = has_flags or FLAGS_FIELD in value
                for name, inner in value.items():
                    if isinstance(inner, str):
                        chars += len(inner)
                        if len(inner) >= LEAST_MEDIA_CHARS and name not in TEXT_FIELDS and may_be_payload(inner):
                            media += 1
                    else:
                        below.append(inner)
            elif isinstance(value, (list, tuple)):
                held += len(value)
                below += value
            elif isinstance(value, str):
                chars += len(value)
                media += may_be_payload(value)
        row = below
    try:
        # One by one: a text of 600 KB would be written into fresh memory, which takes longer than the writing.
        parts = [part for value in whole for part in (value if isinstance(value, (list, tuple)) else (value,))]
        is_read = held <= most_values and chars <= most_chars
        size = sum([len(write(part)) + 1 for part in parts]) if is_read else UNREAD
    except (TypeError, ValueError, RecursionError):  # a lone surrogate, a larger integer, an object, a deep value
        size = UNREAD
    return Bound(size + VALUE_TOKENS * held + MOST_MEDIA_TOKENS * media + 1, has_flags or size >= UNREAD)


def _is_media(value: Mapping[str, Any]) -> bool:
    kind = value.get("type")
    return (isinstance(kind, str) and kind in MEDIA_KINDS) or not MEDIA_FIELDS.isdisjoint(value)


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
"""Fields that name or fetch text on the provider's side, or make it change the sent text.

OpenAI: stored responses, conversations and prompt templates, web search. Anthropic: containers, MCP servers; context
editing only removes text, and coding agents request it every time. Gemini: cached content. xAI, DashScope,
OpenRouter, LiteLLM's vector stores, Cohere, Azure: search and retrieval.
"""
NOT_GIVEN: tuple[object, ...] = (None, False, "", [])
"""Values of a field that asks for nothing; `web_search_options: {}` asks for a search (OpenAI's own example)."""
SYSTEM_FIELDS = ("system", "systemInstruction", "system_instruction")
"""Fields beside the messages that may contain more than text."""
COUNTED_TOOL_TYPES = frozenset({"", "function", "custom", "namespace"})
"""Tools whose whole definition is in the request. Any other type is the provider's, with its own instructions."""
FETCHED_TOOL_TYPES = frozenset({"mcp", "mcp_toolset"})
FETCHED_TOOL_NAMES = frozenset({"retrieval", "googleSearchRetrieval", "google_search_retrieval"})
"""Tools whose definitions or texts the provider fetches for every request."""
HOSTED_TOOL_TOKENS = LocalTokens(1_000)
"""The most tokens that the definition of a provider's tool adds: Anthropic states 245 for bash, 700 for the text editor, and
735 with a prompt of 499 for computer use; that prompt is in every request with tools."""
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
"""A hosted tool's items in the history: a call without its results, or sealed results that are sent again."""
TOOL_DEFINITIONS = frozenset({"name", "function", "functionDeclarations", "function_declarations"})
"""Fields of which a tool without a type has one; Gemini's search has none: `{"googleSearch": {}}`."""
UNCOUNTED_TYPES = frozenset(
    {"item_reference", "compaction", "container_upload", "image_generation_call", "mcp_call", "mcp_list_tools", "media"}
)
"""Types of items and blocks that refer to or represent content or actions of the provider."""
UNCOUNTED_KEYS = frozenset({"file_id", "file_ids", "file_url", "file_uri", "fileUri", "container_id"})
COUNTED_TYPES = frozenset({"tool_use", "function_call", "custom_tool_call", "function", "custom", "redacted_thinking"})
"""Calls of the caller's tools, whose arguments are always text; and sealed reasoning, which is guessed."""


class Uncounted(NamedTuple):
    """The content of a request that only its provider can count.

    Attributes:
        holds_any: whether it has content that cannot be counted here. An image is counted if its size can be read.
        holds_hosted: whether all of that is calls and sealed results of hosted tools.
        tools_tokens: the most tokens that the definitions of the provider's own tools add.
        holds_unbilled: whether it resends sealed reasoning, which fills the window and is missing in the usage (OpenAI).
    """

    holds_any: bool = False
    holds_hosted: bool = False
    tools_tokens: LocalTokens = LocalTokens(0)
    holds_unbilled: bool = False


def uncounted_in(request: Request) -> Uncounted:
    """Return the uncountable content of a request. The walk is linear."""
    fields, items, tools = request.fields, request.items, request.fields.get("tools")
    named = request.asks_for_truncation or any(fields.get(name) not in NOT_GIVEN for name in UNCOUNTED_FIELDS)
    hosted, others = _uncounted_content([items, *map(fields.get, SYSTEM_FIELDS)])
    others, tools_tokens = others or named, 0
    for tool in tools if isinstance(tools, (list, tuple)) else ():
        if isinstance(tool, Mapping):
            kind = text_or_empty(tool.get("type"))
            others = others or kind in FETCHED_TOOL_TYPES or not FETCHED_TOOL_NAMES.isdisjoint(tool)
            if kind not in COUNTED_TOOL_TYPES or (not kind and TOOL_DEFINITIONS.isdisjoint(tool)):
                tools_tokens += HOSTED_TOOL_TOKENS
    sealed = request.wire.has_items and isinstance(items, (list, tuple)) and any(map(_is_sealed_reasoning, items))
    return Uncounted(hosted or others, hosted and not others, LocalTokens(tools_tokens), sealed)


def _is_sealed_reasoning(item: object) -> bool:
    return isinstance(item, Mapping) and item.get("type") == "reasoning" and bool(item.get("encrypted_content"))


def _uncounted_content(waiting: list[object]) -> tuple[bool, bool]:
    """Return whether values contain items of hosted tools, and whether they contain other uncounted content."""
    hosted = False
    while waiting:
        value = waiting.pop()
        if isinstance(value, (list, tuple)):
            waiting += value
        elif isinstance(value, Mapping):
            kind = text_or_empty(value.get("type"))
            hosted = hosted or kind in HOSTED_CALL_TYPES
            if kind in UNCOUNTED_TYPES or any(map(value.get, UNCOUNTED_KEYS)):
                return hosted, True
            if kind in MEDIA_KINDS and not _is_text(value.get("source")):
                if not has_known_size(value):
                    return hosted, True
            elif kind not in COUNTED_TYPES:
                if any(starmap(_is_uncounted_string, value.items())):
                    return hosted, True
                waiting += value.values()
    return hosted, False


def _is_text(source: object) -> bool:
    """Whether this is the source of an Anthropic document in the form of text or content blocks."""
    return isinstance(source, Mapping) and source.get("type") in ("text", "content")


def _is_uncounted_string(key: object, value: object) -> bool:
    if not isinstance(value, str) or key in SIGNATURE_FIELDS or key in SEALED_FIELDS:
        return False
    return payload_kind(str(key), value) is not None and not has_known_size(value)
