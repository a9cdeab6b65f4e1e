"""Retries go to the same model group, in front of what the operator and the caller configured, which stays in force."""

import copy
import json
from contextlib import suppress
from types import SimpleNamespace

import litellm
import pytest
from litellm.integrations.custom_logger import CustomLogger
from litellm.litellm_core_utils.sensitive_data_masker import mask_sensitive_structure

from ctx_hooks.litellm_compat.rescue import (
    COMPACTION_KEY,
    MOST_FALLBACKS,
    RETRY_MARK_KEY,
    SECRET,
    arrange_rescue,
    hide_retries,
    take_retry_mark,
)


def chain(arranged, group="group"):
    """Return the models of the group's context-window fallbacks, ours as their numbers."""
    own = next(entry[group] for entry in arranged["context_window_fallbacks"] if group in entry)
    return [e[RETRY_MARK_KEY]["number"] if isinstance(e, dict) and RETRY_MARK_KEY in e else e for e in own]


@pytest.mark.parametrize(("entries", "expected"), [
    ([{"*": ["any"]}], ["any"]), ([{"*": ["any"]}, {"openai/group": ["large"]}], ["large"]),
    ([{"*": ["any"]}, {"group": ["large"]}], ["large"]),
    ([{"group": ["large"]}, {"openai/group": ["larger"]}], ["larger"]), ([{"other": ["large"]}], []),
], ids=["every group's", "its own", "without its provider", "the full name first", "another's"])  # fmt: skip
def test_a_groups_own_fallbacks_stand_above_those_of_every_group(proxy_router, entries, expected):
    proxy_router()
    data = {"model": "openai/group", "context_window_fallbacks": entries}
    assert chain(arrange_rescue(data, 1), "openai/group") == [1, *expected]


@pytest.mark.parametrize(("configured", "numbers"), [(7, 0), (4, 1), (3, 2), (0, 3)])
def test_the_operators_fallbacks_are_reached_before_the_router_stops(proxy_router, configured, numbers):
    """The Router stops after five: retries give way, but for one."""
    proxy_router()
    names = [f"large-{n}" for n in range(configured)]
    listed = chain(arrange_rescue({"model": "group", "context_window_fallbacks": [{"group": names}]}, 3))
    retries = [e for e in listed if isinstance(e, int)]
    assert len(retries) == max(1, numbers)
    assert listed[len(retries) :] == names
    assert len(retries) + min(configured, MOST_FALLBACKS - 1) <= MOST_FALLBACKS


def test_a_mark_is_taken_out_and_counts_on_its_own_group_alone(proxy_router):
    """Also a copy of it: the Router of LiteLLM 1.110 hands on copies."""
    proxy_router()
    _, entry, *_ = arrange_rescue({"model": "group"}, 3)["context_window_fallbacks"][0]["group"]

    def attempt(group):
        return {**copy.deepcopy(entry), "model": "openai/x", "metadata": {"model_group": group}}

    for depth, others in ((None, None), (2, 0), (3, 1), (1, 0)):
        own, other = {**attempt("group"), "fallback_depth": depth}, {**attempt("large"), "fallback_depth": depth}
        assert (take_retry_mark(own), take_retry_mark(other)) == ((2, others), (0, others))
        assert {RETRY_MARK_KEY, COMPACTION_KEY}.isdisjoint((*own, *other))


def test_printed_mark_reveals_no_secret(proxy_router):
    """LiteLLM logs the list of fallbacks. A mark is no proof for another group or number."""
    proxy_router()
    arranged = arrange_rescue({"model": "group"}, 2)
    told = repr(arranged) + json.dumps(arranged) + repr(mask_sensitive_structure(arranged))
    assert not any(form in told for form in (str(SECRET), SECRET.hex(), SECRET.decode("latin-1")))
    first, second = (e[RETRY_MARK_KEY] for e in arranged["context_window_fallbacks"][0]["group"])
    for forged in ({**first, "number": 2}, {**second, "group": "other"}, {**first, "secret": second["secret"]}):
        attempt = {RETRY_MARK_KEY: forged, "model": forged["group"]}
        assert take_retry_mark(attempt)[0] == 0
        assert RETRY_MARK_KEY in attempt
    assert first["secret"] not in repr(mask_sensitive_structure(arranged))


@pytest.mark.parametrize("callers", [None, {"type": "summarize"}])
def test_the_router_takes_a_retry_for_one_that_compacts_itself_and_the_provider_gets_the_callers_field(
    proxy_router, callers
):
    proxy_router()
    (entry,) = arrange_rescue({"model": "group", COMPACTION_KEY: callers}, 1)["context_window_fallbacks"][0]["group"]
    assert entry[COMPACTION_KEY]
    take_retry_mark(entry)
    assert entry.get(COMPACTION_KEY) == callers


@pytest.mark.parametrize("sent", [{"group": "group", "number": 2}, 2, "2", None], ids=str)
def test_what_a_caller_sends_under_the_marks_name_is_a_field_like_any_other(sent):
    attempt = {"model": "group", RETRY_MARK_KEY: sent}
    assert take_retry_mark(attempt) == (0, None)
    assert attempt[RETRY_MARK_KEY] == sent


