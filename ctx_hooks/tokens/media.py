"""Estimate the tokens of images, sounds and files from their headers."""

import base64
import binascii
import math
import re
import struct
from collections.abc import Mapping
from typing import Any

from ctx_hooks.conversation.model import Media
from ctx_hooks.formats import ANTHROPIC, GEMINI, RESPONSES
from ctx_hooks.formats.fields import mapping_or_empty

UNKNOWN_IMAGE_TOKENS = 300
"""The figure for an image of unknown size (nanobot)."""
ANTHROPIC_PIXELS_PER_TOKEN = 750
"""Anthropic's vision guide: tokens = width * height / 750, images scaled down to 1,568 pixels on the long side."""
ANTHROPIC_LONG_SIDE_PIXELS = 1568
OPENAI_BASE_TOKENS = 85
OPENAI_TILE_TOKENS = 170
OPENAI_TILE_PIXELS = 512
"""OpenAI's vision guide: 85 + 170 per 512-pixel tile, after fitting into 2,048 and scaling the short side to 768."""
OPENAI_LONG_SIDE_PIXELS = 2048
OPENAI_SHORT_SIDE_PIXELS = 768
AUDIO_BYTES_PER_TOKEN = 1_600
"""Ten tokens a second of 16 kB/s speech."""
GEMINI_TILE_TOKENS = 258
GEMINI_WHOLE_PIXELS = 384
GEMINI_LONG_SIDE_PIXELS = 3_072
GEMINI_TILES_PER_SHORT_SIDE = 1.5
GEMINI_LEAST_TILE_PIXELS, GEMINI_LARGEST_TILE_PIXELS = 256, 768
"""Google's guides to tokens and images: 258 tokens for an image of at most 384 pixels on both sides, and for each tile of a
larger one, scaled to at most 3,072 pixels before; a tile's side is the smaller dimension divided by 1.5, from 256 to 768."""
GEMINI_AUDIO_BYTES_PER_TOKEN = 500
"""Google: "Audio is converted to tokens at a fixed rate of 32 tokens per second", here of 16 kB/s speech."""
FILE_BYTES_PER_TOKEN = 16
"""A PDF page of about 50 kB reads as about 3,000 tokens."""
TEXT_BYTES_PER_TOKEN = 4
"""English text; a file with the type of a text counts as text."""
MOST_FILE_TOKENS = 300_000
"""A hundred pages of 3,000 tokens: Anthropic and OpenAI read no more of a file."""
SEALED_CHARS_PER_TOKEN = 6
"""Base64 of four and a half bytes a token, the usual length of English thinking."""
OPENAI_SEALED_OVERHEAD_BYTES = 650
OPENAI_SEALED_BYTES_PER_TOKEN = 3.4
"""A bound: no usage includes OpenAI's reasoning, so no ratio corrects this figure. Codex assumes 650 bytes for the
encryption and four bytes for a token; English has 4.3 bytes a token, Chinese 4.8, Japanese 3.43."""
BASE64_CHARS_PER_BYTE = 4 / 3
DEPTH = 3
"""How deep a block's payload lies in it."""
LEAST_PAYLOAD_CHARS = 200
"""Ids and names are shorter."""
BASE64 = re.compile(r"[A-Za-z0-9+/_-]+")
HEADER_CHARS = 65_536
"""A JPEG's size follows its metadata, in practice within the first 48 kB."""


