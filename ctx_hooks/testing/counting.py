"""The provider's token count, independent of the plugin's."""

import json
import os
from collections.abc import Mapping
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import tiktoken

from ctx_hooks.testing.behaviour import Format, ProviderSettings

IMAGE_TOKENS = 300
MESSAGE_TOKENS, TOOL_TOKENS = 4, 8
"""What each message and each tool definition adds."""
UNCOUNTED_KEYS = frozenset(
    {"type", "role", "id", "tool_use_id", "tool_call_id", "call_id", "signature", "cache_control", "thoughtSignature"}
)
ITEMS: Mapping[Format, str] = {
    "openai-chat": "messages",
    "anthropic": "messages",
    "openai-responses": "input",
    "gemini": "contents",
}
SYSTEM_TEXTS = ("system", "instructions", "system_instruction", "systemInstruction")
PIECE_CHARS = 20_000
"""Long texts are encoded in pieces: the encoder's time grows faster than a text without breaks."""


def count_payload(fmt: Format, payload: Mapping[str, Any], settings: ProviderSettings) -> int:
    """Return the provider's tokens of the payload's input."""
    items = payload.get(ITEMS[fmt])
    listed = items if isinstance(items, list) else [items]
    tools = payload.get("tools") or []
    tokens = sum(_tokens(_text(i)) + MESSAGE_TOKENS + IMAGE_TOKENS * _images(i) for i in listed)
    tokens += sum(_tokens(_text(payload.get(k))) for k in SYSTEM_TEXTS)
    tokens += sum(_tokens(json.dumps(t)) + TOOL_TOKENS for t in tools)
    return int(tokens * settings.tokens_factor)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return "" if value.startswith("data:") else value
    if isinstance(value, Mapping):
        if _is_image(value):
            return ""
        return "\n".join(_text(v) for k, v in value.items() if k not in UNCOUNTED_KEYS)
    if isinstance(value, list):
        return "\n".join(map(_text, value))
    return "" if value is None else str(value)


def _images(value: Any) -> int:
    if isinstance(value, Mapping):
        return 1 if _is_image(value) else sum(map(_images, value.values()))
    return sum(map(_images, value)) if isinstance(value, list) else 0


def _is_image(value: Mapping[str, Any]) -> bool:
    return value.get("type") in {"image", "image_url", "input_image"} or "inlineData" in value or "inline_data" in value


def _tokens(text: str) -> int:
    encode = _encoding().encode_ordinary
    return sum(len(encode(text[i : i + PIECE_CHARS])) for i in range(0, len(text), PIECE_CHARS))


@lru_cache(maxsize=1)
def _encoding() -> tiktoken.Encoding:
    spec = find_spec("litellm")
    for root in (spec.submodule_search_locations if spec else None) or ():
        os.environ.setdefault("TIKTOKEN_CACHE_DIR", str(Path(root, "litellm_core_utils", "tokenizers")))
    return tiktoken.get_encoding("cl100k_base")
