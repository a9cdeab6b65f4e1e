"""Whether a string is data, such as base64 of an image, rather than text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ctx_hooks.conversation.model import MediaKind

DATA_URL = re.compile(r"data:[\w.+-]*/?[\w.+-]*(?:;[\w.+-]+=[^;,]{0,100}){0,5};base64,", re.IGNORECASE)
LEAST_PAYLOAD_CHARS = 1_000
"""Shorter base64 costs little as text; keys, digests and signatures of requests are shorter."""
SAMPLE_CHARS = 256
"""Of so many random base64 characters all but one in 10,000 samples hold a digit, a small and a capital letter."""
BASE64 = re.compile(r"[A-Za-z0-9+/_-]+={0,2}")
TEXT_FIELDS = frozenset({"text", "content", "output", "arguments", "thinking", "reasoning_content"})
"""Fields whose strings a model reads as text, base64 too."""
SEALED_FIELDS = frozenset({"encrypted_content", "encrypted_stdout", "encrypted_index"})
SIGNATURE_FIELDS = frozenset({"signature", "thought_signature", "thoughtSignature"})
"""What proves that thinking is a model's own. No provider bills it."""
MIME_KINDS: Mapping[str, MediaKind] = {"image/": "image", "audio/": "audio"}


def is_payload(text: str) -> bool:
    """Whether `text` is a data URL or long base64, judged by its first, middle and last characters.

    Base64 has no blanks, and digits beside letters of both cases; hex digests, long words and rows of one character are
    text. To take a text for a payload is the cheaper error: it is counted too low, and the refusal is answered with a
    retry. A payload that is taken for text costs the conversation its history, and nobody sees it.
    """
    if text.startswith(("data:", "DATA:")) and DATA_URL.match(text):
        return True
    if len(text) < LEAST_PAYLOAD_CHARS:
        return False
    samples = []
    for at in (0, len(text) // 2, len(text) - SAMPLE_CHARS):
        sample = text[at : at + SAMPLE_CHARS].replace("\n", "").replace("\r", "")
        if not BASE64.fullmatch(sample):
            return False
        samples.append(sample)
    return _has_every_kind("".join(samples))


def payload_kind(field: str, text: str) -> MediaKind | None:
    """Return what kind of payload the string in `field` is, None when it is text."""
    if field in TEXT_FIELDS or not is_payload(text):
        return None
    if field in SEALED_FIELDS:
        return "sealed"
    mime = text[len("data:") :].lower() if DATA_URL.match(text) else ""
    return next((kind for start, kind in MIME_KINDS.items() if mime.startswith(start)), "file")


def _has_every_kind(sample: str) -> bool:
    return any(c.isdigit() for c in sample) and any("a" <= c <= "z" for c in sample) and any("A" <= c <= "Z" for c in sample)
