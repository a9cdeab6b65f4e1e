"""Estimate the tokens of images from their headers; sounds, files and videos have one flat figure."""

import base64
import math
import re
import struct
from collections.abc import Mapping
from typing import Any

from ctx_hooks.conversation.model import Media
from ctx_hooks.formats.fields import RESPONSES

UNKNOWN_IMAGE_TOKENS = 300
"""The figure for an image of unknown size (nanobot)."""
OTHER_TOKENS = 1_500
"""Half a PDF page, or a minute of sound at Google: a refusal shows how much more it is."""
PIXELS_PER_TOKEN, LONGEST_SIDE_PIXELS = 750, 1568
"""Anthropic's vision guide: width * height / 750, scaled down to 1,568 pixels on the long side. For screens and photographs
the tiles of OpenAI and Google cost .5 to 1.6 of it."""
LEAST_IMAGE_TOKENS = 258
"""Google's smallest image; a tile of OpenAI's and its base cost as much."""
SEALED_CHARS_PER_TOKEN = 6
"""Base64 of four and a half bytes a token, the usual length of English thinking."""
OPENAI_SEALED_OVERHEAD_BYTES, OPENAI_SEALED_BYTES_PER_TOKEN = 650, 3.4
"""A bound: no usage includes OpenAI's reasoning, so no ratio corrects this figure. Codex assumes 650 bytes for the
encryption and four bytes for a token; English has 4.3 bytes a token, Chinese 4.8, Japanese 3.43."""
DEPTH = 3
"""How deep a block's payload lies in it."""
LEAST_CHARS = 200
"""Ids and names are shorter than a payload."""
BASE64 = re.compile(r"[A-Za-z0-9+/_-]+")
HEADER_CHARS = 65_536
"""A JPEG's size follows its metadata, in practice within the first 48 kB."""


def media_tokens(media: Media, fmt: str) -> int:
    """Return the estimated tokens of the payload of `media` at a provider of the format `fmt`."""
    if media.kind == "sealed":
        if fmt != RESPONSES:
            return media.size_chars // SEALED_CHARS_PER_TOKEN
        size_bytes = media.size_chars * 3 / 4 - OPENAI_SEALED_OVERHEAD_BYTES
        return int(max(0, size_bytes) / OPENAI_SEALED_BYTES_PER_TOKEN)
    size = _pixels(_payload(media.raw))
    if size is None:
        return UNKNOWN_IMAGE_TOKENS if media.kind == "image" else OTHER_TOKENS
    scale = min(1.0, LONGEST_SIDE_PIXELS / max(size))
    return max(LEAST_IMAGE_TOKENS, math.ceil(math.prod(size) * scale * scale / PIXELS_PER_TOKEN))


def has_known_size(block: Any) -> bool:
    """Whether `block` is, or carries, an image whose width and height can be read here."""
    return _pixels(_payload(block)) is not None


def _payload(block: Any) -> str:
    """Return the base64 text of a media block, or "" if it is a URL or an id."""
    values = [block]
    for _ in range(DEPTH):
        values = [inner for value in values for inner in (value.values() if isinstance(value, Mapping) else (value,))]
    for value in values:
        if isinstance(value, str) and value.startswith("data:"):
            return value.partition(",")[2]
        if isinstance(value, str) and len(value) > LEAST_CHARS and BASE64.fullmatch(value, 0, LEAST_CHARS):
            return value
    return ""


def _pixels(payload: str) -> tuple[int, int] | None:
    """Return width and height from a PNG, GIF, WebP or JPEG header, None for anything else."""
    head = payload[:HEADER_CHARS]
    try:
        size = _size_in(base64.b64decode(head[: len(head) // 4 * 4]))
    except (ValueError, struct.error, IndexError):
        return None
    return size if size and min(size) > 0 else None


def _size_in(data: bytes) -> tuple[int, int] | None:
    if data[:8] == b"\x89PNG\r\n\x1a\n":
        width, height = struct.unpack_from(">II", data, 16)
    elif data[:4] == b"GIF8":
        width, height = struct.unpack_from("<HH", data, 6)
    elif data[:4] == b"RIFF" and data[12:16] == b"VP8X":
        (low, high) = struct.unpack_from("<IH", data, 24)
        width, height = (low & 0xFFFFFF) + 1, (low >> 24 | high << 8) + 1
    elif data[:4] == b"RIFF" and data[12:16] == b"VP8L":
        (bits,) = struct.unpack_from("<I", data, 21)
        width, height = (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    elif data[:4] == b"RIFF" and data[12:16] == b"VP8 ":
        width, height = (side & 0x3FFF for side in struct.unpack_from("<HH", data, 26))
    elif data[:2] == b"\xff\xd8":
        at = 2
        while data[at] == 0xFF and not (0xC0 <= data[at + 1] <= 0xCF and data[at + 1] not in {0xC4, 0xC8, 0xCC}):  # noqa: PLR2004
            at += 2 + int.from_bytes(data[at + 2 : at + 4], "big")  # to the frame's header: SOF0 to SOF15 without the tables
        height, width = struct.unpack_from(">HH", data, at + 5) if data[at] == 0xFF else (0, 0)  # noqa: PLR2004
    else:
        return None
    return width, height
