"""Settings of a proxy, combined: every request is answered in few calls, is billed once, and harms no other.

Each configuration is a proxy of its own, with the same groups.
"""

from __future__ import annotations

import json
import re
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import pytest
from configurations import BELIEVED, PLUGIN, WINDOW, configuration, deployment, importable
from proxies import Proxy
from routes import CHAT, MESSAGES, RESPONSES

from ctx_hooks.learning.calibration import REMEMBERED
from ctx_hooks.testing import FakeProvider, ProviderSettings
from ctx_hooks.testing.rules import violations

ANSWER = re.compile(r"Answer to \d+ tokens")
NAMES = {CHAT: "chat", MESSAGES: "messages", RESPONSES: "responses"}
ITEMS = {CHAT: "messages", MESSAGES: "messages", RESPONSES: "input"}
TOKEN_COST = 0.000_001
MOST_CALLS = 4
"""The first attempt and `rescue_attempts` retries, three by default."""

CALLBACKS = '''
import json

from litellm.integrations.custom_logger import CustomLogger
from litellm.proxy import proxy_server


class Log(CustomLogger):
    """Prints what each attempt is billed, and which deployments are cooled down then."""

    async def async_log_success_event(self, kwargs, response_obj, start_time, end_time):
        await self.tell("success", kwargs)

    async def async_log_failure_event(self, kwargs, response_obj, start_time, end_time):
        await self.tell("failure", kwargs)

    async def tell(self, status, kwargs):
        logged = kwargs["standard_logging_object"]
        router = proxy_server.llm_router
        cooled = await router.cooldown_cache.async_get_active_cooldowns(router.get_model_ids(), parent_otel_span=None)
        record = {
            "status": status,
            "prompt_tokens": logged["prompt_tokens"],
            "cost": logged["response_cost"],
            "cache_hit": bool(logged["cache_hit"]),
            "cooled": [id for id, _ in cooled],
        }
        print("billed", kwargs["litellm_call_id"], json.dumps(record), flush=True)


class Adds(CustomLogger):
    """Adds a word to the newest words of the user, in a new request."""

    def __init__(self, word):
        super().__init__()
        self.word = word

    async def async_pre_call_hook(self, user_api_key_dict, cache, data, call_type):
        name = "messages" if "messages" in data else "input"
        *older, newest = data[name]
        if newest.get("role") != "user":
            return {**data, name: [*older, newest, {"role": "user", "content": self.word}]}
        content = newest["content"]
        words = content + self.word if isinstance(content, str) else [*content, {"type": "text", "text": self.word}]
        return {**data, name: [*older, {**newest, "content": words}]}


log, before, after = Log(), Adds(" added-before "), Adds(" added-after ")
'''


@dataclass(frozen=True)
class Configuration:
    """What differs between the proxies. Only without context-window fallbacks does the Router turn to general ones."""

    router: dict[str, Any]
    litellm: dict[str, Any] = field(default_factory=dict)
    callbacks: tuple[str, ...] = (PLUGIN, "callbacks_here.log")
    fallbacks: str = "by group"
    more_calls: int = 0
    """How often the Router itself asks again, on another deployment of the group, before it turns to the retries."""


CONFIGURATIONS = {
    "by usage, checked, between others": Configuration(
        {
            "routing_strategy": "usage-based-routing-v2",
            "enable_pre_call_checks": True,
            "num_retries": 3,
            "allowed_fails": 0,
            "cooldown_time": 600,
        },
        callbacks=("callbacks_here.before", PLUGIN, "callbacks_here.after", "callbacks_here.log"),
    ),
    "least busy, cached, by retry policy": Configuration(
        {
            "routing_strategy": "least-busy",
            "retry_policy": {"BadRequestErrorRetries": 1},
            "allowed_fails_policy": {"BadRequestErrorAllowedFails": 0},
        },
        {"cache": True, "cache_params": {"type": "local"}},
        fallbacks="default",
        more_calls=1,
    ),
}
"""Each setting of LiteLLM's that decides about a failed request is in one of them."""
OTHER_STATUSES = {500: "llama_cpp_python", 429: "rate_limited"}
"""Statuses for which the Router cools a deployment down, and a wording of an overflow that has it."""
EXPECTED_REFUSALS = {
    "plain": (1,),
    "twins": (0, 1),
    "ordered": (1,),
    "alias": (1,),
    "wildcard": (1,),
    "fallback": (1, 2),
}
"""How often the provider refuses: a large twin never does, and what a tiny model needs may be tried before the fallback."""
KINDS = tuple(EXPECTED_REFUSALS)
BOTH = tuple(enumerate(CONFIGURATIONS))
ROUTES = tuple(NAMES)


