"""The identifiers in a text: paths, names, ids and numbers, which a later step may refer to."""

import re
from collections.abc import Iterable
from itertools import chain
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


def identifiers(text: str) -> tuple[str, ...]:
    """Return the paths, names, ids and numbers in `text`: a later step may refer to them by name."""

    def found() -> tuple[str, ...]:
        words = chain.from_iterable(words_in(text, pieces.spans(text)))
        return tuple(filter(_TELLING.search, dict.fromkeys(words)))

    # Names are ASCII: a byte for each character.
    return _names.get(digest(text), found, lambda names: sum(map(getsizeof, (names, *names))))


def words_in(text: str, spans: Iterable[tuple[int, int]]) -> list[list[str]]:
    """Return the possible identifiers of each span; without JSON escapes if the text looks like JSON."""
    word = _WORD_IN_JSON if text.startswith(("{", "[", '"')) or ":\\" not in text else _WORD
    return [list(filter(None, word.findall(text, start, end))) for start, end in spans]
