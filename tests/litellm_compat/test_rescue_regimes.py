"""Each fallback regime through a real Router: which model groups are asked after an overflow, and in which order."""

from contextlib import suppress

import litellm
import pytest
from litellm.integrations.custom_logger import CustomLogger

from ctx_hooks.litellm_compat.rescue import arrange_rescue, take_retry_mark

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
