"""Read JSON values of any kind, text or data such as an image in base64; all formats share these functions."""

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from typing import Any, Literal

import orjson

from ctx_hooks.conversation.model import Media, MediaKind, Opaque, Reasoning, Role
from ctx_hooks.errors import MalformedConversationError

Format = Literal["openai-chat", "anthropic", "openai-responses", "gemini"]
CHAT: Format = "openai-chat"
ANTHROPIC: Format = "anthropic"
RESPONSES: Format = "openai-responses"
GEMINI: Format = "gemini"
MAPPINGS = (dict, Mapping)
"""For `isinstance`: it finds a `dict` ten times faster than with only `Mapping`, and each message has many values."""
OPENAI_ROLES: dict[str, Role] = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}
CACHE_MARKER = "cache_control"
MAX_DEPTH = 100
"""Deepest nesting that is read (Python's stack ends near 1,000); a value below is text: see `DeepJson`."""
MEDIA_KINDS: Mapping[str, MediaKind] = {
    **dict.fromkeys(("image", "image_url", "input_image", "computer_screenshot"), "image"),
    **dict.fromkeys(("audio", "audio_url", "input_audio"), "audio"),
    **dict.fromkeys(("file", "input_file", "document", "video", "video_url", "input_video"), "file"),
}
REFERENCES = frozenset({"image_url", "file_url", "video_url", "audio_url", "file_id", "source"})
"""Fields of a media block. In an unknown item, a mapping of type "file" without any may be a line of a listing."""
MOST_FRAME_CHARS = 500
"""Up to this size, the rest of a media block is type, name and format; more is text for the model, or a signed URL."""
DATA_URL = re.compile(r"data:[\w.+-]*/?[\w.+-]*(?:;[\w.+-]+=[^;,]{0,100}){0,5};base64,", re.IGNORECASE)
LEAST_PAYLOAD_CHARS = 1_000
"""Shorter base64 costs little as text; keys, digests and signatures of requests are shorter."""
SAMPLE_CHARS = 256
"""All but one in 10,000 random base64 samples of this size contain a digit, a small and a capital letter."""
BASE64 = re.compile(r"[A-Za-z0-9+/_-]+={0,2}")
TEXT_FIELDS = frozenset({"text", "content", "output", "arguments", "thinking", "reasoning_content"})
"""Fields whose strings a model reads as text, base64 too."""
SEALED_FIELDS = frozenset({"encrypted_content", "encrypted_stdout", "encrypted_index"})
SIGNATURE_FIELDS = frozenset({"signature", "thought_signature", "thoughtSignature"})
"""Fields that prove that thinking is the model's own. No provider bills them."""
_UNCHANGING = frozenset({str, int, float, bool, type(None)})
_COMPACT = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=str)


class DeepJson(str):
    """The JSON text of a value that is nested deeper than MAX_DEPTH."""

    __slots__ = ()


def items_of(messages: Any) -> Sequence[Any]:
    """Return `messages` if it is a list, else raise MalformedConversationError."""
    if not isinstance(messages, (list, tuple)):
        raise MalformedConversationError(f"messages must be a list, not {type(messages).__name__}")
    return messages


def compact_json(value: Any) -> str:
    """Return `value` as compact JSON text; a value that JSON cannot represent becomes its `str`."""
    return _COMPACT.encode(value)


def json_of(value: Any) -> bytes:
    """Return any value as compact JSON; raises RecursionError or ValueError if it is nested too deeply."""
    with suppress(TypeError):  # lone surrogates, huge integers and foreign objects, which the standard library accepts
        return orjson.dumps(value)
    return compact_json(value).encode("utf-8", "surrogatepass")


def preamble_of(*values: Any) -> tuple[tuple[str, ...], int]:
    """Return the texts before the messages, one for each block or tool, and the number of cache markers; no text is sent."""
    blocks = [block for value in values if value for block in (value if isinstance(value, (list, tuple)) else (value,))]
    return tuple(map(_counted_text, blocks)), sum(map(_markers, blocks))


def _counted_text(block: Any) -> str:
    if isinstance(block, str):
        return block
    try:
        return json_of(block).decode("utf-8", "surrogatepass")
    except (RecursionError, ValueError):
        raise MalformedConversationError("the system text or a tool is nested too deeply to be read") from None


def _markers(block: Any) -> int:
    own = mapping_or_empty(block)
    places = (own, mapping_or_empty(own.get("function")))  # of a chat tool
    return sum(place.get(CACHE_MARKER) is not None for place in places)


def unmarked(item: Any) -> Any:
    """Return a message without cache markers; the same object if nothing differs."""
    if not isinstance(item, Mapping):
        return item
    content = said = item.get("content")
    if isinstance(content, (list, tuple)):
        said = [unmarked(block) for block in content]
        # Clients such as Claude Code write a marked text as a block, and an unmarked one as a string.
        if len(said) == 1 and isinstance(said[0], Mapping) and said[0].keys() == {"type", "text"}:
            said = said[0]["text"]
        elif all(new is old for new, old in zip(said, content, strict=True)):
            said = content
    if said is content and CACHE_MARKER not in item:
        return item
    return {name: said if name == "content" else value for name, value in item.items() if name != CACHE_MARKER}


