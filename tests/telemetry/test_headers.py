"""Headers are one line of printable ASCII, and short; a request that is not treated has none."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from told_events import DECISION as DECIDED
from told_events import FAILURE

from ctx_hooks.telemetry.headers import DONE, MOST_CHARS, header_value, of_failed, of_ignored, with_decision

POLICY, DECISION, ATTEMPTS = (f"{DONE}-{name}" for name in ("policy", "decision", "attempts"))
FITS = replace(DECIDED, decision="fits", budget_tokens=None, policy={})
RETRIED = replace(
    DECIDED, decision="retried", attempt=1, provider_tokens_before=9, provider_tokens_after=5, budget_tokens=6, policy={}
)


@given(st.lists(st.text(st.characters(), max_size=3_000), min_size=1, max_size=60))
def test_any_texts_make_a_value_that_every_server_sends(texts):
    value = header_value(texts)
    assert value.isascii()
    assert not value or value.isprintable()
    assert len(value) <= MOST_CHARS


def test_only_the_requests_own_wishes_are_told():
    ignored = ["team: reserve is locked by defaults", "request: language may not be set"]
    assert of_ignored(ignored) == {f"{DONE}-ignored": "language may not be set"}
    assert of_ignored(ignored[:1]) == {}


def test_an_untouched_attempt_says_nothing_of_the_one_before_it():
    headers = with_decision({}, FITS, {}, is_changed=False)
    assert headers == {DONE: "fits", DECISION: "fits", ATTEMPTS: "1"}
    retried = replace(RETRIED, policy={"mode": "team", "language": "defaults", "retrieval": "team"})
    headers = with_decision(headers, retried, {"max_tokens": 7}, is_changed=True)
    assert with_decision(headers, replace(FITS, decision="retried", attempt=1), {}, is_changed=False) == {
        DONE: "retried; before=9; after=5; max_tokens=7",
        DECISION: "retried",
        ATTEMPTS: "2",
        POLICY: "defaults; team",
    }


def test_a_lowered_output_is_named_beside_the_requested_one():
    asked = replace(FITS, decision="output_lowered", requested_output_tokens=4_000)
    assert with_decision({}, asked, {"max_tokens": 846}, is_changed=True)[DONE] == "output_lowered; max_tokens=846 of 4000"
    unasked = replace(asked, requested_output_tokens=None)
    assert with_decision({}, unasked, {"max_tokens": 846}, is_changed=True)[DONE] == "output_lowered; max_tokens=846"


def test_a_request_that_was_refused_in_the_end_says_so_with_the_figures_of_its_last_attempt():
    assert of_failed({}, FAILURE) == {}
    headers = with_decision({}, RETRIED, {}, is_changed=True)
    assert of_failed(headers, FAILURE) == {
        DONE: "failed; before=9; after=5",
        DECISION: "failed",
        ATTEMPTS: "2",
    }
