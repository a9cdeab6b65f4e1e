"""Words are compared by their stems, and texts are ranked by those they share with a request."""

from itertools import chain

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ctx_hooks.compaction.selection.bm25 import postings_of, rank, scores, stems

words = st.text("ab c", max_size=12)
groups = st.lists(st.lists(st.tuples(words, st.booleans()), max_size=9), min_size=1, max_size=4)


def test_a_word_has_the_same_stem_beside_any_script():
    """Words are read by a faster pattern where nothing is written without spaces."""
    for text in ("Tuned the piano_2 in Grüße-Straße 12", "…→ x", "ÉCOLE İstanbul"):
        beside = [stem for stem in stems(f"{text} 钢琴") if stem != "钢琴"]
        assert stems(text) == beside


@given(groups, words)
def test_texts_side_by_side_rank_as_one_list_without_those_that_are_passed_over(groups, request):
    """What was indexed of each part of a history ranks as if it had been read at once."""
    is_ranked = np.array([chosen for group in groups for _, chosen in group], np.bool_)
    found = scores(request, [postings_of(text for text, _ in group) for group in groups], is_ranked)
    assert found.tolist() == rank(request, [text for text, chosen in chain(*groups) if chosen])


def test_a_text_without_a_word_of_the_request_and_far_from_any_that_has_one_fits_not_at_all():
    ranked = rank("the zebra", ["quiet"] * 5 + ["zebra"])
    assert ranked[0] == ranked[1] == 0 < ranked[2] < ranked[3] < ranked[4] < ranked[5]