@pytest.mark.parametrize("fallbacks", [0, 1])
@pytest.mark.parametrize("cost", [None, 0, 0.5])
@pytest.mark.parametrize("is_mapping", [True, False])
def test_answer_shows_fallbacks_without_retries(fallbacks, cost, is_mapping):
    """An answer without LiteLLM's headers, and a call without a record, stay unchanged."""
    headers, record = {"x-litellm-attempted-fallbacks": 2, "x-litellm-fallback-errors": "[]"}, {"response_cost": cost}
    hidden, fields = {"additional_headers": headers}, {"litellm_logging_obj": SimpleNamespace(model_call_details=record)}
    answer = {"_hidden_params": hidden} if is_mapping else SimpleNamespace(_hidden_params=hidden)
    hide_retries(fields, answer, fallbacks)
    assert headers["x-litellm-attempted-fallbacks"] == fallbacks
    assert ("x-litellm-fallback-errors" in headers) is bool(fallbacks)
    assert record == ({"response_cost": cost} if cost else {})
    for bare in ({}, {"_hidden_params": None}, object(), "text"):
        hide_retries({}, bare, fallbacks)
    assert not hasattr(bare, "_hidden_params")


OVERFLOW = "litellm.ContextWindowExceededError"
OTHER_ERROR = "litellm.InternalServerError"
MESSAGES = [{"role": "user", "content": "hello"}]


def deployment(group, answer):
    return {"model_name": group, "litellm_params": {"model": f"openai/{group}", "api_key": "k", "mock_response": answer}}


class Attempts(CustomLogger):
    """Notes every attempt as the deployment hook sees it: the number of a retry, the group's name of any other."""

    def __init__(self):
        super().__init__()
        self.asked = []

    async def async_pre_call_deployment_hook(self, kwargs, call_type):
        number, _ = take_retry_mark(kwargs)
        self.asked.append(number or kwargs["metadata"]["model_group"])
        return kwargs


@pytest.fixture
def asked(proxy_router, monkeypatch):
    """Return what a Router asks until an answer or its last fallback: `settings` are the operator's, `data` the caller's."""

    async def ask(settings, data, *, answers=(OVERFLOW, OVERFLOW), retries=2):
        own, others = answers
        groups = [deployment("group", own), *(deployment(name, others) for name in ("large", "general", "callers"))]
        router = proxy_router(*groups, num_retries=0, **settings)
        attempts = Attempts()
        monkeypatch.setattr(litellm, "callbacks", [attempts])
        with suppress(litellm.ContextWindowExceededError, litellm.InternalServerError):
            await router.acompletion(**arrange_rescue({"model": "group", "messages": MESSAGES, **data}, retries))
        return attempts.asked

    return ask


OPERATORS = {"context_window_fallbacks": [{"group": ["large"]}], "fallbacks": [{"group": ["general"]}]}
REGIMES = {
    "nothing configured": ({}, {}, ["group", 1, 2]),
    "the operator's context-window fallbacks": (OPERATORS, {}, ["group", 1, 2, "large"]),
    "the operator's general fallbacks": ({"fallbacks": [{"group": ["general"]}]}, {}, ["group", 1, 2, "general"]),
    "the caller's context-window fallbacks": (
        OPERATORS, {"context_window_fallbacks": [{"group": ["callers"]}]}, ["group", 1, 2, "callers"],
    ),
    "a caller's plain list": (OPERATORS, {"fallbacks": ["callers"]}, ["group", 1, 2, "callers"]),
    "a caller's list of entries": (OPERATORS, {"fallbacks": [{"model": "callers"}]}, ["group", 1, 2, "callers"]),
    "disable_fallbacks": (OPERATORS, {"disable_fallbacks": True}, ["group", 1, 2]),
    "disable_fallbacks above a plain list": (
        OPERATORS, {"disable_fallbacks": True, "fallbacks": ["callers"]}, ["group", 1, 2],
    ),
}  # fmt: skip


@pytest.mark.parametrize("regime", REGIMES)
async def test_after_an_overflow_the_retries_come_first_and_then_what_is_configured(regime, asked):
    settings, data, expected = REGIMES[regime]
    assert await asked(settings, data) == expected


@pytest.mark.parametrize(("data", "expected"), [
    ({}, ["group", "general"]), ({"fallbacks": ["callers"]}, ["group", "callers"]),
    ({"disable_fallbacks": True}, ["group"]),
], ids=["configured", "plain list", "disabled"])  # fmt: skip
async def test_after_any_other_error_nothing_is_retried_and_the_fallbacks_are_as_without_the_plugin(data, expected, asked):
    found = await asked(OPERATORS, data, answers=(OTHER_ERROR, "fine"))
    without = await asked(OPERATORS, data, answers=(OTHER_ERROR, "fine"), retries=0)
    assert found == without == expected
