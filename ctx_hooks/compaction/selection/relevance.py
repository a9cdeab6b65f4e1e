"""How relevant the segments of older texts are to the newest request: by the rare words they share with it."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter as Occurrences
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from ctx_hooks.compaction.selection.bm25 import rarity
from ctx_hooks.compaction.selection.segments import Segments
from ctx_hooks.conversation.model import Conversation
from ctx_hooks.texts.pieces import lowered, pieces

REQUEST_WORDS = 16
"""The request's longest words are looked for: they are the rarest, and each costs a pass over the older text."""
_WORD = re.compile(r"[a-z0-9_]{4,}|[^\W\d_a-z]{2,}")
LONGEST_WORD_CHARS = 200
"""Of a longer word the beginning is looked for: a search takes the text's length times the word's at worst."""


def relevance_of(conversation: Conversation, texts: Sequence[tuple[str, Segments]]) -> list[Mapping[int, float]]:
    """Return for each text the relevance of its segments that have any, 0 to 1: the request's words, each by how rare it is.

    This is BM25 without its saturation and length normalisation: a segment holds a word once or not at all, and segments
    are alike enough in length. The request counts as one segment more.
    """
    request = conversation.newest_request
    words = words_of(conversation.messages[request].text) if request is not None else ()
    hits = [list(places(words, text, segments)) for text, segments in texts]
    holding = Occurrences(word for of_text in hits for word, _ in of_text)
    total = 1 + sum(len(segments) for _, segments in texts)
    weights = {word: rarity(count, total) for word, count in holding.items()}
    found: list[Mapping[int, float]] = []
    for of_text in hits:
        scores: dict[int, float] = defaultdict(float)
        for word, segment in of_text:
            scores[segment] += weights[word]
        found.append(scores)
    most = max((score for scores in found for score in scores.values()), default=1.0)
    return [{segment: score / most for segment, score in scores.items()} for scores in found]


def words_of(request: str) -> tuple[str, ...]:
    """Return the words of a request that are looked for, the longest first."""
    words = {word[:LONGEST_WORD_CHARS] for piece in pieces(request) for word in _WORD.findall(lowered(piece))}
    return tuple(sorted(words, key=lambda w: (-len(w), w))[:REQUEST_WORDS])


def places(words: Sequence[str], text: str, segments: Segments) -> Iterator[tuple[str, int]]:
    """Yield the words that segments of `text` hold, each with the number of the segment."""
    lower, bounds = lowered(text) if words else "", segments.bounds.tolist()
    for word in words:
        at = lower.find(word)
        while at >= 0:
            segment = bisect_right(bounds, at) - 1
            yield word, segment
            at = lower.find(word, bounds[segment + 1])
