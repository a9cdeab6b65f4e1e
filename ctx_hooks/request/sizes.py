"""An upper bound of a request's tokens, fast enough for the event loop, and content that only its provider can count."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import starmap
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from ctx_hooks.formats.fields import (
    MAPPINGS,
    MEDIA_KINDS,
    SEALED_FIELDS,
    SIGNATURE_FIELDS,
    is_payload,
    payload_kind,
    text_or_empty,
)
from ctx_hooks.formats.gemini import MEDIA_FIELDS
from ctx_hooks.runtime.content_cache import AT_ONCE_CHARS
from ctx_hooks.tokens.media import has_known_size
from ctx_hooks.tokens.units import LocalTokens

if TYPE_CHECKING:
    from ctx_hooks.request.request import Request

VALUE_TOKENS = 8
"""More than the brackets, colon and comma around a value, and more than the overhead of a message, call or result."""
NUMBER_TOKENS = 25
"""The longest float, `-2.2250738585072014e-308`, has 24 characters, and a token has at least one."""
INTEGER_BITS = 64
BITS_PER_DIGIT = 3
"""A decimal digit holds 3.3 bits."""
MOST_MEDIA_TOKENS = 4_200
"""More than any image costs beside its base64 text: 4,128 at Google, 3,279 at Anthropic."""
ESCAPED_BYTES = 6
"""The most bytes that a character takes in JSON."""
MOST_VALUES = 5_000
"""About 3 ms of reading; a request of more values, such as a thousand messages, is counted in a thread."""
SHORT_CHARS = 32
"""Names of fields, roles and types: a few frequent strings, each of which is read once."""


class Bound(NamedTuple):
    """An upper bound of the tokens, and the short texts and names of fields, None if not all was read."""

    tokens: int
    short_texts: Counter[Any] | None

    def may_have(self, name: str) -> bool:
        """Whether the request may have a field of that name anywhere: no if all of it was read, and none has it."""
        return self.short_texts is None or name in self.short_texts


def bound_of(values: Iterable[Any], enough: int, most_values: float = MOST_VALUES) -> Bound:
    """Return an upper bound of the tokens of JSON `values`, in every vocabulary.

    A token has at least one byte, so the bytes of the JSON text bound its tokens. Fixed costs a message, and content that
    costs more than its text, are added. Once the bound is above `enough`, reading stops; with more than `most_values` it is.
    """
    waiting, texts, short = list(values), list[str](), list[Any]()
    chars, held, tokens = 0, len(waiting), 0
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            chars += len(value)
            (texts if len(value) > SHORT_CHARS else short).append(value)
        elif isinstance(value, MAPPINGS):
            held += len(value)
            kind = value.get("type")
            if (isinstance(kind, str) and kind in MEDIA_KINDS) or not MEDIA_FIELDS.isdisjoint(value):
                tokens += MOST_MEDIA_TOKENS
            short += value
            waiting += value.values()
        elif isinstance(value, (list, tuple)):
            held += len(value)
            waiting += value
        elif value is None or isinstance(value, (int, float)):
            bits = value.bit_length() if isinstance(value, int) else 0
            tokens += NUMBER_TOKENS + (bits // BITS_PER_DIGIT if bits > INTEGER_BITS else 0)
        else:  # a value that is no JSON counts as its text
            texts.append(str(value))
        if chars > enough or held > most_values:  # only string lengths are read so far: there are at least as many bytes
            return Bound(enough + 1, None)
    counted = Counter(short)
    tokens += VALUE_TOKENS * held
    for text, times in counted.items():
        tokens += times * _string_tokens(str(text), enough)
    while texts and tokens <= enough:
        tokens += _string_tokens(texts.pop(), enough - tokens)
    return Bound(tokens, counted)


def _string_tokens(text: str, enough: int) -> int:
    if len(text) > enough:
        return len(text)
    if len(text) > AT_ONCE_CHARS:
        return sum(_string_tokens(text[i : i + AT_ONCE_CHARS], enough) for i in range(0, len(text), AT_ONCE_CHARS))
    try:
        size = len(orjson.dumps(text))
    except TypeError:
        # A lone surrogate, which orjson's JSON cannot contain.
        size = len(text) * ESCAPED_BYTES
    return size + MOST_MEDIA_TOKENS if is_payload(text) else size


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
