"""A summary's call is known by what only this process can write, and there is none where nobody pays for it."""

import pytest
from litellm import InternalServerError, Router
from litellm.proxy._types import UserAPIKeyAuth

from ctx_hooks.addons.summaries.writing import ONCE, payer_of
from ctx_hooks.attempts import target
from ctx_hooks.litellm_compat.call import SUMMARY_MARK, Call
from ctx_hooks.policy.loading import load_settings
from ctx_hooks.policy.resolve import Policies
from ctx_hooks.runtime.warnings import forget_warnings

SETTINGS = {"defaults": {"summary": {"model": "small"}}}


def fields(**metadata):
    return {"model": "openai/small", "messages": [], "metadata": {"model_group": "small", **metadata}}


def test_summary_call_has_no_summary():
    policies = Policies(load_settings(SETTINGS)[0])
    asks, is_asked = (target.of_attempt(Call(fields(**mark)), policies, 0).policy for mark in ({}, SUMMARY_MARK))
    assert asks.addon_names == ("summaries",)
    again = target.of_attempt(Call(fields(**SUMMARY_MARK)), policies, 0).policy
    assert (is_asked.summary, is_asked.addon_names, again.addon_names) == (None, (), ())
    assert target.of_group(Call(fields(**SUMMARY_MARK)), policies).policy.summary is None


@pytest.mark.parametrize("forged", [True, "", {}, "0" * 32, SUMMARY_MARK])
def test_caller_cannot_forge_the_mark(forged):
    (name,) = SUMMARY_MARK
    assert not Call(fields(**{name: forged})).is_for_summary


def test_no_summary_is_written_outside_the_proxy(caplog):
    forget_warnings()
    for _ in range(2):
        assert payer_of(Call(fields(user_api_key_auth=UserAPIKeyAuth(api_key="sk-one")))) is None
    assert caplog.text.count("summaries are written only in the proxy") == 1


async def test_fallback_never_gets_the_conversation():
    """The operator's fallbacks are for the callers' requests."""
    answers = {"small": "litellm.InternalServerError", "other": "the other's answer"}
    deployments = [
        {"model_name": name, "litellm_params": {"model": f"openai/{name}", "api_key": "x", "mock_response": answer}}
        for name, answer in answers.items()
    ]
    router = Router(model_list=deployments, fallbacks=[{"small": ["other"]}])
    messages = [{"role": "user", "content": "Summarise."}]
    answer = await router.acompletion(model="small", messages=messages, num_retries=0)
    assert answer.choices[0].message.content == answers["other"]
    with pytest.raises(InternalServerError):
        await router.acompletion(model="small", messages=messages, **ONCE)
