"""An upper bound of the tokens of JSON values, from a look that is short enough for the event loop."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import orjson

from ctx_hooks.formats.fields import MAPPINGS, MEDIA_KINDS, is_payload, text_or_empty
from ctx_hooks.formats.gemini import MEDIA_FIELDS
from ctx_hooks.runtime.content_cache import AT_ONCE_CHARS

VALUE_TOKENS = 8
"""More than the brackets, colon and comma around a value, and than a message, call or result costs beside its content."""
NUMBER_TOKENS = 25
"""The longest float, `-2.2250738585072014e-308`, has 24 characters, and a token has at least one."""
INTEGER_BITS = 64
BITS_PER_DIGIT = 3
"""A decimal digit holds 3.3 bits."""
MOST_MEDIA_TOKENS = 4_200
"""More than any image costs beside the base64 that carries it: 4,128 at Google, 3,279 at Anthropic."""
ESCAPED_BYTES = 6
"""The most bytes that a character takes in JSON."""
MOST_VALUES = 5_000
"""About 5 ms of looking; a request of more values, such as a thousand messages, is counted in a thread."""


def most_tokens(values: Iterable[Any], enough: int, most_values: float = MOST_VALUES) -> int:
    """Return an upper bound of the tokens of JSON `values`, in every vocabulary.

    A token has at least one byte, so the bytes of the JSON text bound its tokens. What is fixed a message, or costs more
    than its text, is added.

    Args:
        values: the request's messages, and what is sent beside them.
        enough: once the bound is above it, no more is looked at.
        most_values: with more values than these the answer is above `enough`, whatever they hold.
    """
    waiting, texts, keys = list(values), list[str](), list[str]()
    chars, held, tokens = 0, len(waiting), 0
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            chars += len(value)
            texts.append(value)
        elif isinstance(value, MAPPINGS):
            held += len(value)
            if text_or_empty(value.get("type")) in MEDIA_KINDS or not MEDIA_FIELDS.isdisjoint(value):
                tokens += MOST_MEDIA_TOKENS
            keys += map(str, value)
            waiting += value.values()
        elif isinstance(value, (list, tuple)):
            held += len(value)
            waiting += value
        elif value is None or isinstance(value, (int, float)):
            bits = value.bit_length() if isinstance(value, int) else 0
            tokens += NUMBER_TOKENS + (bits // BITS_PER_DIGIT if bits > INTEGER_BITS else 0)
        else:  # what is no JSON is counted as its text
            texts.append(str(value))
        if chars > enough or held > most_values:  # of a string only its length is read so far: its bytes are no fewer
            return enough + 1
    tokens += VALUE_TOKENS * held + sum(n * _string_tokens(key, enough) for key, n in Counter(keys).items())
    while texts and tokens <= enough:
        tokens += _string_tokens(texts.pop(), enough - tokens)
    return tokens


def _string_tokens(text: str, enough: int) -> int:
    if len(text) > enough:
        return len(text)
    if len(text) > AT_ONCE_CHARS:
        return sum(_string_tokens(text[i : i + AT_ONCE_CHARS], enough) for i in range(0, len(text), AT_ONCE_CHARS))
    try:
        size = len(orjson.dumps(text))
    except TypeError:
        # A lone surrogate, which no JSON text of orjson's holds.
        size = len(text) * ESCAPED_BYTES
    return size + MOST_MEDIA_TOKENS if is_payload(text) else size
