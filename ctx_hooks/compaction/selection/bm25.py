"""How well texts fit a request: BM25 over stems, smoothed over neighbours.

It is independent of the language: it cuts words to a common length, and reads scripts without spaces in character pairs.
"""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Sequence
from operator import add
from sys import getsizeof

import numpy as np
from numpy.typing import NDArray

from ctx_hooks.runtime.content_cache import ContentCache, digest
from ctx_hooks.texts.pieces import pieces

STEM_CHARS = 4
"""Words are compared by their first letters, which inflected forms share. In 40 dialogues of `benchmarks/dialogues.py` four
letters find 95 % of the turns that answer after a compaction; three, five or six letters find 93 %."""
K1 = 1.2
B = 0.75
"""Saturation and length normalisation of BM25 (Robertson and Zaragoza 2009, section 3.3); lengths are in characters."""
NEIGHBOUR_WEIGHT = 0.5
MOST_NEIGHBOURS = 3
"""An answer is often near the turns that share the request's words. So a text adds half of its score to the next on either
side, a quarter to the next but one, up to so many. For 725 questions on five dialogues (LoCoMo) the best 9 % of the text
have 0.82 of the turns that answer, with only the nearest neighbour 0.79; for 120 about meetings (QMSum) 0.27 and 0.23."""
_STEM = re.compile(rf"([^\W_]{{1,{STEM_CHARS}}})[^\W_]*")
"""The stem of a word, outside scripts without spaces."""
_WORD = re.compile(r"[^\W_\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_hashes: ContentCache[array[int]] = ContentCache()


def hashes_of(text: str) -> array[int]:
    """Return Python's hash of each stem of `text`, remembered by content; with 64 bits and the process's key all differ."""
    return _hashes.get(digest(text), lambda: array("q", map(hash, stems(text))), getsizeof)


def rank(request: str, texts: Sequence[str]) -> NDArray[np.float64]:
    """Return one score a text, in order; 0 if neither the text nor its neighbours have a word of the request."""
    wanted = np.array([hash(stem) for stem in dict.fromkeys(stems(request))], np.int64)
    total = len(texts)
    if not (len(wanted) and total):
        return np.zeros(total)
    held = list(map(hashes_of, texts))
    hashes = np.concatenate([np.asarray(of_text, np.int64) for of_text in held])
    order = np.argsort(wanted)
    found_at = order[np.minimum(np.searchsorted(wanted, hashes, sorter=order), len(wanted) - 1)]
    is_held = wanted[found_at] == hashes
    holder = np.repeat(np.arange(total), list(map(len, held)))
    pairs, times = np.unique(holder[is_held] * len(wanted) + found_at[is_held], return_counts=True)
    holding_text, stem = np.divmod(pairs, len(wanted))

    chars, often = np.array([len(t) for t in texts], np.float64), times.astype(np.float64)
    norm = K1 * (1 - B + B * chars[holding_text] / max(1.0, chars.sum() / total))
    # Squared as in the cosine of tf-idf, which multiplies a word's weights in the request and the text. In the dialogues
    # above 0.85 instead of 0.82, better in each of the five.
    weights = np.array([rarity(holding, total) ** 2 for holding in np.bincount(stem, minlength=len(wanted)).tolist()])
    # `bincount` adds from first to last: for one text in the order of the request's words.
    found = np.bincount(holding_text, weights[stem] * often * (K1 + 1) / (often + norm), total).astype(np.float64)
    near: NDArray[np.float64] = found.copy()
    for distance in range(1, min(MOST_NEIGHBOURS, total - 1) + 1):
        weight = NEIGHBOUR_WEIGHT**distance
        near[distance:] += weight * found[:-distance]
        near[:-distance] += weight * found[distance:]
    return near


def rarity(holding: int, texts: int) -> float:
    """Return the inverse document frequency of a word in `holding` of `texts` texts (Lucene's variant, above zero)."""
    return math.log(1 + (texts - holding + 0.5) / (holding + 0.5))


def stems(text: str) -> list[str]:
    """Return the stems of the words of `text`."""
    found: list[str] = []
    for piece in pieces(text):
        lower = piece.lower()
        if lower.isascii() or not _UNSPACED.search(lower):
            found += _STEM.findall(lower)
            continue
        words = _WORD.findall(lower)
        unspaced = [word for word in words if _UNSPACED.match(word)]
        found.extend(word[:STEM_CHARS] for word in words if not _UNSPACED.match(word))
        for word in unspaced:
            found.extend(map(add, word, word[1:]) if len(word) > 1 else word)
    return found
