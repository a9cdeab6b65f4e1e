"""Figures of an attempt stand in the metadata that LiteLLM logs, beside what the caller has put there."""

from __future__ import annotations

import pytest

from ctx_hooks.litellm_compat import write_figures

COMPRESSED = {"decision": "compressed", "attempt": 0}
UNTOUCHED = {"decision": "untouched", "attempt": 0}


@pytest.mark.parametrize("name", ["metadata", "litellm_metadata"])
def test_figures_stand_in_litellms_own_mapping_and_the_callers_entries_stay(name):
    callers = {"job": 7}
    own = {"spend_logs_metadata": callers}
    write_figures({name: own}, COMPRESSED)
    assert own["spend_logs_metadata"] == {"job": 7, "ctx_hooks": COMPRESSED}
    assert callers == {"job": 7}


def test_a_second_pass_of_one_attempt_that_has_nothing_to_do_hides_nothing():
    own = {"a": 1}
    write_figures({"metadata": own}, COMPRESSED)
    write_figures({"metadata": own}, UNTOUCHED)
    assert own["spend_logs_metadata"]["ctx_hooks"] == COMPRESSED
    write_figures({"metadata": own}, {**UNTOUCHED, "attempt": 1})
    assert own["spend_logs_metadata"]["ctx_hooks"] == {**UNTOUCHED, "attempt": 1}


def test_what_a_caller_puts_in_the_place_of_figures_is_replaced():
    own = {"spend_logs_metadata": {"ctx_hooks": {"decision": "compressed", "attempt": 0, "forged": True}}}
    write_figures({"metadata": own}, UNTOUCHED)
    assert own["spend_logs_metadata"]["ctx_hooks"] == UNTOUCHED


@pytest.mark.parametrize("fields", [{}, {"metadata": None}, {"metadata": "text"}], ids=repr)
def test_without_metadata_nothing_is_written(fields):
    before = dict(fields)
    write_figures(fields, COMPRESSED)
    assert fields == before
