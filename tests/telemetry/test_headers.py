"""Headers are one line of printable ASCII, short, and all together bounded; a request that is not treated has none."""

from hypothesis import given
from hypothesis import strategies as st

from ctx_hooks.decision import Compressed, Figures, GaveUp, NotRetried, Rescued, Untouched
from ctx_hooks.telemetry.headers import (
    AFTER,
    ATTEMPTS,
    BEFORE,
    DECISION,
    DONE,
    IGNORED,
    MOST_BYTES,
    MOST_CHARS,
    POLICY,
    Headers,
    header_value,
)


@given(st.lists(st.text(st.characters(), max_size=3_000), min_size=1, max_size=60))
def test_any_texts_make_a_value_that_every_server_sends(texts):
    value = header_value(texts)
    assert value.isascii()
    assert not value or value.isprintable()
    assert len(value) <= MOST_CHARS


def test_a_value_says_how_much_it_leaves_out():
    value = header_value([f"field {n} may not be set" for n in range(3_000)])
    named = value.count("may not be set")
    assert value.endswith(f"; and {3_000 - named:,} more")
    assert named > 20
    assert header_value(["one", "two"]) == "one; two"


def test_only_the_requests_own_wishes_are_told():
    headers = Headers()
    headers.note_ignored("id", ["team: reserve_tokens is locked by defaults", "request: language may not be set"])
    assert headers.of("id") == {IGNORED: "language may not be set"}


def test_a_request_that_is_not_treated_has_no_header():
    assert Headers().of("id") == {}


def test_an_untouched_attempt_says_nothing_of_the_one_before_it():
    headers = Headers()
    headers.note("id", Untouched("fits"))
    assert headers.of("id") == {DONE: "fits", DECISION: "fits", ATTEMPTS: "1"}
    headers.note("id", Rescued({"messages": [], "max_tokens": 7}, Figures(9, 5, 6, 8), (), 1), 1, ("defaults", "team"))
    headers.note("id", Untouched("fits"), 1)
    assert headers.of("id") == {
        DONE: "retried; before=9; after=5; max_tokens=7",
        DECISION: "retried",
        BEFORE: "9",
        AFTER: "5",
        ATTEMPTS: "2",
        POLICY: "defaults; team",
    }


def test_a_request_that_was_refused_in_the_end_says_so_with_the_figures_of_its_last_attempt():
    headers = Headers()
    headers.note_failed("id")
    assert headers.of("id") == {}
    headers.note("id", GaveUp({"messages": []}, Figures(9, 7, 6, 8), "above"), 1)
    headers.note("id", NotRetried("no smaller"), 2)
    headers.note_failed("id")
    assert headers.of("id") == {
        DONE: "failed; before=9; after=7",
        DECISION: "failed",
        BEFORE: "9",
        AFTER: "7",
        ATTEMPTS: "2",
    }


def test_what_is_remembered_is_bounded_by_its_bytes_and_the_oldest_go_first():
    headers = Headers()
    wishes = [f"request: {n} " + "x" * 290 for n in range(3)]
    for n in range(6_000):
        headers.note_ignored(f"id {n}", wishes)
        assert headers.size_bytes <= MOST_BYTES
    assert headers.of("id 0") == {}
    assert IGNORED in headers.of("id 5999")
    assert sum(len(headers.of(f"id {n}").get(IGNORED, "")) for n in range(6_000)) <= MOST_BYTES
    headers.note_ignored("x" * 2 * MOST_BYTES, ["request: too large an id to be remembered"])
    assert headers.size_bytes <= MOST_BYTES


def test_noting_the_same_request_again_costs_no_more():
    headers = Headers()
    headers.note("id", Compressed({}, None, ()))
    once = headers.size_bytes
    for _ in range(1_000):
        headers.note("id", Compressed({}, None, ()))
        headers.note("id", Untouched("fits"))
    assert headers.size_bytes == once
