"""Headers are one line of printable ASCII, and short; a request that is not treated has none."""

from hypothesis import given
from hypothesis import strategies as st

from ctx_hooks.decision import Figures, GaveUp, NotRetried, Rescued, Untouched
from ctx_hooks.telemetry.headers import (
    AFTER,
    ATTEMPTS,
    BEFORE,
    DECISION,
    DONE,
    IGNORED,
    MOST_CHARS,
    POLICY,
    header_value,
    of_failed,
    of_ignored,
    with_decision,
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
    ignored = ["team: reserve_tokens is locked by defaults", "request: language may not be set"]
    assert of_ignored(ignored) == {IGNORED: "language may not be set"}
    assert of_ignored(ignored[:1]) == {}


def test_an_untouched_attempt_says_nothing_of_the_one_before_it():
    headers = with_decision({}, Untouched("fits"))
    assert headers == {DONE: "fits", DECISION: "fits", ATTEMPTS: "1"}
    retried = Rescued({"messages": [], "max_tokens": 7}, Figures(9, 5, 6, 8), (), 1)
    headers = with_decision(headers, retried, 1, ("defaults", "team"))
    assert with_decision(headers, Untouched("fits"), 1) == {
        DONE: "retried; before=9; after=5; max_tokens=7",
        DECISION: "retried",
        BEFORE: "9",
        AFTER: "5",
        ATTEMPTS: "2",
        POLICY: "defaults; team",
    }


def test_a_request_that_was_refused_in_the_end_says_so_with_the_figures_of_its_last_attempt():
    assert of_failed({}) == {}
    headers = with_decision({}, GaveUp({"messages": []}, Figures(9, 7, 6, 8), "above"), 1)
    assert of_failed(with_decision(headers, NotRetried("no smaller"), 2)) == {
        DONE: "failed; before=9; after=7",
        DECISION: "failed",
        BEFORE: "9",
        AFTER: "7",
        ATTEMPTS: "2",
    }
