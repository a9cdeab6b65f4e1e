"""Base64 counts as what it stands for, wherever in a request it is; text counts as text, wherever it is."""

import base64
import random
import struct

import pytest

from ctx_hooks.conversation.model import Media
from ctx_hooks.formats import WIRE_FORMATS
from ctx_hooks.tokens.counter import Counter
from ctx_hooks.tokens.media import OTHER_TOKENS, UNKNOWN_IMAGE_TOKENS, media_tokens

COUNTER = Counter("o200k_base")
NOISE = random.Random(7).randbytes(225_000)


def png(width, height):
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + b"IHDR" + struct.pack(">II", width, height) + b"\x08\x02\0\0\0"


PNG = base64.b64encode(png(1280, 800) + NOISE).decode()
ANYTHING = base64.b64encode(NOISE).decode()
STORY = "The night shift began quietly, and nobody knew why the database had stopped. " * 500


def counted(fmt, item):
    return COUNTER.message(WIRE_FORMATS[fmt].read([item]).messages[0], fmt)


def said(block):
    return {"role": "user", "content": [block]}


def tool_result(*blocks):
    return said({"type": "tool_result", "tool_use_id": "u", "content": list(blocks)})


def returned(kind, output):
    return {"type": f"{kind}_output", "call_id": "c", "output": output}


DATA_URL, SOURCE = f"data:image/png;base64,{PNG}", {"type": "base64", "media_type": "image/png", "data": PNG}
IMAGES = [
    ("gemini", {"role": "user", "parts": [{"inlineData": {"mimeType": "image/png", "data": PNG}}]}),
    ("gemini", {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"image": PNG}}}]}),
    ("openai-responses", {"type": "image_generation_call", "id": "ig", "result": PNG}),
    ("openai-responses", returned("computer_call", {"type": "computer_screenshot", "image_url": DATA_URL})),
    ("openai-responses", returned("function_call", [{"type": "input_image", "image_url": PNG}])),
    ("openai-responses", {"type": "of_tomorrow", "parts": [{"inline_data": {"mime_type": "image/png", "data": PNG}}]}),
    ("openai-chat", said({"type": "of_tomorrow", "resource": {"blob": PNG, "mimeType": "image/png"}})),
    ("openai-chat", {"role": "user", "content": {"url": DATA_URL}}),
    ("anthropic", tool_result({"type": "image", "source": SOURCE})),
    ("anthropic", tool_result({"type": "of_tomorrow", "b64_json": PNG})),
    (
        "anthropic",
        said({"type": "document", "source": {"type": "content", "content": [{"type": "image", "source": SOURCE}]}}),
    ),
]


@pytest.mark.parametrize(("fmt", "item"), IMAGES, ids=lambda v: str(v)[:60])
def test_image_costs_its_pixels_in_any_item(fmt, item):
    pixels = media_tokens(Media("image", len(PNG), raw=PNG), fmt)
    assert pixels <= counted(fmt, item) <= pixels + 60


@pytest.mark.parametrize(("fmt", "item"), [
    ("openai-responses", {"type": "of_tomorrow", "data": ANYTHING}),
    ("openai-responses", {"type": "compaction", "encrypted_content": ANYTHING}),
    ("openai-chat", said({"type": "video", "video": ANYTHING})),
    ("openai-chat", said({"type": "input_video", "input_video": {"data": ANYTHING}})),
    ("anthropic", {"role": "assistant", "content": [{"type": "redacted_thinking", "data": ANYTHING}]}),
], ids=lambda v: str(v)[:60])  # fmt: skip
def test_data_costs_a_fraction_and_is_a_guess(fmt, item):
    as_text = COUNTER.text(ANYTHING)
    message = WIRE_FORMATS[fmt].read([item]).messages[0]
    assert 0 < COUNTER.message(message, fmt) < as_text / 3
    assert COUNTER.guessed(message, fmt) >= COUNTER.message(message, fmt) - 30


def test_sealed_reasoning_is_no_guess():
    """It is in every request of a session: called a guess, no refusal of the session would teach anything."""
    item = {"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": ANYTHING}
    message = WIRE_FORMATS["openai-responses"].read([item]).messages[0]
    assert 0 < COUNTER.message(message, "openai-responses") < COUNTER.text(ANYTHING) / 3
    assert COUNTER.guessed(message, "openai-responses") == 0


