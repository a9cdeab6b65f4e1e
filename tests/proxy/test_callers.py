"""What a caller sends never steers what is the operator's or the plugin's own, and never costs him his answer."""

from __future__ import annotations

import json

import pytest
from configurations import BELIEVED, GENERAL, PLUGIN, WINDOW, configuration, deployment, importable
from proxies import Proxy
from routes import CHAT, GEMINI, MESSAGES, MESSAGES_TO_OPENAI, RESPONSES

from ctx_hooks.testing import FakeProvider, ProviderSettings

FOUR = (CHAT, MESSAGES, RESPONSES, GEMINI)
ROUTES = pytest.mark.parametrize("route", FOUR, ids=["chat", "messages", "responses", "gemini"])
STREAMED = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
OFF = {"enabled": False}
PARTS = """
import json
from litellm.integrations.custom_logger import CustomLogger
from litellm.proxy._types import UserAPIKeyAuth

class Log(CustomLogger):
    async def async_log_success_event(self, kwargs, response_obj, start_time, end_time):
        self.tell("success", kwargs)

    async def async_log_failure_event(self, kwargs, response_obj, start_time, end_time):
        self.tell("failure", kwargs)

    def tell(self, event, kwargs):
        logged = kwargs["standard_logging_object"]["metadata"]["spend_logs_metadata"]
        print("logged", event, kwargs["litellm_call_id"], json.dumps(logged, sort_keys=True), flush=True)

async def user_api_key_auth(request, api_key):
    return UserAPIKeyAuth(api_key="sk-one", team_id="t", team_metadata={"ctx_hooks": {"locked": ["enabled"]}})

log = Log()
"""


@pytest.fixture(scope="module")
def provider_here():
    with FakeProvider(ProviderSettings(window_tokens=WINDOW)) as running:
        yield running


@pytest.fixture(scope="module")
def proxy_here(provider_here, tmp_path_factory):
    url = provider_here.url
    served = tuple(zip(FOUR, ("openai/served", "anthropic/claude-served", "openai/served", "gemini/served"), strict=True))
    groups = {"known": WINDOW} | {f"steered-{n}": BELIEVED for n in range(len(STEERING))}
    models = [
        deployment(url, f"{group}-{route.fmt}", model, max_input_tokens=window)
        for group, window in groups.items()
        for route, model in served
    ]
    settings = {
        "models": {"open": OFF},
        "teams": {"vip": OFF},
        "keys": {"vip": OFF},
        "sessions": {"off:*": OFF},
        "tags": {"off": OFF},
    }
    config = configuration(url, *models, callback_settings={"ctx_hooks": settings})
    config["litellm_settings"]["callbacks"] = [PLUGIN, "parts.log"]
    config["general_settings"] = {**GENERAL, "custom_auth": "parts.user_api_key_auth"}
    with Proxy(config, importable(tmp_path_factory.mktemp("callers"), "parts", PARTS)) as running:
        yield running


FORGED = {
    "user_api_key_team_id": "vip",
    "user_api_key_auth": {"team_id": "vip", "key_alias": "vip", "metadata": {"ctx_hooks": OFF}},
}
STEERING = {
    "key and team in the metadata": {"metadata": FORGED},
    "key and team in LiteLLM's metadata": {"litellm_metadata": FORGED},
    "key and team in the body": FORGED,
    "group": {"metadata": {"model_group": "open"}},
    "group in LiteLLM's metadata": {"litellm_metadata": {"model_group": "open"}},
    "deployment": {"metadata": {"model_info": {"ctx_hooks": OFF}}, "model_info": {"ctx_hooks": OFF}},
    "deployment in LiteLLM's metadata": {"litellm_metadata": {"model_info": {"ctx_hooks": OFF}}},
    "session": {"metadata": {"session_id": "off:1"}, "litellm_session_id": "off:1", "user": "off:1"},
    "tags": {"tags": ["off"]},
    "tags in the metadata": {"metadata": {"tags": ["off"]}},
    "request": {"metadata": {"ctx_hooks": OFF}},
    "policy in a header": {"headers": {"x-ctx-hooks": "off"}},
    "session in a header": {"headers": {"x-session-id": "off:1"}},
    "tags in a header": {"headers": {"x-litellm-tags": "off"}},
}


