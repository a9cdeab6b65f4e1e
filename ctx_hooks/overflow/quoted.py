"""Errors that speak with the caller's words: a provider quotes an invalid value, and a caller may write anything there."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import groupby
from typing import Any

from ctx_hooks.overflow.patterns.wordings import NUMBER, number
from ctx_hooks.overflow.recognise import Overflow
from ctx_hooks.overflow.texts import OwnWords

LEAST_WORDS = 6
"""So many words in a row are a quotation, three with a figure too."""
PIECE_CHARS, OVERLAP_CHARS = 65_536, 512
"""A pattern holds the interpreter's lock while it reads a piece, for 5 ms."""
MOST_CHARS = 8_000_000
"""Read of a request, in a second at most. What a longer request says is unknown: all of it counts as quoted."""
MOST_VALUE_CHARS = 64
"""A text of the request up to this size is a quotation if it stands whole in the error."""
LOGGED = frozenset({"previous_models", "litellm_metadata", "litellm_logging_obj"})
"""Fields of LiteLLM's own: the Router notes earlier errors there."""
_WORD = re.compile(r"[a-z]+|\d+|[^\W\d_]")
_ESCAPE = re.compile(r"\\+(?:u([\da-f]{4})|x[\da-f]{2}|.)|&#?\w{1,8};")
_FIGURE = re.compile(NUMBER)
_LETTERS = re.compile(r"[^\W\d_]{2}")


def unless_quoted(
    found: Overflow | None, words: OwnWords, read: Callable[[OwnWords], Overflow | None], request: Any
) -> Overflow | None:
    """Return the overflow that `read` has found in an error's words; None if only words of the `request` say so.

    An error that says it in words of the request, and nothing else, is believed: a conversation may tell of an earlier
    refusal. So is one that counts the input, as no text of the request does. Their figures are `quoted`.
    """
    if found is None:
        return None
    own = _without_quotations(words, request)
    by_itself = found if own == words else read(own)
    if by_itself is not None and by_itself.figures == found.figures:
        return found
    numbers = {number(m[0]) for text in own.texts for m in _FIGURE.finditer(text)}
    counts = {found.input_tokens, sum(filter(None, found.figures[1:]))} - {None, 0}
    says_only_that = any(
        not _LETTERS.search(left) and read(replace(words, texts=(text,))) is not None
        for text, left in zip(words.texts, own.texts, strict=True)
    )
    return replace(found, quoted=True) if by_itself is not None or says_only_that or numbers & counts else None


def _without_quotations(words: OwnWords, request: Any) -> OwnWords:
    """Return an error's words, in lower case, without those that stand in the request."""
    texts = [_unescaped(text) for text in words.texts]
    places = [[*_WORD.finditer(text)] for text in texts]
    phrases = [[" ".join(m[0] for m in found[n : n + 3]) for n in range(len(found) - 2)] for found in places]
    said, values = _said({p for listed in phrases for p in listed}, " ".join(m[0] for f in places for m in f), request)
    left = []
    for text, found, listed in zip(texts, places, phrases, strict=True):
        is_said = [any(p in said for p in listed[max(0, n - 2) : n + 1]) for n in range(len(found))]
        for quoted, run in groupby(range(len(found)), is_said.__getitem__):
            numbers = [*run]
            run_words = [found[n][0] for n in numbers]
            is_long = len(numbers) >= LEAST_WORDS or any(word.isdigit() for word in run_words)
            if quoted and (is_long or any(value in " ".join(run_words) for value in values)):
                start, end = found[numbers[0]].start(), found[numbers[-1]].end()
                text = text[:start] + " " * (end - start) + text[end:]  # noqa: PLW2901 - each run leaves the places
        left.append(text)
    return words if left == texts else replace(words, texts=tuple(left))


def _unescaped(text: str) -> str:
    """Return a text in lower case with blanks for escapes, and the letters that these write, in the same places."""
    return _ESCAPE.sub(lambda m: (chr(int(m[1], 16)) if m[1] else "").ljust(len(m[0])), text.lower())


def _said(phrases: set[str], error: str, request: Any) -> tuple[set[str], set[str]]:
    """Return the phrases of an error that stand in a request, all of them if it is too long, and its short texts in the error."""
    missing, values, left = set(phrases), set[str](), MOST_CHARS
    for text in _texts(request):
        for start in range(0, len(text), PIECE_CHARS):
            piece = _unescaped(text[start : start + PIECE_CHARS + OVERLAP_CHARS])
            said = " ".join(_WORD.findall(piece))
            missing = {phrase for phrase in missing if f" {phrase} " not in f" {said} "}
            if len(text) <= MOST_VALUE_CHARS and said.count(" ") >= 2 and said in error:  # noqa: PLR2004 - a phrase
                values.add(said)
            left -= len(piece)
            if left < 0:
                return phrases, values
    return phrases - missing, values


def _texts(value: Any) -> Iterator[str]:
    """Yield the texts and names in a JSON value."""
    waiting = [value]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, Mapping):
            waiting += (part for name, part in tuple(value.items()) if name not in LOGGED)
            yield from (name for name in tuple(value) if isinstance(name, str))
        elif isinstance(value, (list, tuple)):
            waiting += value
