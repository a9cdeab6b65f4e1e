"""A proxy with the plugin switched off, in any way, is a proxy without it: upstream, at the client, and in its errors.

So is one that observes. What each scope of a policy sets, tests/policy proves; here, that nothing else is done.
"""

from __future__ import annotations

import json
import re

import pytest
from configurations import GENERAL, PLUGIN, deployment, importable
from proxies import Proxy
from routes import CHAT, MODELS, NAMES, ROUTES

from ctx_hooks.testing import FakeProvider, ProviderSettings, agent_session

AUTH = """
from litellm.proxy._types import UserAPIKeyAuth

OFF = {"ctx_hooks": {"enabled": False}}

async def user_api_key_auth(request, api_key):
    who = api_key.removeprefix("sk-")
    return UserAPIKeyAuth(
        api_key="sk-one",
        team_id="a team",
        team_metadata={"team": OFF, "observed-team": {"ctx_hooks": {"mode": "observe"}}}.get(who, {}),
        metadata=OFF if who == "key" else {},
        organization_metadata=OFF if who == "organization" else {},
    )
"""
WINDOW = 1_500
OBSERVED = ("observed-team", "observed-model")
WAYS = ("environment", "team", "key", "organization", "model", "model-info", "session", "tag", "request", *OBSERVED)
KINDS = {"answer": None, "overflow": "openai", "unknown": "cerebras", "in-stream": "sglang_stream", "rate": "rate_limited"}
"""An answer, an overflow that LiteLLM knows, one that it does not know, one inside a stream, and a rate limit."""
CHANGING = re.compile(
    rb"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}|[0-9a-f]{32}|(?:chatcmpl|resp|msg|gen)[-_][\w=+/-]+"
    rb"|\"created(?:_at)?\": ?[\d.]+"
)
"""What differs between any two answers: ids and times."""


def models(url):
    for name in NAMES:
        model = MODELS.get(name, "openai/served")
        yield deployment(url, name, model, max_input_tokens=WINDOW, id=f"id-{name}")
        yield deployment(url, f"{name}-observed-model", model, max_input_tokens=WINDOW, id=f"id-{name}-observed-model")
        yield deployment(url, f"{name}-model", model, max_input_tokens=WINDOW, id=f"id-{name}-model")
        off = {"ctx_hooks": {"enabled": False}}
        yield deployment(url, f"{name}-model-info", model, max_input_tokens=WINDOW, id=f"id-{name}-model-info", **off)


def config(url, settings, callbacks):
    return {
        "model_list": list(models(url)),
        "litellm_settings": {"callbacks": callbacks},
        # The Router's own number: LiteLLM's is forgotten once a request that it translated from Google's route has failed.
        "router_settings": {"num_retries": 1, "retry_after": 0, "disable_cooldowns": True},
        "general_settings": {**GENERAL, "custom_auth": "auth_of_all.user_api_key_auth"},
        "callback_settings": {"ctx_hooks": settings},
    }


@pytest.fixture(scope="module")
def strict_provider():
    with FakeProvider(ProviderSettings(window_tokens=WINDOW)) as running:
        yield running


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    return importable(tmp_path_factory.mktemp("off"), "auth_of_all", AUTH)


@pytest.fixture(scope="module")
def without(strict_provider, environment):
    with Proxy(config(strict_provider.url, {}, []), environment) as running:
        yield running


@pytest.fixture(scope="module")
def switched_by_environment(strict_provider, environment):
    settings = config(strict_provider.url, {}, [PLUGIN])
    with Proxy(settings, {**environment, "CTX_HOOKS_ENABLED": "0"}) as running:
        yield running


@pytest.fixture(scope="module")
def switched_by_scope(strict_provider, environment):
    settings = {
        "defaults": {"request_policies": ["off"]},
        "models": {"*-model": "off", "*-observed-model": "observe"},
        "sessions": {"off:*": "off"},
        "tags": {"off": "off"},
    }
    with Proxy(config(strict_provider.url, settings, [PLUGIN]), environment) as running:
        yield running


def seen(proxy, provider, route, name, way, *, stream, kind, asked=True):
    """Return what the client and the provider saw of a request, without what differs between any two requests.

    `asked`: whether the request asks the plugin for something in its metadata.
    """
    provider.reset(wording=KINDS[kind] or "openai", window_tokens=1_000_000 if kind == "answer" else WINDOW)
    headers = {"authorization": f"Bearer sk-{way}", "x-litellm-call-id": "an id"}
    headers |= {"request": {"x-ctx-hooks": "off"}, "session": {"x-session-id": "off:1"}}.get(way, {})
    metadata = ({"ctx_hooks": "nanobot"} if asked else {}) | ({"tags": ["off"]} if way == "tag" and route is CHAT else {})
    wishes = {"metadata": metadata, "disable_fallbacks": True} | ({"tags": ["off"]} if way == "tag" else {})
    group = f"{name}-{way}" if way in ("model", "model-info", "observed-model") else name
    session = agent_session(route.fmt, turns=6, result_chars=1_000, model=group)
    answer = route.post(proxy, {**session, **wishes, "stream": stream}, headers=headers)
    told = {
        "status": answer.status_code,
        "headers": {k: v for k, v in answer.headers.items() if not varies(k)},
        "body": CHANGING.sub(b"*", answer.content),
    }
    upstream = [
        {"payload": r["payload"], "status": r["status"], "headers": {k: v for k, v in r["headers"].items() if not varies(k)}}
        for r in provider.requests()
    ]
    return told, json.loads(CHANGING.sub(b"*", json.dumps(upstream).encode()))


def varies(header):
    """Whether a header tells of time, load or the process."""
    return header in ("date", "content-length", "traceparent", "host") or any(
        word in header for word in ("duration", "overhead", "spend", "latency", "remaining", "llm_provider-date", "-reset")
    )


CELLS = [
    (route, name, stream, kind)
    for route, name in zip(ROUTES, NAMES, strict=True)
    for stream in (False, True)
    for kind in KINDS
]


@pytest.mark.parametrize("n", range(len(CELLS)), ids=lambda n: "-".join(map(str, CELLS[n][1:])))
def test_off_is_off_and_observing_changes_nothing(n, without, switched_by_environment, switched_by_scope, strict_provider):
    """Every upstream body and header, the number of attempts, and what the client gets are those of a proxy without it.

    What a request asks the plugin for goes to no provider, unless the environment keeps the plugin from doing anything.
    Each case is asked in one or two of the ways, which change from case to case.
    """
    route, name, stream, kind = CELLS[n]
    for way in sorted({WAYS[n % len(WAYS)], WAYS[(n // 2 + 3) % len(WAYS)]}):
        ask = {"route": route, "name": name, "way": way, "stream": stream, "kind": kind}
        expected = seen(without, strict_provider, **ask, asked=way == "environment")
        found = seen(switched_by_environment if way == "environment" else switched_by_scope, strict_provider, **ask)
        assert found == expected, way
        assert not [h for h in found[0]["headers"] if "ctx-hooks" in h]


def test_the_same_requests_are_treated_where_nothing_switches_the_plugin_off(switched_by_scope, strict_provider):
    """Else the comparison above would compare nothing."""
    told, upstream = seen(switched_by_scope, strict_provider, CHAT, "chat", "nobody", stream=False, kind="unknown")
    assert told["status"] == 200
    assert told["headers"]["x-ctx-hooks"].startswith("compressed")
    assert [r["status"] for r in upstream] == [200]
