"""Words are compared by their stems, and texts are ranked by those they share with a request."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctx_hooks.compaction.selection.bm25 import K1, MOST_NEIGHBOURS, NEIGHBOUR_WEIGHT, B, rank, rarity, stems

words = st.text("ab c", max_size=12)


def test_a_word_has_the_same_stem_beside_any_script():
    """Words are read by a faster pattern where nothing is written without spaces."""
    for text in ("Tuned the piano_2 in Grüße-Straße 12", "…→ x", "ÉCOLE İstanbul"):
        beside = [stem for stem in stems(f"{text} 钢琴") if stem != "钢琴"]
        assert stems(text) == beside


@given(st.lists(words, max_size=9), words)
def test_texts_rank_by_the_words_that_they_share_with_the_request_as_the_formula_says(texts, request):
    chars = sum(map(len, texts)) / max(1, len(texts))
    found = [0.0] * len(texts)
    for stem in dict.fromkeys(stems(request)):
        times = [stems(text).count(stem) for text in texts]
        weight = rarity(sum(map(bool, times)), len(texts)) ** 2
        for n, text in enumerate(texts):
            found[n] += weight * times[n] * (K1 + 1) / (times[n] + K1 * (1 - B + B * len(text) / max(1.0, chars)))
    near = [
        sum(found[k] * NEIGHBOUR_WEIGHT ** abs(k - n) for k in range(len(texts)) if abs(k - n) <= MOST_NEIGHBOURS)
        for n in range(len(texts))
    ]
    assert rank(request, texts).tolist() == pytest.approx(near)


def test_a_text_without_a_word_of_the_request_and_far_from_any_that_has_one_fits_not_at_all():
    ranked = rank("the zebra", ["quiet"] * 5 + ["zebra"])
    assert ranked[0] == ranked[1] == 0 < ranked[2] < ranked[3] < ranked[4] < ranked[5]