@pytest.mark.parametrize(("fmt", "item"), [
    ("openai-responses", {"type": "of_tomorrow", "data": STORY}),
    ("openai-responses", {"type": "function_call_output", "call_id": "c", "output": STORY}),
    ("openai-chat", said({"type": "file", "file": {"name": "a.txt", "text": STORY}})),
    ("anthropic", said({"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": STORY}})),
    ("anthropic", said({"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": STORY}]}})),
], ids=lambda v: str(v)[:60])  # fmt: skip
def test_text_costs_its_tokens_in_any_item(fmt, item):
    assert counted(fmt, item) >= COUNTER.text(STORY)


def test_other_media_cost_a_flat_figure():
    files = ["data:application/pdf;base64," + ANYTHING, {"file": {"file_id": "x"}}, {"input_audio": {"data": ANYTHING}}]
    assert {media_tokens(Media(kind, 1, raw=raw), "gemini") for kind in ("file", "audio") for raw in files} == {OTHER_TOKENS}


def extended_webp(width, height):
    canvas = (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    return b"RIFF\0\0\0\0WEBPVP8X" + struct.pack("<I", 10) + b"\0\0\0\0" + canvas


def jpeg(width, height, marker=0xC0, before=b""):
    """Return the beginning of a JPEG: segments of metadata and tables, then the frame that holds the size."""
    tables = b"\xff\xdb" + struct.pack(">H", 67) + bytes(65) + b"\xff\xc4" + struct.pack(">H", 31) + bytes(29)
    frame = b"\xff" + bytes([marker]) + struct.pack(">HBHH", 17, 8, height, width)
    return b"\xff\xd8\xff\xe0" + struct.pack(">H", 16) + b"JFIF\0" + bytes(9) + before + tables + frame


def exif(size_bytes):
    """Return a segment of metadata, with a thumbnail inside that has a frame of its own."""
    thumbnail = jpeg(160, 120)
    return b"\xff\xe1" + struct.pack(">H", size_bytes) + (thumbnail + bytes(size_bytes - 2 - len(thumbnail)))


def image_tokens(head):
    data = base64.b64encode(head + NOISE[:300]).decode()
    blocks = ({"source": {"data": data}}, {"image_url": {"url": f"data:image/png;base64,{data}"}})
    found = {media_tokens(Media("image", 1, raw=block), fmt) for block in blocks for fmt in WIRE_FORMATS}
    assert len(found) == 1
    return found.pop()


@pytest.mark.parametrize("head", [
    png(1_000, 500), extended_webp(1_000, 500), jpeg(1_000, 500), jpeg(1_000, 500, marker=0xC2),
    jpeg(1_000, 500, before=exif(20_000)),
    b"RIFF\0\0\0\0WEBPVP8 \0\0\0\0\0\0\0\x9d\x01\x2a" + struct.pack("<HH", 1_000, 500),
    b"RIFF\0\0\0\0WEBPVP8L\0\0\0\0\x2f" + (999 | 499 << 14).to_bytes(4, "little"),
    b"GIF89a" + struct.pack("<HH", 1_000, 500),
], ids=[*("PNG", "extended WebP", "JPEG", "progressive JPEG", "JPEG with a thumbnail"),
        *("lossy WebP", "lossless WebP", "GIF")])  # fmt: skip
def test_size_is_read_from_every_container(head):
    assert image_tokens(head) == -(-1_000 * 500 // 750)


@pytest.mark.parametrize(("size", "tokens"), [
    # The table of the vision guide: about 1,334 and 1,590 tokens. https://docs.anthropic.com/en/docs/build-with-claude/vision
    ((200, 200), 258), ((1_000, 1_000), 1_334), ((1_092, 1_092), 1_590), ((3_136, 1_568), 1_640),
])  # fmt: skip
def test_image_costs_what_anthropics_guide_says(size, tokens):
    assert image_tokens(png(*size)) == tokens


@pytest.mark.parametrize(
    "head",
    [b"", png(0, 500), png(1, 1)[:20], jpeg(1, 1)[:30], b"GIF89a", b"RIFF\0\0\0\0WEBPVP8X", b"%PDF-1.7"],
    ids=["nothing", "no width", "cut PNG", "cut JPEG", "cut GIF", "cut WebP", "another kind"],
)
def test_image_without_size_costs_a_flat_figure(head):
    data = base64.b64encode(head).decode()
    block = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}
    assert media_tokens(Media("image", 1, raw=block), "openai-chat") == UNKNOWN_IMAGE_TOKENS
