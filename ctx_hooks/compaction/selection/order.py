"""The order in which segments of older results stay, by the names in them, for their tokens.

Two kinds of names count: those of the newest exchanges, in every segment that has them, since an edit needs the text around
them; and names that nothing earlier in the order shows.
"""

from bisect import bisect_right
from collections import Counter as Occurrences
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import islice
from typing import NamedTuple

from ctx_hooks.compaction.selection.bm25 import rarity
from ctx_hooks.compaction.selection.scoring import Item
from ctx_hooks.compaction.selection.segments import Segments
from ctx_hooks.compaction.selection.user_words import Position
from ctx_hooks.texts.identifiers import is_opaque

USED_VALUE = 9.0
"""The value of an identifier that the assistant has used; that of another one is 1. From the middle of real sessions on, the
next answers name 13.8 % of the identifiers that the assistant has used before. Of those only seen they name 1.6 %."""
NEWEST_VALUE = 100.0
"""The value of the segment with the most of the newest names. Of the texts that edits of 7 sessions quote, 0.74 stay whole
instead of 0.69."""


class Row(NamedTuple):
    """A segment: the number of its exchange, its part, its number in the part, and its cost."""

    item: int
    position: Position
    segment: int
    tokens: float


def rows_of(
    items: Iterable[tuple[int, Item]], newest: Collection[str], used: AbstractSet[str], shown: AbstractSet[str]
) -> Iterator[Row]:
    """Yield the segments that bring identifiers, most value for their tokens first.

    Args:
        items: the exchanges that have a frame, by number.
        newest: the identifiers in the newest exchanges.
        used: the identifiers that the assistant has used.
        shown: the identifiers in text that always stays.
    """
    sources = [(n, source) for n, item in items for source in item.sources]
    near = nearness(newest, [(source.text, source.segments) for _, source in sources])
    valued: list[tuple[float, int, Row, frozenset[str], bool]] = []
    for (n, source), scores in zip(sources, near, strict=True):
        names, spans = iter(source.segments.identifiers), source.segments.spans
        added = zip(source.segments.cover.tolist(), source.segments.added.tolist(), strict=True)
        brought_by = {k: frozenset(islice(names, count)) for k, count in added}
        for k in sorted(brought_by.keys() | scores.keys()):
            brought = frozenset(x for x in brought_by.get(k, ()) if x in used or not is_opaque(x)) - shown
            row = Row(n, source.position, k, source.tokens(spans[k]))
            value = len(brought) + (USED_VALUE - 1) * len(brought & used) + NEWEST_VALUE * scores.get(k, 0.0)
            valued.append((-value / row.tokens, len(valued), row, brought, k in scores))
    seen: set[str] = set()
    for _, _, row, brought, is_near in sorted(valued):
        if is_near or brought - seen:
            seen |= brought
            yield row


def nearness(names: Collection[str], texts: Sequence[tuple[str, Segments]]) -> list[Mapping[int, float]]:
    """Return for each text the scores of its segments by the rarity of the names in them, at most 1, without zeros."""
    hits = [list(places(names, text, segments)) for text, segments in texts]
    holding = Occurrences(name for of_text in hits for name, _ in of_text)
    total = 1 + sum(len(segments) for _, segments in texts)
    found: list[dict[int, float]] = [defaultdict(float) for _ in texts]
    for scores, of_text in zip(found, hits, strict=True):
        for name, segment in of_text:
            scores[segment] += rarity(holding[name], total)
    most = max((score for scores in found for score in scores.values()), default=1.0)
    return [{segment: score / most for segment, score in scores.items()} for scores in found]


def places(names: Collection[str], text: str, segments: Segments) -> Iterator[tuple[str, int]]:
    """Yield the names in segments of `text`, each with the number of its segment."""
    bounds = segments.bounds.tolist()
    for name in names:
        at = text.find(name)
        while at >= 0:
            segment = bisect_right(bounds, at) - 1
            yield name, segment
            at = text.find(name, bounds[segment + 1])