def group_of(kind, route):
    if kind == "wildcard":  # all models behind it are one deployment: a model of its own for each route
        return f"{'anthropic' if route is MESSAGES else 'openai'}/served-{NAMES[route]}"
    return f"{kind}-{NAMES[route]}"


def served(url, configured):
    """Return the configuration of a proxy with every kind of group for every route."""
    models, aliases = [], {}

    def add(group, model, route, window=BELIEVED, **params):
        made = deployment(url, group, f"{'anthropic' if route is MESSAGES else 'openai'}/{model}", max_input_tokens=window)
        made["model_info"] |= {"id": params.pop("id")} if "id" in params else {}
        made["litellm_params"] |= {"input_cost_per_token": TOKEN_COST, "output_cost_per_token": 0, **params}
        models.append(made)

    for route, name in NAMES.items():
        add(group_of("plain", route), "served", route)
        add(group_of("twins", route), "served", route)
        add(group_of("twins", route), "wide", route, 500_000)
        add(group_of("ordered", route), "served", route, order=1)
        add(group_of("ordered", route), "wide", route, 500_000, order=2)
        add(f"behind-alias-{name}", "served", route)
        aliases[group_of("alias", route)] = f"behind-alias-{name}"
        add(group_of("fallback", route), "tiny", route)
        add(f"known-{name}", "served", route, WINDOW)
        add(f"repeated-{name}", "served", route)
        for status in OTHER_STATUSES:
            add(f"pair-{status}-{name}", "served", route, id=f"first-{status}-{name}")
            add(f"pair-{status}-{name}", "served", route, id=f"second-{status}-{name}")
        add(f"wide-{name}", "wide", route, 500_000)
    add("openai/*", "*", CHAT)
    add("anthropic/*", "*", MESSAGES)
    by_group = [{group_of("fallback", route): [f"wide-{name}"]} for route, name in NAMES.items()]
    fallbacks = (
        {"context_window_fallbacks": by_group}
        if configured.fallbacks == "by group"
        else {"default_fallbacks": ["wide-chat"]}
    )
    return configuration(
        url,
        *models,
        litellm_settings={"callbacks": list(configured.callbacks), **fallbacks, **configured.litellm},
        router_settings={"retry_after": 0, "model_group_alias": aliases, **configured.router},
    )


@pytest.fixture(scope="module")
def strict():
    with FakeProvider(ProviderSettings(window_tokens=WINDOW, windows={"tiny": 60, "wide": 1_000_000})) as running:
        yield running


@pytest.fixture(scope="module")
def proxies(strict, tmp_path_factory):
    environment = importable(tmp_path_factory.mktemp("combinations"), "callbacks_here", CALLBACKS)
    with ExitStack() as stack:
        yield {n: stack.enter_context(Proxy(served(strict.url, c), environment)) for n, c in CONFIGURATIONS.items()}


def billed(proxy, answer):
    """Return what the loggers were told of an answered request, once they were told that it was answered."""
    start = f"billed {answer.headers['x-litellm-call-id']} "
    proxy.wait_until(lambda: re.search(f'{start}{{"status": "success".*\n', proxy.log()), "the answer to be billed")
    return [json.loads(line.split(start)[1]) for line in proxy.log().split("\n")[:-1] if line.startswith(start)]


