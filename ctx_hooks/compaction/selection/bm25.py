"""How well texts fit a request: BM25 over stems, smoothed over neighbours.

Nothing in here knows a language: words are cut to a common length instead of stemmed by rules, and scripts without
spaces are read in pairs of characters.
"""

from __future__ import annotations

import math
import re
from array import array
from collections import defaultdict
from dataclasses import dataclass, replace
from itertools import accumulate
from operator import add
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ctx_hooks.texts.pieces import pieces

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

STEM_CHARS = 4
"""Words are compared by their first letters, which inflected forms share. Of 40 dialogues of `benchmarks/dialogues.py` the
turns that answer are found behind a compaction in 95 % with four letters, in 93 % with three, five or six."""
K1 = 1.2
B = 0.75
"""Saturation and length normalisation of BM25 (Robertson and Zaragoza 2009, section 3.3); lengths are in characters."""
NEIGHBOUR_WEIGHT = 0.5
MOST_NEIGHBOURS = 3
"""An answer often stands near the turns that share the request's words: a text lends half of its score to the next on either
side, half of that to the next but one, up to so many. Of 725 questions on five dialogues (LoCoMo) the best 9 % of the text
hold 0.82 of the turns that answer, with the nearest neighbour alone 0.79; of 120 about meetings (QMSum) 0.27 and 0.23."""
STEM_BYTES = 160
"""What a stem takes in memory: its text, its number and its place in the map."""

_STEM = re.compile(rf"([^\W_]{{1,{STEM_CHARS}}})[^\W_]*")
"""The stem of a word, where no script without spaces is."""
_WORD = re.compile(r"[^\W_\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")

Integers: TypeAlias = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Postings:
    """For each stem the texts that hold it and how often; made once of texts that are ranked for many requests.

    `chars` are the texts' lengths. The stem of number n, as `numbers` has it, stands in the texts
    `texts[bounds[n]:bounds[n + 1]]`, in order, and as often as `times` says at the same places.
    """

    chars: Integers
    numbers: Mapping[str, int]
    bounds: Integers
    texts: Integers
    times: Integers

    def of(self, stem: str) -> tuple[Integers, Integers]:
        """Return the texts that hold a stem, and how often each does."""
        number = self.numbers.get(stem)
        start, end = (0, 0) if number is None else (self.bounds[number], self.bounds[number + 1])
        last = start + int(np.searchsorted(self.texts[start:end], len(self.chars)))
        return self.texts[start:last], self.times[start:last]

    def first(self, count: int) -> Postings:
        """Return the postings of the first `count` texts alone."""
        return replace(self, chars=self.chars[:count])

    @property
    def size_bytes(self) -> int:
        """The memory that is held."""
        arrays = (self.chars, self.bounds, self.texts, self.times)
        return STEM_BYTES * len(self.numbers) + sum(a.nbytes for a in arrays)


def postings_of(texts: Iterable[str]) -> Postings:
    """Return the postings of some texts, in time linear in their length but for the sorting of numbers."""
    numbers: defaultdict[str, int] = defaultdict()
    numbers.default_factory = numbers.__len__
    found, words, chars = array("i"), array("i"), array("i")
    for text in texts:
        held = stems(text)
        found.extend(map(numbers.__getitem__, held))
        words.append(len(held))
        chars.append(len(text))
    count = max(1, len(chars))
    holders = np.repeat(np.arange(len(chars)), np.asarray(words))
    pairs, times = np.unique(np.asarray(found).astype(np.int64) * count + holders, return_counts=True)
    of_stem, of_text = np.divmod(pairs, count)
    bounds = np.searchsorted(of_stem, np.arange(len(numbers) + 1))
    return Postings(
        np.asarray(chars, np.int32),
        dict(numbers),
        bounds.astype(np.int32),
        of_text.astype(np.int32),
        times.astype(np.int32),
    )


def rank(request: str, texts: Sequence[str]) -> list[float]:
    """Return one score a text, in order; 0 for a text that neither holds a word of the request nor stands beside one."""
    return [float(score) for score in scores(request, (postings_of(texts),))]


def scores(request: str, texts: Sequence[Postings]) -> NDArray[np.float64]:
    """Return one score a text, for the texts of all `texts` side by side."""
    starts = (0, *accumulate(len(p.chars) for p in texts))
    total = starts[-1]
    average = max(1.0, sum(int(p.chars.sum()) for p in texts) / max(1, total))
    found = np.zeros(total)
    for stem in dict.fromkeys(stems(request)):
        holders = [p.of(stem) for p in texts]
        held = sum(len(numbers) for numbers, _ in holders)
        # Squared as in the cosine of tf-idf, where the weight of a word is the request's and the text's: in the dialogues
        # above 0.85 instead of 0.82, better in each of the five.
        weight = rarity(held, total) ** 2
        for start, postings, (numbers, times) in zip(starts, texts, holders, strict=False):
            norm = K1 * (1 - B + B * postings.chars[numbers].astype(np.float64) / average)
            often = times.astype(np.float64)
            found[start + numbers] += weight * often * (K1 + 1) / (often + norm)
    near: NDArray[np.float64] = found.copy()
    for distance in range(1, min(MOST_NEIGHBOURS, total - 1) + 1):
        weight = NEIGHBOUR_WEIGHT**distance
        near[distance:] += weight * found[:-distance]
        near[:-distance] += weight * found[distance:]
    return near


def rarity(holding: int, texts: int) -> float:
    """Return the inverse document frequency of a word that `holding` of `texts` texts hold: the weight that it has.

    Of the variants that Robertson and Zaragoza 2009 discuss (section 3.1) the one with 1 added, as in Lucene: it is above
    zero even for a word that every text holds.

    >>> rarity(1, 100) > rarity(50, 100) > rarity(100, 100) > 0
    True
    """
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
