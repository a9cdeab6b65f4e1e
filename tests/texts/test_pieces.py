"""Texts read in pieces are read as in one."""

import re

import pytest
from hostile_texts import behind_header, kinds

from ctx_hooks.compaction.selection.records import MOST_RECORD_CHARS
from ctx_hooks.compaction.selection.segments import LONGEST_SEGMENT_CHARS, MOST_SEGMENTS, segments
from ctx_hooks.texts.pieces import LONGEST_LINE_CHARS, PIECE_CHARS, error_lines, lines, pieces, spans

every_kind = pytest.mark.parametrize("kind", kinds.values(), ids=kinds)


@every_kind
def test_pieces_are_bounded_and_together_the_text(kind):
    text = kind(5 * PIECE_CHARS)
    assert "".join(pieces(text)) == text
    assert max(end - start for start, end in spans(text)) <= 2 * PIECE_CHARS
    assert list(lines(text)) == text.splitlines(keepends=True)


@every_kind
def test_segments_cover_text_and_are_bounded(kind):
    for text in (kind(60_000), behind_header(kind)(60_000)):
        found = segments(text).spans
        assert "".join(text[start:end] for start, end in found) == text
        assert max(end - start for start, end in found) <= max(LONGEST_SEGMENT_CHARS, MOST_RECORD_CHARS)
        assert len(found) <= MOST_SEGMENTS + 1


def test_error_lines_equal_a_search_over_all():
    text = "".join(f"line {n} {('is fine', 'FAILED: disk full', '出现错误', 'asserted')[n % 4]}\n" for n in range(9_000))
    named = re.compile("failed|错误|asserted", re.IGNORECASE)
    assert list(error_lines(text)) == [line for line in text.split("\n") if named.search(line)]


def test_long_error_line_is_yielded_once():
    assert list(error_lines("error " * 50_000 + "\nfatal\n")) == [("error " * 50_000)[:LONGEST_LINE_CHARS], "fatal"]
    assert list(error_lines("errors and mirrored terrors\n" * 9_000)) == []