@pytest.mark.parametrize(("n", "configured"), BOTH, ids=CONFIGURATIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_request_that_overflows_is_answered_in_few_calls_and_billed_once(kind, n, configured, proxies, strict):
    """Route and mode change from kind to kind, so that each meets each setting."""
    at = KINDS.index(kind)
    route, stream, proxy_here = ROUTES[(at + n) % len(ROUTES)], (at // 2 + n) % 2 == 1, proxies[configured]
    strict.reset()
    answer = route.ask(proxy_here, group=group_of(kind, route), stream=stream)
    assert answer.status_code == 200, answer.text
    assert "Answer" in answer.text
    *refused, accepted = strict.requests()
    assert {r["status"] for r in refused} <= {400}
    assert accepted["status"] == 200
    assert len(refused) in EXPECTED_REFUSALS[kind]
    assert accepted["model"].startswith(("wide",) if kind == "fallback" else ("served", "wide"))
    assert violations(accepted["format"], accepted["payload"]) == []
    told = billed(proxy_here, answer)
    (success,) = [r for r in told if r["status"] == "success"]
    assert success["prompt_tokens"] == accepted["input_tokens"]
    assert success["cost"] == pytest.approx(accepted["input_tokens"] * TOKEN_COST)
    assert len(told) <= len(refused) + 1
    assert not any(r["cooled"] for r in told)
    strict.reset()
    hello = {"model": group_of(kind, route), "max_tokens": 20, ITEMS[route]: [{"role": "user", "content": "Hi"}]}
    assert route.post(proxy_here, hello).status_code == 200
    assert [r["status"] for r in strict.requests()] == [200]


@pytest.mark.parametrize("configured", CONFIGURATIONS)
def test_callbacks_before_and_after_ours_have_their_say(configured, proxies, strict):
    """What exceeds a known window is fitted before it is sent, even where the Router compares it with the window itself."""
    for route, name in NAMES.items():
        strict.reset()
        assert route.ask(proxies[configured], group=f"known-{name}").status_code == 200
        (only,) = strict.requests()
        assert only["status"] == 200
        others = "callbacks_here.before" in CONFIGURATIONS[configured].callbacks
        assert (" added-before  added-after " in json.dumps(only["payload"])) == others
        assert only["input_tokens"] <= WINDOW


@pytest.mark.parametrize(
    ("group", "route"), [("known", CHAT), *(("repeated", route) for route in NAMES)], ids=["known", *NAMES.values()]
)
def test_a_repeated_request_is_served_from_litellms_cache_and_another_is_not(group, route, proxies, strict):
    """LiteLLM's key is of what is sent: after an overflow, of the retry. It caches requests of up to four messages.

    What is sent is the same once the token ratio of such text is learned: in a group that other tests ask as well it is when
    most of the answers remembered are to such text.
    """
    proxy_here = proxies["least busy, cached, by retry policy"]
    long = [{"role": role, "content": "a quiet word or two " * 700} for role in ("user", "assistant")]
    for n in range(REMEMBERED // 2 + 1) if group == "known" else ():
        words = [*long, {"role": "user", "content": f"Learn {n}."}]
        payload = {"model": f"{group}-{NAMES[route]}", "max_tokens": 50, ITEMS[route]: words}
        assert route.post(proxy_here, payload).status_code == 200
    seen = {}
    for question in ("Go on.", "Go on.", "What else?", "Go on."):
        strict.reset()
        payload = {
            "model": f"{group}-{NAMES[route]}",
            "max_tokens": 50,
            ITEMS[route]: [*long, {"role": "user", "content": question}],
        }
        answer = route.post(proxy_here, payload)
        assert answer.status_code == 200, answer.text
        (success,) = [r for r in billed(proxy_here, answer) if r["status"] == "success"]
        repeated = question in seen
        assert success["cache_hit"] == repeated
        if success["cache_hit"]:
            assert strict.requests() == []
            assert success["cost"] == 0
            assert ANSWER.search(answer.text)[0] == seen[question]
        else:
            *refused, accepted = strict.requests()
            assert len(refused) == (group == "repeated" and not seen), "only the very first meets an unknown window"
            assert question in json.dumps(accepted["payload"])
            assert success["cost"] == pytest.approx(accepted["input_tokens"] * TOKEN_COST)
        seen[question] = ANSWER.search(answer.text)[0]


@pytest.mark.parametrize("status", OTHER_STATUSES)
@pytest.mark.parametrize("route", NAMES, ids=NAMES.values())
def test_an_overflow_with_another_status_cools_no_deployment_down(status, route, proxies, strict):
    configured = list(CONFIGURATIONS)[(ROUTES.index(route) + list(OTHER_STATUSES).index(status)) % 2]
    proxy_here = proxies[configured]
    strict.reset(wording=OTHER_STATUSES[status])
    try:
        answer = route.ask(proxy_here, group=f"pair-{status}-{NAMES[route]}")
        *refused, accepted = strict.requests()
    finally:
        strict.reset(wording="openai")
    assert answer.status_code == 200, answer.text
    assert {r["status"] for r in refused} == {status}
    assert accepted["status"] == 200
    assert len(refused) < MOST_CALLS + CONFIGURATIONS[configured].more_calls
    assert not any(r["cooled"] for r in billed(proxy_here, answer))
