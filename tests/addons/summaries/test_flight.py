"""Whatever becomes of a flight, another can begin: at once, when its lease is over, or after a pause."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctx_hooks.addons.summaries.record import (
    FIRST_PAUSE_SECONDS,
    IDLE,
    MOST_PAUSE_SECONDS,
    Flight,
    begun,
    failed,
    given_up,
    pause_seconds,
)

NOW = 1_700_000_000.0
LEASE = 20.0


def in_flight(flight=IDLE, now=NOW):
    found = begun(flight, "one", now, LEASE)
    assert found is not None
    return found


def may_begin(flight, now):
    return begun(flight, "two", now, LEASE) is not None


def test_of_two_workers_one_has_the_flight_until_its_lease_is_over():
    flight = in_flight()
    assert flight.is_under_way(NOW + 19.9)
    assert not may_begin(flight, NOW + 19.9)
    assert may_begin(flight, NOW + LEASE)


def test_one_failure_is_tried_again_and_two_in_a_row_pause_for_ten_minutes():
    once = failed(in_flight(), NOW)
    twice = failed(in_flight(once), NOW)
    assert not twice.is_under_way(NOW)
    assert not may_begin(twice, NOW + FIRST_PAUSE_SECONDS - 1)
    assert may_begin(twice, NOW + FIRST_PAUSE_SECONDS)


def test_pauses_grow_up_to_the_longest():
    pauses = [pause_seconds(n) for n in range(1, 12)]
    assert pauses[:4] == [0.0, 600.0, 1_200.0, 2_400.0]
    assert pauses == sorted(pauses)
    assert pauses[-1] == MOST_PAUSE_SECONDS


@pytest.mark.parametrize("before", [IDLE, failed(in_flight(), NOW)], ids=["first", "after a failure"])
def test_a_flight_that_is_cancelled_leaves_the_state_from_before(before):
    left = given_up(in_flight(before))
    assert left.failures == before.failures
    assert may_begin(left, NOW)


ENDS = st.sampled_from([lambda _: IDLE, lambda f: failed(f, NOW), given_up, lambda f: f])


@given(st.lists(ENDS, max_size=200))
def test_whatever_happened_a_flight_begins_after_the_longest_pause(ends):
    flight, now = IDLE, NOW
    for end in ends:
        now += MOST_PAUSE_SECONDS + LEASE
        flight = end(in_flight(flight, now))
    assert may_begin(flight, now + MOST_PAUSE_SECONDS + LEASE)
    assert isinstance(flight, Flight)
