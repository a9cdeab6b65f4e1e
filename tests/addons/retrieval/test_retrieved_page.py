"""What a call of the retrieval tool returns, whatever the model says and whatever the text is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import hostile_texts

from ctx_hooks.addons.retrieval.tool import PAGE_CHARS, Asked, asked_of, page_of


@pytest.mark.parametrize(
    "arguments",
    ["", "{", "[]", '{"handle": 7}', '{"handle": "a", "offset": -1}', '{"offset": 1e300}', '{"handle": ' + "[" * 100_000],
)
def test_wrong_arguments_name_no_text(arguments):
    assert asked_of(arguments) == Asked()


def test_number_may_be_text():
    assert asked_of('{"handle": "a", "query": null, "offset": "40", "limit": 9}') == Asked(handle="a", offset=40)


@given(text=hostile_texts, limit=st.integers(1, 50))
def test_pages_put_together_are_the_text(text, limit):
    """To the letter: a page begins behind the line that says which it is."""
    found, pages = "", 0
    while len(found) < len(text) or not pages:
        page = page_of(text, Asked(offset=len(found)), 4 * limit).split("\n", 1)[1]
        assert len(page.encode("utf-8", "surrogatepass")) <= 4 * limit or len(page) <= limit
        found, pages = found + page, pages + 1
    assert found == text


def test_page_has_a_bound():
    assert len(page_of("x" * 100_000, Asked()).split("\n")[1]) == PAGE_CHARS


@given(text=hostile_texts, query=st.text(min_size=1, max_size=20))
def test_query_returns_pieces_of_the_text(text, query):
    heading, *found = page_of(text, Asked(query=query)).split("\n")
    assert f"of {len(text)} characters" in heading
    assert sum(map(len, found)) <= max(PAGE_CHARS, len(text))


def test_best_line_comes_first():
    text = "\n".join([*(f"worker {n} is idle" for n in range(500)), "the launch code is 4711", "end"])
    best = page_of(text, Asked(query="launch code")).split("\n")[1]
    offset, line = best.split(": ", 1)
    assert line == "the launch code is 4711"
    assert text[int(offset) :].startswith(line)


def test_long_line_is_found_in_pieces():
    text = "x" * 300_000 + " launch code 4711 " + "y" * 300_000
    found = page_of(text, Asked(query="launch"))
    assert "launch code 4711" in found
    assert len(found) < 3_000
