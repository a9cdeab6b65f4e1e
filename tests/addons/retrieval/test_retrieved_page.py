"""What a call of the retrieval tool returns, whatever the model says and whatever the text is."""

import json

from hypothesis import given
from hypothesis import strategies as st
from strategies import hostile_texts

from ctx_hooks.addons.retrieval.tool import LEAST_PAGE_BYTES, MOST_PAGE_CHARS, NO_ROOM, PAGE_CHARS, Asked, asked_of, page_of

values = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=9), lambda inner: st.lists(inner, max_size=3)
)


@given(arguments=st.dictionaries(st.sampled_from(["handle", "query", "offset", "limit"]), values))
def test_any_arguments_can_be_answered(arguments):
    asked = asked_of(json.dumps(arguments))
    assert asked.offset_chars >= 0
    assert 0 < asked.limit_chars <= MOST_PAGE_CHARS
    assert asked.handle == "" or len(asked.handle) == 12


def test_numbers_may_be_text_and_too_large():
    assert asked_of('{"offset": "40", "limit": 1e300}') == Asked("", "", 40, MOST_PAGE_CHARS)
    assert asked_of('{"offset": -3, "limit": 0}') == Asked("", "", 0, PAGE_CHARS)


@given(text=hostile_texts, limit=st.integers(1, 50))
def test_pages_put_together_are_the_text(text, limit):
    """To the letter: a page begins behind the line that says which it is."""
    pages = [page_of(text, Asked("", offset_chars=start, limit_chars=limit)) for start in range(0, len(text) or 1, limit)]
    assert "".join(page.split("\n", 1)[1] for page in pages) == text


@given(text=hostile_texts, query=st.text(min_size=1, max_size=20), limit=st.integers(1, 5_000))
def test_query_returns_pieces_of_the_text(text, query, limit):
    heading, *found = page_of(text, Asked("", query=query.strip() or "x", limit_chars=limit)).split("\n")
    assert f"of {len(text)} characters" in heading
    assert sum(map(len, found)) <= limit


def test_best_line_comes_first():
    text = "\n".join([*(f"worker {n} is idle" for n in range(500)), "the launch code is 4711", "end"])
    best = page_of(text, Asked("", query="launch code")).split("\n")[1]
    offset, line = best.split(": ", 1)
    assert line == "the launch code is 4711"
    assert text[int(offset) :].startswith(line)


def test_long_line_is_found_in_pieces():
    text = "x" * 300_000 + " launch code 4711 " + "y" * 300_000
    found = page_of(text, Asked("", query="launch"))
    assert "launch code 4711" in found
    assert len(found) < 3_000


def test_page_without_room_says_so():
    text = "a line of the log\n" * 50
    assert page_of(text, Asked(""), LEAST_PAGE_BYTES - 1) == NO_ROOM
    assert page_of(text, Asked(""), LEAST_PAGE_BYTES).startswith("[characters 0 to 200 of 900")