def copied(value: Any, levels: int = MAX_DEPTH) -> Any:
    """Return a copy of a JSON value; what is nested too deeply becomes a `DeepJson`, and that a value again in its copy."""
    kind = type(value)
    if kind is DeepJson:
        return json.loads(value)
    if kind is not dict and kind is not list:
        return value if kind in _UNCHANGING else deepcopy(value)
    if not levels:
        try:
            return DeepJson(compact_json(value))
        except RecursionError:
            raise MalformedConversationError("a message is nested too deeply to be written as JSON") from None
    if kind is list:
        return [copied(inner, levels - 1) for inner in value]
    return {name: inner if type(inner) is str else copied(inner, levels - 1) for name, inner in value.items()}


def text_or_empty(value: Any) -> str:
    """Return `value` if it is a string, else the empty string."""
    return value if isinstance(value, str) else ""


def mapping_or_empty(value: Any) -> Mapping[str, Any]:
    """Return `value` if it is a mapping, else an empty one. Most are None, for which `isinstance` takes long."""
    return value if value is not None and isinstance(value, MAPPINGS) else {}


def listed(value: Any) -> Sequence[Any]:
    """Return `value` if it is a list, else an empty one."""
    return value if isinstance(value, (list, tuple)) else ()


def may_be_payload(text: str) -> bool:
    """Return False for nearly every text that is no data URL and no long base64: a quick look at its beginning."""
    is_long = len(text) >= LEAST_PAYLOAD_CHARS and text.find(" ", 0, SAMPLE_CHARS) < 0
    return is_long or text.startswith(("data:", "DATA:"))


def is_payload(text: str) -> bool:
    """Whether `text` is a data URL or long base64; the error of taking text for one costs only a retry."""
    if not may_be_payload(text):
        return False
    if DATA_URL.match(text):
        return True
    if len(text) < LEAST_PAYLOAD_CHARS:
        return False
    places = (0, len(text) // 2, len(text) - SAMPLE_CHARS)
    samples = [text[at : at + SAMPLE_CHARS].replace("\n", "").replace("\r", "") for at in places]
    kinds = (re.search(kind, "".join(samples)) for kind in ("[0-9]", "[a-z]", "[A-Z]"))
    return all(map(BASE64.fullmatch, samples)) and all(kinds)


def payload_kind(field: str, text: str) -> MediaKind | None:
    """Return the kind of payload of the string in `field`; None if it is text."""
    if field in TEXT_FIELDS or not is_payload(text):
        return None
    if field in SEALED_FIELDS:
        return "sealed"
    return media_kind(text[len("data:") :] if DATA_URL.match(text) else "")


def media_kind(mime: str) -> MediaKind:
    """Return the kind of media that a MIME type names; "" is a file."""
    return MEDIA_KINDS.get(mime.partition("/")[0].lower(), "file")


def media_of(block: Mapping[str, Any]) -> Media | None:
    """Return the block as Media if its type is an image, a sound or a file, but no document made of content blocks."""
    kind = MEDIA_KINDS.get(text_or_empty(block.get("type")))
    source = block.get("source")
    if kind is None or (isinstance(source, Mapping) and isinstance(source.get("content"), (list, tuple))):
        return None
    frame, payloads = _split_values(block)
    text = compact_json(frame)
    size_chars = len(text) + sum(payload.size_chars for payload in payloads)
    return Media(kind, size_chars, raw=block, text=text if len(text) > MOST_FRAME_CHARS else "")


def opaque_of(value: Any) -> Opaque:
    """Return a value that no format module knows: its JSON text, and all media inside it."""
    rest, media = _split(value, "")
    return Opaque(compact_json(rest), raw=value, media=media)


def reasoning_of(value: Any, raw: Any) -> Reasoning:
    """Return thinking that is not plain text, without signatures."""
    found = opaque_of(value)
    return Reasoning(found.text, raw=raw, media=found.media)


def _split(value: Any, field: str) -> tuple[Any, tuple[Media, ...]]:
    """Return `value` without its payloads, and the payloads as media; `field` is the name of its field."""
    if isinstance(value, str):
        if field in SIGNATURE_FIELDS and is_payload(value):
            return "", ()
        kind = payload_kind(field, value)
        return ("", (Media(kind, len(value), raw=value),)) if kind else (value, ())
    if isinstance(value, (list, tuple)):
        split = [_split(inner, field) for inner in value]
        return [rest for rest, _ in split], tuple(media for _, found in split for media in found)
    if not isinstance(value, Mapping):
        return value, ()
    media = None if REFERENCES.isdisjoint(value) else media_of(value)
    return (None, (media,)) if media else _split_values(value)


def _split_values(value: Mapping[Any, Any]) -> tuple[dict[Any, Any], tuple[Media, ...]]:
    split = {name: _split(inner, text_or_empty(name)) for name, inner in value.items()}
    return {name: rest for name, (rest, _) in split.items()}, tuple(m for _, found in split.values() for m in found)
