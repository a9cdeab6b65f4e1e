"""Each kind of refusal gets the remedy that fits it, and what was learned holds for the next request."""

from __future__ import annotations

import litellm
import pytest
from configurations import PLUGIN, configuration, deployment, importable
from proxies import Proxy
from routes import CHAT, MESSAGES, RESPONSES

from ctx_hooks.testing import FakeProvider, ProviderSettings, agent_session
from ctx_hooks.testing.rules import violations

ROUTES = pytest.mark.parametrize("route", [CHAT, MESSAGES, RESPONSES], ids=["chat", "messages", "responses"])
OUTPUT_FIELDS = {"openai-chat": "max_tokens", "anthropic": "max_tokens", "openai-responses": "max_output_tokens"}


@pytest.fixture(scope="module")
def counting_provider():
    settings = ProviderSettings(
        window_tokens=40_000, windows={"small": 8_000, "wide": 1_000_000}, counts_output=True, wording="openai_requested"
    )
    with FakeProvider(settings) as running:
        yield running


ANSWERS = """
from litellm.integrations.custom_logger import CustomLogger

class Answers(CustomLogger):
    async def async_log_success_event(self, kwargs, response_obj, start_time, end_time):
        print("told of the answer to", kwargs.get("litellm_call_id"), flush=True)

handler = Answers()
"""
"""A second callback: LiteLLM tells them in their order, so the plugin has learned by then."""


@pytest.fixture(scope="module")
def counting_proxy(counting_provider, tmp_path_factory):
    url = counting_provider.url
    environment = importable(tmp_path_factory.mktemp("answers"), "answers", ANSWERS)
    models = (
        *(
            deployment(url, f"sum-{n}", m)
            for n, m in (("chat", "openai/x"), ("messages", "anthropic/x"), ("responses", "openai/x"))
        ),
        deployment(url, "capped", "openai/x"),
        deployment(url, "mute-openai-chat", "openai/small"),
        deployment(url, "mute-anthropic", "anthropic/small"),
        deployment(url, "mute-openai-responses", "openai/small"),
        deployment(url, "twins", "openai/small", max_input_tokens=8_000),
        deployment(url, "twins", "openai/wide", max_input_tokens=500_000),
        deployment(url, "short-lived", "openai/x", max_input_tokens=40_000, ctx_hooks={"max_turns": 1}),
    )
    config = configuration(url, *models, litellm_settings={"callbacks": [PLUGIN, "answers.handler"]})
    with Proxy(config, environment) as running:
        yield running


@ROUTES
def test_an_output_that_does_not_fit_beside_the_input_is_lowered_and_the_conversation_stays_whole(
    route, counting_proxy, counting_provider
):
    field = OUTPUT_FIELDS[route.fmt]
    group = f"sum-{['chat', 'messages', 'responses'][[CHAT, MESSAGES, RESPONSES].index(route)]}"
    counting_provider.reset()
    answer = route.ask(counting_proxy, group=group, **{field: 30_000})
    assert answer.status_code == 200, answer.text
    refused, accepted = counting_provider.requests()
    assert (refused["status"], accepted["status"]) == (400, 200)
    assert 256 <= accepted["max_tokens"] < 30_000
    assert accepted["input_tokens"] == refused["input_tokens"], "nothing was cut"
    assert f"{field}={accepted['max_tokens']}" in answer.headers["x-ctx-hooks"]
    counting_provider.reset()
    assert route.ask(counting_proxy, group=group, seed=1, **{field: 30_000}).status_code == 200
    assert [r["status"] for r in counting_provider.requests()] == [200], "the next request is lowered before it is sent"


def test_an_output_above_the_models_own_cap_is_lowered_to_it(counting_proxy, counting_provider):
    counting_provider.reset(max_output_tokens=4_096)
    try:
        messages = [{"role": "user", "content": "hi"}]
        for expected in ([400, 200], [200]):
            payload = {"model": "capped", "messages": messages, "max_tokens": 20_000}
            answer = CHAT.post(counting_proxy, payload)
            assert answer.status_code == 200, answer.text
            assert [r["status"] for r in counting_provider.requests()] == expected
            assert counting_provider.requests()[-1]["max_tokens"] == 4_096
            counting_provider.reset()
    finally:
        counting_provider.reset(max_output_tokens=None)


def test_each_deployment_of_a_group_is_fitted_to_its_own_window(counting_proxy, counting_provider):
    counting_provider.reset()
    for seed in range(12):
        assert CHAT.ask(counting_proxy, group="twins", seed=seed).status_code == 200
    sizes = {"small": [], "wide": []}
    for record in counting_provider.requests():
        if record["status"] == 200:
            sizes[record["model"]].append(record["input_tokens"])
    assert sizes["small"]
    assert sizes["wide"]
    assert max(sizes["small"]) <= 8_000 < min(sizes["wide"])


def test_only_the_newest_turns_are_sent_where_the_policy_says_so(counting_proxy, counting_provider):
    counting_provider.reset()
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "first"},
        {"role": "assistant", "content": "one"},
        {"role": "user", "content": "second"},
    ]
    assert CHAT.post(counting_proxy, {"model": "short-lived", "messages": messages}).status_code == 200
    assert [m["content"] for m in counting_provider.requests()[-1]["payload"]["messages"]] == ["Be brief.", "second"]


async def test_a_plain_router_fits_and_rescues_as_well(counting_provider, monkeypatch):
    import ctx_hooks

    monkeypatch.setattr(litellm, "callbacks", [ctx_hooks.proxy_handler_instance])
    counting_provider.reset(counts_output=False, wording="openai")
    try:
        params = {"model": "openai/small", "api_base": f"{counting_provider.url}/v1", "api_key": "none"}
        known = {"model_name": "known", "litellm_params": params, "model_info": {"max_input_tokens": 8_000}}
        router = litellm.Router(model_list=[known])
        payload = agent_session("openai-chat", model="known")
        answer = await router.acompletion(**payload)
        assert "Answer" in answer.choices[0].message.content
        (only,) = counting_provider.requests()
        assert only["input_tokens"] <= 8_000
        assert violations("openai-chat", only["payload"]) == []
    finally:
        counting_provider.reset(counts_output=True, wording="openai_requested")


@ROUTES
def test_a_provider_that_truncates_in_silence_is_told_of_and_sent_no_more_than_it_reads(
    route, counting_proxy, counting_provider
):
    group = f"mute-{route.fmt}"
    talk = [{"role": ("user", "assistant")[n % 2], "content": f"{n} " + "a quiet word or two " * 300} for n in range(31)]
    field = "input" if route is RESPONSES else "messages"
    counting_provider.reset(silent_truncation=True, counts_output=False)
    try:
        for length in (21, 23, 27, 31):
            answer = route.post(counting_proxy, {"model": group, "max_tokens": 100, field: talk[:length]})
            assert answer.status_code == 200
            counting_proxy.wait_for_log(f"told of the answer to {answer.headers['x-litellm-call-id']}")
        first, *_, last = counting_provider.requests()
        assert first["input_tokens"] > 20_000, "small enough for the window that is believed, so it is not even counted"
        assert last["input_tokens"] <= 8_000
        assert "refuses nothing that is too long" in counting_proxy.log()
    finally:
        counting_provider.reset(silent_truncation=False, counts_output=True)
