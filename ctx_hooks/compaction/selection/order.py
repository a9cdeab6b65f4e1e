"""The order in which segments of older results stay: by the names in them, for their tokens."""

from collections import Counter as Occurrences
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ctx_hooks.compaction.selection.scoring import Item
from ctx_hooks.compaction.selection.user_words import Position
from ctx_hooks.texts.identifiers import identifiers, is_opaque, words_in

USED_VALUE = 9.0
"""The value of a name that the assistant has used; other names have 1. In real sessions the next answers name
13.8 % of the names that the assistant has used before, of those only seen 1.6 %."""
NEWEST_NAMES = 24
"""So many of the names used last count in every segment that has them: an edit needs the text around them."""


class Row(NamedTuple):
    """A segment: the number of its exchange, its part, its number in the part, and its cost."""

    item: int
    position: Position
    segment: int
    tokens: float


def rows_of(items: Iterable[tuple[int, Item]], used: Sequence[str]) -> list[Row]:
    """Return the segments that have names, most value for their tokens first; segments with the same name share its value.

    `used` are the names that the assistant has used, newest first.
    """
    known, newest = frozenset(used), frozenset(used[:NEWEST_NAMES])
    named: list[tuple[Row, frozenset[str]]] = []
    for n, item in items:
        for source in item.sources:
            names, spans = frozenset(identifiers(source.text)), source.segments.spans
            for k, words in enumerate(words_in(source.text, spans)):
                if found := names.intersection(words):
                    named.append((Row(n, source.position, k, source.tokens(spans[k])), found))
    holding = Occurrences(name for _, found in named for name in found)

    def value(name: str) -> float:
        if name not in known and is_opaque(name):
            return 0.0
        shared = (USED_VALUE if name in known else 1.0) / holding[name]
        return shared + (USED_VALUE / holding[name] ** 0.5 if name in newest else 0.0)

    values = {name: value(name) for name in holding}
    worth = [sum(sorted(values[name] for name in found)) / row.tokens for row, found in named]
    return [named[n][0] for n in sorted(range(len(named)), key=lambda n: -worth[n]) if worth[n] > 0]
