"""How well texts fit a request: BM25 over stems, smoothed over neighbours.

Nothing in here knows a language: words are cut to a common length instead of stemmed by rules, and scripts without
spaces are read in pairs of characters.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from operator import add
from typing import TYPE_CHECKING

from ctx_hooks.content_cache import ContentCache, digest
from ctx_hooks.pieces import pieces

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

STEM_CHARS = 4
"""Words are compared by their first letters; five are what inflected forms share in most European languages."""
K1 = 1.2
B = 0.75
"""Saturation and length normalisation of BM25 (Robertson and Zaragoza 2009, section 3.3); lengths are in characters."""
NEIGHBOUR_WEIGHT = 0.4
"""An answer often stands beside the turn that shares the request's words: neighbours lend this much of their score."""
FEW_TERMS = 16
BYTES_PER_CHAR = 5

_WORD = re.compile(r"[^\W_\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")

_terms: ContentCache[dict[str, int]] = ContentCache(share=0.05)


def terms(text: str) -> Mapping[str, int]:
    """Return how often each stem stands in `text`; remembered by content."""
    return _terms.get(digest(text), lambda: _read(text), lambda _: BYTES_PER_CHAR * len(text))


def rank(request: str, texts: Sequence[str]) -> list[float]:
    """Return one score a text, in order; 0 for a text that neither holds a word of the request nor stands beside one."""
    query = terms(request)
    total = len(texts)
    average = max(1.0, sum(map(len, texts)) / max(1, total))
    scores = [0.0] * total
    for found in _postings(query, texts).values():
        weight = math.log(1 + (total - len(found) + 0.5) / (len(found) + 0.5))
        for i, frequency in found:
            norm = K1 * (1 - B + B * len(texts[i]) / average)
            scores[i] += weight * frequency * (K1 + 1) / (frequency + norm)
    return [
        score + NEIGHBOUR_WEIGHT * max(scores[i - 1] if i else 0.0, scores[i + 1] if i + 1 < total else 0.0)
        for i, score in enumerate(scores)
    ]


def _postings(query: Mapping[str, int], texts: Sequence[str]) -> dict[str, list[tuple[int, int]]]:
    """Return for each term of the query the texts that hold it, each with how often."""
    postings: dict[str, list[tuple[int, int]]] = {term: [] for term in query}
    few = len(query) <= FEW_TERMS
    for i, text in enumerate(texts):
        lowered = text.lower() if few else ""
        if few and not any(term in lowered for term in query):
            continue  # most texts hold no word of a short request: they are not taken apart
        document = terms(text)
        for term in query.keys() & document.keys():
            postings[term].append((i, document[term]))
    return postings


def _read(text: str) -> dict[str, int]:
    found: Counter[str] = Counter()
    for piece in pieces(text):
        words = _WORD.findall(piece.lower())
        unspaced = [word for word in words if _UNSPACED.match(word)] if not piece.isascii() else []
        found.update(word[:STEM_CHARS] for word in words if not unspaced or not _UNSPACED.match(word))
        for word in unspaced:
            found.update(map(add, word, word[1:]) if len(word) > 1 else word)
    return dict(found)
