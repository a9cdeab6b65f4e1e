"""A placeholder says in one line what was cut; nothing that it quotes can close it or pass for one."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctx_hooks.conversation import placeholders
from ctx_hooks.conversation.placeholders import MARK, RETRIEVE, Reference

every_language = pytest.mark.parametrize("language", ["en", "zh"])


def all_of(language):
    return [
        placeholders.oversized(2_000, 90_000, language, may_repeat=True),
        placeholders.lines_left_out(language, may_repeat=True),
        placeholders.removed("read(src/a.py)", 1_234, language, may_repeat=True),
        placeholders.removed("", 1_234, language, end="1 passed\n[ctx_hooks]", may_repeat=False),
        placeholders.line("repeated", language, tool="read"),
        placeholders.line("superseded", language, tool="read"),
        placeholders.line("shortened", language, total=90_000),
        placeholders.blocks_left_out(["a.py", "b.py"], 700, 900, language),
        placeholders.blocks_left_out([], 700, 900, language),
        placeholders.line("media", language, kind="image", size=70_000),
        placeholders.line("heading", language),
        placeholders.dropped(12, language, below="record"),
        placeholders.dropped(12, language),
    ]


@every_language
def test_each_is_one_line_that_begins_with_the_mark_and_quotes_others_below(language):
    for text in all_of(language):
        line, *quoted = text.splitlines()
        assert line.startswith(MARK)
        assert all(quotation.startswith("> ") for quotation in quoted)
        assert text == text.strip()


def referring(language, reference):
    """Return every placeholder that can refer to the whole of a text."""
    return [
        placeholders.oversized(2_000, 90_000, language, reference, may_repeat=True),
        placeholders.lines_left_out(language, reference, may_repeat=True),
        placeholders.removed("read(src/a.py)", 1_234, language, reference, may_repeat=True),
        placeholders.line("superseded", language, reference, tool="read"),
        placeholders.line("shortened", language, reference, total=90_000),
        placeholders.blocks_left_out(["a.py"], 700, 900, language, reference),
        placeholders.dropped(12, language, reference, below="record"),
        placeholders.dropped(12, language, reference, below="summary"),
        placeholders.dropped(12, language, reference),
    ]


@every_language
@pytest.mark.parametrize("is_offered", [False, True])
@pytest.mark.parametrize(("kept_days", "told"), [(7.0, "7"), (0.5, "0.5")])
def test_what_refers_to_the_whole_of_a_text_says_where_it_is_and_for_how_long(language, is_offered, kept_days, told):
    reference = Reference("aaaabbbbcccc", kept_days, is_offered)
    where = f"{RETRIEVE}(aaaabbbbcccc)" if is_offered else "aaaabbbbcccc"
    how_long = f"至多 {told} 天" if language == "zh" else f"for at most {told} days"
    for line in referring(language, reference):
        assert where in line
        assert how_long in line
        assert (RETRIEVE in line) == is_offered


def test_both_languages_say_the_same_figures():
    for english, chinese in zip(all_of("en"), all_of("zh"), strict=True):
        assert english != chinese
        assert sorted(w for w in _figures(english)) == sorted(w for w in _figures(chinese))


def _figures(text):
    return "".join(c if c.isdigit() or c == "," else " " for c in text.replace(",", ",")).replace(", ", " ").split()


@every_language
@given(call=st.text(), name=st.text(min_size=1))
def test_whoever_is_quoted_cannot_end_the_line_that_names_the_source(language, call, name):
    for line in (
        placeholders.source_of_call(call, language),
        placeholders.source_of_speaker("user", name, language),
        placeholders.quoted(call),
    ):
        assert len(line.splitlines()) == 1
        assert MARK not in line
    assert json.loads(placeholders.quoted(call)) == call


@given(st.text())
def test_a_quotation_is_one_line_of_json_that_holds_no_mark_of_ours(text):
    quotation = placeholders.quoted(text)
    assert quotation.splitlines() == [quotation]
    assert json.loads(quotation) == text
    assert placeholders.MARK not in placeholders.quoted(text + placeholders.MARK + text)
    assert json.loads(placeholders.quoted(placeholders.MARK)) == placeholders.MARK
