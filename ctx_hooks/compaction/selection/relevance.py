"""How relevant the lines of older texts are to the newest request: by the rare words they share with it."""

from __future__ import annotations

import re
from bisect import bisect_right
from itertools import accumulate
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ctx_hooks.compaction.selection.bm25 import rarity
from ctx_hooks.runtime.content_cache import ContentCache, digest
from ctx_hooks.texts.pieces import lowered, pieces

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ctx_hooks.compaction.selection.segments import Integers, Segments
    from ctx_hooks.conversation.model import Conversation

REQUEST_WORDS = 16
"""The request's longest words are looked for: they are the rarest, and each costs a pass over the older text."""
_WORD = re.compile(r"[a-z0-9_]{4,}|[^\W\d_a-z]{2,}")
LONGEST_WORD_CHARS = 200
"""Of a longer word the beginning is looked for: a search takes the text's length times the word's at worst."""

Floats: TypeAlias = NDArray[np.float64]

_hits: ContentCache[Integers] = ContentCache()


def relevance_of(conversation: Conversation, texts: Sequence[tuple[str, Segments]]) -> list[Floats]:
    """Return for each text the relevance of its lines, 0 to 1: the words of the request in it, each by how rare it is.

    This is BM25 without its saturation and length normalisation: a line holds a word once or not at all, and lines are
    alike enough in length. The request counts as one line more.
    """
    request = conversation.newest_request
    words = words_of(conversation.messages[request].text) if request is not None else ()
    ends = list(accumulate(len(lines) for _, lines in texts))
    if not (words and texts):
        return [np.zeros(len(lines)) for _, lines in texts]
    hits = [places(words, text, lines) for text, lines in texts]
    word, line = np.concatenate(hits).T
    line = line + np.repeat([0, *ends[:-1]], [len(found) for found in hits])
    weights = np.array([rarity(int(holding), 1 + ends[-1]) for holding in np.bincount(word, minlength=len(words))])
    scores = np.bincount(line, weights[word], ends[-1])
    return np.split(scores / (scores.max(initial=0.0) or 1.0), ends[:-1])


def words_of(request: str) -> tuple[str, ...]:
    """Return the words of a request that are looked for, the longest first."""
    words = {word[:LONGEST_WORD_CHARS] for piece in pieces(request) for word in _WORD.findall(lowered(piece))}
    return tuple(sorted(words, key=lambda w: (-len(w), w))[:REQUEST_WORDS])


def places(words: tuple[str, ...], text: str, lines: Segments) -> Integers:
    """Return the lines of `text` that hold the words, as pairs of the number of a word and that of a line."""
    return _hits.get((digest(text), words), lambda: _places(words, text, lines.bounds.tolist()), lambda found: found.nbytes)


def _places(words: tuple[str, ...], text: str, bounds: list[int]) -> Integers:
    lower = lowered(text)
    found = []
    for number, word in enumerate(words):
        at = lower.find(word)
        while at >= 0:
            line = bisect_right(bounds, at) - 1
            found.append((number, line))
            at = lower.find(word, bounds[line + 1])
    return np.array(found, np.int32).reshape(-1, 2)


def by_segment(relevance: Floats, lines: Segments, kept_whole: Segments) -> Floats:
    """Return the relevance of lines as that of the segments that hold them: a segment has that of its best line."""
    if kept_whole.bounds is lines.bounds:
        return relevance
    found = np.zeros(len(kept_whole))
    holding = np.searchsorted(kept_whole.bounds, lines.bounds[:-1], side="right") - 1
    np.maximum.at(found, holding, relevance)
    return found