def media_tokens(media: Media, fmt: str) -> int:
    """Return the estimated tokens of the payload of `media` at a provider of the format `fmt`."""
    if media.kind == "sealed":
        if fmt != RESPONSES:
            return media.size_chars // SEALED_CHARS_PER_TOKEN
        size_bytes = int(media.size_chars / BASE64_CHARS_PER_BYTE) - OPENAI_SEALED_OVERHEAD_BYTES
        return int(max(0, size_bytes) / OPENAI_SEALED_BYTES_PER_TOKEN)
    payload = _payload(media.raw)
    size_bytes = int(len(payload) / BASE64_CHARS_PER_BYTE)
    if media.kind == "audio":
        return max(1, size_bytes // (GEMINI_AUDIO_BYTES_PER_TOKEN if fmt == GEMINI else AUDIO_BYTES_PER_TOKEN))
    size = _pixels(payload)
    if size is None:
        return UNKNOWN_IMAGE_TOKENS if media.kind == "image" else _file_tokens(media.raw, size_bytes)
    if fmt == ANTHROPIC:
        scale = min(1.0, ANTHROPIC_LONG_SIDE_PIXELS / max(size))
        return max(1, math.ceil(size[0] * size[1] * scale * scale / ANTHROPIC_PIXELS_PER_TOKEN))
    if fmt == GEMINI:
        return _gemini_image(*size)
    block = mapping_or_empty(media.raw)
    is_low = (mapping_or_empty(block.get("image_url")) or block).get("detail") == "low"
    return OPENAI_BASE_TOKENS if is_low else _openai_image(*size)


def has_known_size(block: Any) -> bool:
    """Whether `block` is, or carries, an image whose width and height can be read here; nothing else has a known cost."""
    return _pixels(_payload(block)) is not None


def _file_tokens(block: Any, size_bytes: int) -> int:
    if any(value.startswith("data:text/") for value in _strings(block, depth=DEPTH)):
        return size_bytes // TEXT_BYTES_PER_TOKEN
    return min(max(UNKNOWN_IMAGE_TOKENS, size_bytes // FILE_BYTES_PER_TOKEN), MOST_FILE_TOKENS)


def _gemini_image(width: int, height: int) -> int:
    if max(width, height) <= GEMINI_WHOLE_PIXELS:
        return GEMINI_TILE_TOKENS
    scale = min(1.0, GEMINI_LONG_SIDE_PIXELS / max(width, height))
    wanted = int(min(width, height) * scale / GEMINI_TILES_PER_SHORT_SIDE)
    side = min(max(wanted, GEMINI_LEAST_TILE_PIXELS), GEMINI_LARGEST_TILE_PIXELS)
    return GEMINI_TILE_TOKENS * math.ceil(width * scale / side) * math.ceil(height * scale / side)


def _openai_image(width: int, height: int) -> int:
    scale = min(1.0, OPENAI_LONG_SIDE_PIXELS / max(width, height))
    scale *= min(1.0, OPENAI_SHORT_SIDE_PIXELS / (min(width, height) * scale))
    tiles = math.ceil(width * scale / OPENAI_TILE_PIXELS) * math.ceil(height * scale / OPENAI_TILE_PIXELS)
    return OPENAI_BASE_TOKENS + OPENAI_TILE_TOKENS * tiles


def _payload(block: Any) -> str:
    """Return the base64 text of a media block, or "" if it is a URL or an id."""
    for value in _strings(block, depth=DEPTH):
        if value.startswith("data:"):
            return value.partition(",")[2]
        if len(value) > LEAST_PAYLOAD_CHARS and BASE64.fullmatch(value, 0, LEAST_PAYLOAD_CHARS):
            return value
    return ""


def _strings(value: Any, depth: int) -> list[str]:
    if isinstance(value, str):
        return [value]
    if not isinstance(value, Mapping) or not depth:
        return []
    return [s for v in value.values() for s in _strings(v, depth - 1)]


def _pixels(payload: str) -> tuple[int, int] | None:
    """Return width and height from a PNG, GIF, WebP or JPEG header, None for anything else."""
    head = payload[:HEADER_CHARS]
    try:
        data = base64.b64decode(head[: len(head) // 4 * 4])
    except (binascii.Error, ValueError):
        return None
    size: tuple[int, int] | None = None
    if data[:8] == b"\x89PNG\r\n\x1a\n" and len(data) >= 24:  # noqa: PLR2004 - offsets of the format
        size = struct.unpack(">II", data[16:24])
    elif data[:4] == b"GIF8" and len(data) >= 10:  # noqa: PLR2004
        size = struct.unpack("<HH", data[6:10])
    elif data[:4] == b"RIFF" and data[12:16] == b"VP8X" and len(data) >= 30:  # noqa: PLR2004
        size = (int.from_bytes(data[24:27], "little") + 1, int.from_bytes(data[27:30], "little") + 1)
    elif data[:4] == b"RIFF" and data[12:16] == b"VP8L" and len(data) >= 25:  # noqa: PLR2004
        bits = int.from_bytes(data[21:25], "little")
        size = ((bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1)
    elif data[:4] == b"RIFF" and data[12:16] == b"VP8 " and len(data) >= 30:  # noqa: PLR2004
        width, height = struct.unpack("<HH", data[26:30])
        size = (width & 0x3FFF, height & 0x3FFF)
    elif data[:2] == b"\xff\xd8":
        size = _jpeg_size(data)
    return size if size and min(size) > 0 else None


def _jpeg_size(data: bytes) -> tuple[int, int] | None:
    """Walk the segments up to the frame header (SOF0 to SOF15 without the tables' markers)."""
    i = 2
    while i + 9 < len(data) and data[i] == 0xFF:  # noqa: PLR2004
        marker = data[i + 1]
        if 0xC0 <= marker <= 0xCF and marker not in {0xC4, 0xC8, 0xCC}:  # noqa: PLR2004
            height, width = struct.unpack(">HH", data[i + 5 : i + 9])
            return width, height
        i += 2 + int.from_bytes(data[i + 2 : i + 4], "big")
    return None
