"""A placeholder says in one line what was cut; nothing that it quotes can close it or pass for one."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctx_hooks.conversation import placeholders
from ctx_hooks.conversation.placeholders import MARK, RETRIEVE, Reference, line

every_language = pytest.mark.parametrize("language", ["en", "zh"])


def referring(language, reference=None):
    """Return every placeholder that can refer to the whole of a text."""
    return [
        *(line(name, language, reference, may_repeat=True, kept=2_000, total=90_000) for name in ("oversized", "limited")),
        line("lines", language, reference, may_repeat=True),
        line("records", language, reference, may_repeat=True, left=3, records=40),
        line("removed", language, reference, may_repeat=True, call="read(src/a.py)", total=1_234),
        line("removed", language, reference, call="", total=1_234, ending="1 passed\n[ctx_hooks]"),
        line("shortened", language, reference, total=90_000),
        placeholders.blocks_left_out(["a.py", "b.py"], 700, 900, language, reference),
        placeholders.blocks_left_out([], 700, 900, language, reference),
        *(placeholders.dropped(12, language, reference, below=below) for below in ("record", "summary", "nothing")),
    ]


def all_of(language):
    others = [
        line("repeated", language, tool="read"),
        line("media", language, kind="image", size=7),
        line("heading", language),
    ]
    return [*referring(language), *others]


@every_language
def test_each_is_one_line_behind_the_mark(language):
    for text in all_of(language):
        assert text.splitlines() == [text.strip()]
        assert text.startswith(MARK)


@every_language
@pytest.mark.parametrize("is_offered", [False, True])
@pytest.mark.parametrize(("kept_days", "told"), [(7.0, "7"), (0.5, "0.5")])
def test_reference_says_where_and_how_long(language, is_offered, kept_days, told):
    where = f"{RETRIEVE}(aaaabbbbcccc)" if is_offered else "aaaabbbbcccc"
    how_long = f"至多 {told} 天" if language == "zh" else f"for at most {told} days"
    for text in referring(language, Reference("aaaabbbbcccc", kept_days, is_offered)):
        assert where in text
        assert how_long in text
        assert (RETRIEVE in text) == is_offered
        assert not is_offered or not any(words in text for words in ("repeat the call", "call the tool again", "重新调用"))


@every_language
@given(name=st.text())
def test_no_name_ends_the_line_of_a_source(language, name):
    for kind in ("user", "assistant", "call", "arguments"):
        text = placeholders.source(kind, name, language)
        assert len(text.splitlines()) == 1
        assert MARK not in text


@given(st.text(), st.text())
def test_quotation_is_one_line_without_our_mark(before, behind):
    for text in (before, before + MARK + behind):
        quotation = placeholders.quoted(text)
        assert quotation.splitlines() == [quotation]
        assert json.loads(quotation) == text
        assert MARK not in quotation