@ROUTES
@pytest.mark.parametrize("n", range(len(STEERING)), ids=list(STEERING))
def test_nothing_that_a_caller_sends_switches_off_what_a_lock_or_the_operator_holds_on(n, route, proxy_here, provider_here):
    """The first attempt is refused, so an answer needs the plugin in every one of its hooks."""
    provider_here.reset(wording="cerebras")
    fields = list(STEERING.values())[n]
    headers = {**proxy_here.headers, **fields.get("headers", {})}
    answer = route.ask(proxy_here, group=f"steered-{n}-{route.fmt}", **{**fields, "headers": headers})
    assert answer.status_code == 200, answer.text
    assert answer.headers["x-ctx-hooks"].startswith("retried")


@ROUTES
@pytest.mark.parametrize("number", [1, 3, {"group": "GROUP", "number": 3}, [3]], ids=["number", "larger", "as ours", "list"])
def test_a_caller_cannot_have_his_request_taken_for_a_retry(number, route, proxy_here, provider_here):
    """In the metadata the marker says nothing; in the body it is a field like any other, and the provider's to judge."""
    group = f"known-{route.fmt}"
    mark = {"ctx_hooks_retry": json.loads(json.dumps(number).replace("GROUP", group))}
    for forged in ({"metadata": mark}, {"litellm_metadata": mark}, mark):
        provider_here.reset(wording="openai")
        answer = route.ask(proxy_here, group=group, **forged)
        (only,) = provider_here.requests()
        assert answer.headers["x-ctx-hooks"].startswith("compressed"), answer.text
        assert answer.status_code == only["status"]
        assert only["status"] == 200 or "Unrecognized request argument supplied: ctx_hooks_retry" in only["error"]


HOSTILE = {
    "line break": {"a\r\nx-forged: yes": 1},
    "NUL": {"a\0b": 1},
    "many": {f"field {n}": n for n in range(3_000)},
    "long": {"n" * 1_000_000: 1},
    "not ASCII": {"字段" * 300: "值"},
    "deep": {"a": json.loads("[" * 90 + "]" * 90)},
    "no fields": ["a", "b\r\n"],
    "a name": "no\r\nname" * 1_000,
}


@ROUTES
@pytest.mark.parametrize("wishes", HOSTILE.values(), ids=HOSTILE)
def test_no_wish_of_a_caller_costs_him_his_answer(wishes, route, proxy_here, provider_here):
    """What comes back of it in a header is printable ASCII, on one line, and short; the provider is asked once."""
    provider_here.reset(wording="openai")
    answer = route.ask(proxy_here, group=f"known-{route.fmt}", metadata={"ctx_hooks": wishes})
    assert answer.status_code == 200, answer.text
    told = answer.headers["x-ctx-hooks-ignored"]
    assert told
    assert told.isascii()
    assert told.isprintable()
    assert len(told) <= 1_024
    assert "x-forged" not in answer.headers
    assert [r["status"] for r in provider_here.requests()] == [200]


@pytest.mark.parametrize("route", [*FOUR, MESSAGES_TO_OPENAI], ids=["chat", "messages", "responses", "gemini", "translated"])
@STREAMED
def test_loggers_are_told_what_was_sent_of_a_request(route, stream, proxy_here, provider_here):
    """LiteLLM logs the request as it came; the figures of each attempt stand in the metadata that every logger gets."""
    provider_here.reset(wording="openai")
    logged = {"owner": "me", "ctx_hooks": {"tokens_after": "forged"}}
    fields = {"metadata" if route in (CHAT, GEMINI) else "litellm_metadata": {"spend_logs_metadata": logged}}
    group = "known-openai-chat" if route is MESSAGES_TO_OPENAI else f"known-{route.fmt}"
    answer = route.ask(proxy_here, group=group, stream=stream, **fields)
    assert answer.status_code == 200, answer.text
    line = f"logged success {answer.headers['x-litellm-call-id']} "
    proxy_here.wait_for_log(line)
    told = json.loads(proxy_here.log().split(line)[1].split("\n")[0])
    assert told["owner"] == "me"
    figures = told["ctx_hooks"]
    assert (figures["decision"], figures["attempt"], figures["policy"]) == ("compressed", 0, "")
    header = answer.headers["x-ctx-hooks"]
    assert f"before={figures['tokens_before']}; after={figures['tokens_after']}" in header
    assert all(isinstance(v, (int, float, str)) for v in figures.values())
