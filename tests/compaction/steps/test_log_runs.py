"""What folding does to any text: it counts what it leaves out, and a second pass changes nothing."""

from itertools import groupby

import pytest
from hostile_texts import behind_header, kinds
from hypothesis import given, settings
from strategies import hostile_texts

from ctx_hooks.compaction.steps import log_runs
from ctx_hooks.texts.pieces import PIECE_CHARS

thorough = settings(max_examples=60)


@pytest.mark.parametrize("kind", kinds.values(), ids=kinds)
def test_a_long_text_is_folded_at_once_across_the_pieces_it_is_read_in(kind):
    for text in (kind(2 * PIECE_CHARS), behind_header(kind)(2 * PIECE_CHARS)):
        once = log_runs.fold(text)
        assert len(once) <= len(text)
        assert log_runs.fold(once) == once


@thorough
@given(text=hostile_texts)
def test_a_folded_run_counts_the_lines_it_left_out_and_they_were_alike(text):
    folded = log_runs.fold(text)
    if folded == text:
        return
    lines = text.splitlines(keepends=True)
    given_lines = iter(lines)
    for line in folded.splitlines(keepends=True):
        number, _, rest = line.removeprefix("… ").partition(" more ")
        if rest.strip() in ("alike but for figures", "redrawn in its place"):
            left_out = [next(given_lines) for _ in range(int(number))]
            assert len(left_out) == int(number) >= 2
            words = ("".join(c for c in dropped if c.isalpha() and c not in "abcdefABCDEF") for dropped in left_out)
            assert len(list(groupby(words))) == 1
        else:
            assert next(given_lines) == line
    assert next(given_lines, None) is None


def test_progress_that_was_redrawn_keeps_its_first_and_last_state():
    bar = "".join(f"\rprogress [{'=' * (n // 10):10}] {n}%" for n in range(101))
    folded = log_runs.fold(f"building{bar}\ndone\n")
    assert folded.splitlines() == [
        "building",
        "progress [          ] 0%",
        "… 98 more redrawn in its place",
        "progress [========= ] 99%",
        "progress [==========] 100%",
        "done",
    ]
