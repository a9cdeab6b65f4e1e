"""The identifiers in a text: paths, names, ids and numbers, which a later step may refer to."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable
from itertools import chain, pairwise
from sys import getsizeof

from ctx_hooks.runtime.content_cache import ContentCache, digest
from ctx_hooks.texts import pieces

_WORD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./\-@#:]{2,}[A-Za-z0-9_]")
_WORD_IN_JSON = re.compile(
    r"\\u[0-9A-Fa-f]{4}|([A-Za-z0-9_](?<![^\\]\\[bfnrt])(?<!\\[nrt](?=[A-Z]))[A-Za-z0-9_./\-@#:]{2,}[A-Za-z0-9_])"
)
"""The same without the escape before it; "" for a character by its number: Go writes `<` as `\\u003c`."""
_TELLING = re.compile(r"[0-9_/.@#]|[a-z][A-Z]")

_names: ContentCache[tuple[str, ...]] = ContentCache()
_names_by_segment: ContentCache[tuple[frozenset[str], ...]] = ContentCache()


def identifiers(text: str) -> tuple[str, ...]:
    """Return the paths, names, ids and numbers in `text`: a later step may refer to them by name."""

    def found() -> tuple[str, ...]:
        words = chain.from_iterable(_words_in(text, pieces.spans(text)))
        return tuple(filter(_TELLING.search, dict.fromkeys(words)))

    # Names are ASCII: a byte for each character.
    return _names.get(digest(text), found, lambda names: sum(map(getsizeof, (names, *names))))


def identifiers_by_segment(text: str, bounds: array[int]) -> tuple[frozenset[str], ...]:
    """Return the identifiers of `text` in each of its segments; `bounds` are their starts, and the end of the last one."""

    def found() -> tuple[frozenset[str], ...]:
        words = _words_in(text, pairwise(bounds))
        names = {word: word for word in set().union(*words) if _TELLING.search(word)}
        if not all(text[at - 1].isspace() or text[at].isspace() for at in bounds[1:-1]):
            whole = frozenset(identifiers(text))
            names = {name: name for name in names if name in whole}  # a part of a divided word is none
        return tuple([frozenset(filter(None, map(names.get, segment))) for segment in words])

    def size_bytes(segments: tuple[frozenset[str], ...]) -> int:
        return sum(map(getsizeof, chain(segments, frozenset().union(*segments))))

    return _names_by_segment.get((digest(text), bounds.tobytes()), found, size_bytes)


def _words_in(text: str, spans: Iterable[tuple[int, int]]) -> list[list[str]]:
    """Return the possible identifiers of each span; without JSON escapes if the text looks like JSON."""
    word = _WORD_IN_JSON if text.startswith(("{", "[", '"')) or ":\\" not in text else _WORD
    return [list(filter(None, word.findall(text, start, end))) for start, end in spans]
