"""Everything that could be kept of the older exchanges, as arrays: the frame of each and the lines that add something.

A row is a frame or a line. The first rows are the frames, that of item n in row n; the lines that cover a text's identifiers
come next, then those that are only relevant. Identifiers are numbered in the order in which they come up.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ctx_hooks.compaction.selection.relevance import Floats
    from ctx_hooks.compaction.selection.scoring import Item, Source
    from ctx_hooks.compaction.selection.segments import Integers

GAP_TOKENS = 1.5
"""What the mark between two kept lines costs: a token, and at times one for its line break."""


@dataclass(frozen=True)
class Lines:
    """Frames and lines of exchanges, side by side.

    Attributes:
        frames: how many of the rows are frames.
        sources: the parts that lines stand in.
        item: the number of the exchange of each row.
        source: the number of the part of each line; of a frame it means nothing.
        line: the number of each line in its part; of a frame it means nothing.
        tokens: about what each row costs, of a line with the mark beside it.
        relevance: of each row to the newest request, 0 to 1.
        holder: for each identifier that a row brings, the row.
        name: and the number of the identifier.
        numbers: the numbers of the identifiers.
    """

    frames: int
    sources: tuple[Source, ...]
    item: Integers
    source: Integers
    line: Integers
    tokens: Floats
    relevance: Floats
    holder: Integers
    name: Integers
    numbers: Mapping[str, int]

    @cached_property
    def in_frame(self) -> NDArray[np.bool_]:
        """For each identifier that a row brings, whether the row is a frame."""
        return self.holder < self.frames

    def by_row(self, values: Floats) -> Floats:
        """Return the sum for each row of `values`, of which there is one for each identifier that a row brings."""
        # Sums of `bincount` run from first to last, the same on every processor.
        return np.bincount(self.holder, values, len(self.item)).astype(np.float64)

    def named(self, names: Iterable[str]) -> Integers:
        """Return the numbers of those of `names` that some row brings."""
        return np.array([n for n in map(self.numbers.get, names) if n is not None], np.int32)


def lines_of(items: Sequence[Item]) -> Lines:
    """Return the frames and lines of the items."""
    sources = tuple(source for item in items for source in item.sources)
    segments = [source.segments for source in sources]
    counts = np.array([len(s) for s in segments], np.int64)
    first = np.cumsum(counts) - counts  # the number of each source's first segment among those of all
    source_of_segment = np.repeat(np.arange(len(sources)), counts)
    chars = _joined(s.bounds[1:] - s.bounds[:-1] for s in segments)
    relevance = _joined(source.relevance for source in sources)

    covering = _joined(s.cover for s in segments) + np.repeat(first, [len(s.cover) for s in segments])
    is_relevant = relevance > 0
    is_relevant[covering] = False
    only_relevant = np.flatnonzero(is_relevant)
    segment = np.concatenate((covering, only_relevant)).astype(np.int64)
    source = source_of_segment[segment]
    item_of_source = np.repeat(np.arange(len(items)), [len(item.sources) for item in items])
    tokens_per_char = np.array([s.tokens_per_char for s in sources])

    frames, nothing = np.arange(len(items)), np.zeros(len(items))
    brought = [len(item.identifiers) for item in items]
    added = np.concatenate(
        (np.array(brought, np.int64), *(s.added for s in segments), np.zeros(len(only_relevant), np.int64))
    )
    numbers: dict[str, int] = {}
    names = chain(*(item.identifiers for item in items), *(s.identifiers for s in segments))
    return Lines(
        frames=len(items),
        sources=sources,
        item=np.concatenate((frames, item_of_source[source])),
        source=np.concatenate((frames, source)),
        line=np.concatenate((frames, segment - first[source])),
        tokens=np.concatenate(([i.frame_tokens for i in items], chars[segment] * tokens_per_char[source] + GAP_TOKENS)),
        relevance=np.concatenate((nothing, relevance[segment])),
        holder=np.repeat(np.arange(len(added)), added),
        name=np.array([numbers.setdefault(name, len(numbers)) for name in names], np.int64),
        numbers=numbers,
    )


def _joined(arrays: Iterable[NDArray[Any]]) -> NDArray[Any]:
    return np.concatenate((np.empty(0, np.int32), *arrays))
