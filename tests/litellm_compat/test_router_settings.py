"""Whatever an operator has set of the Router, an overflow is answered in few calls, billed once, and harms no deployment."""

import json
from collections import defaultdict

import litellm
import pytest
from litellm import DualCache
from litellm.integrations.custom_logger import CustomLogger
from litellm.proxy._types import UserAPIKeyAuth
from litellm.proxy.utils import ProxyLogging
from waits import until

from ctx_hooks.hook import CtxHooks
from ctx_hooks.testing import ProviderSettings, agent_session, violations

WINDOW = 3_000
PROVIDER = (ProviderSettings(window_tokens=WINDOW, windows={"tiny": 60, "wide": 1_000_000}),)
TOKEN_COST = 0.000_001
MOST_CALLS = 5
"""The first attempt, three retries, and one of a retry policy."""
SETTINGS = {
    "by usage, checked": {
        "routing_strategy": "usage-based-routing-v2", "enable_pre_call_checks": True, "num_retries": 3, "allowed_fails": 0,
        "cooldown_time": 600, "context_window_fallbacks": [{"fallback": ["wide"]}],
    },
    "least busy, by retry policy": {
        "routing_strategy": "least-busy", "retry_policy": {"BadRequestErrorRetries": 1}, "num_retries": 0,
        "allowed_fails_policy": {"BadRequestErrorAllowedFails": 0}, "default_fallbacks": ["wide"],
    },
}  # fmt: skip
"""Each setting that decides about a failed request is in one of them."""
REFUSALS = {"twins": (0, 1), "ordered": (1,), "ordered by info": (1,), "alias": (1,), "openai/any": (1,), "fallback": (1, 2)}
"""How often the provider refuses: a large twin never does, and what a tiny model needs may be tried before the fallback."""
REPEATED = {"by usage, checked": 0, "least busy, by retry policy": 1}
"""How often the Router repeats a refused request before it asks the fallback that gets all of it."""
OTHER_STATUSES = {500: "llama_cpp_python", 429: "rate_limited"}
"""Statuses for which the Router cools a deployment down, and a wording of an overflow that has it."""


class Log(CustomLogger):
    """Notes by call what each attempt is billed, and which deployments are cooled down then."""

    def __init__(self):
        super().__init__()
        self.router, self.told = None, defaultdict(list)

    async def async_log_success_event(self, kwargs, response_obj, start_time, end_time):
        await self.note(kwargs, answered=True)

    async def async_log_failure_event(self, kwargs, response_obj, start_time, end_time):
        await self.note(kwargs, answered=False)

    async def note(self, kwargs, *, answered):
        logged, ids = kwargs["standard_logging_object"], self.router.get_model_ids()
        cooled = await self.router.cooldown_cache.async_get_active_cooldowns(ids, parent_otel_span=None)
        record = {"answered": answered, "cooled": cooled, "cached": bool(logged["cache_hit"])}
        self.told[kwargs["litellm_call_id"]].append({**record, **{n: logged[n] for n in ("prompt_tokens", "response_cost")}})


LOG = Log()
"""LiteLLM keeps one of a class."""


class Adds(CustomLogger):
    """Adds a word to the newest words of the user, in a new request."""

    def __init__(self, word):
        super().__init__()
        self.word = word

    async def async_pre_call_hook(self, user_api_key_dict, cache, data, call_type):
        *older, newest = data["messages"]
        return {**data, "messages": [*older, {**newest, "content": newest["content"] + self.word}]}


@pytest.fixture
def ask(provider, proxy_router, monkeypatch):
    """Return how a proxy asks a Router with these settings; the answer, and what loggers were told of it."""
    provider.reset(wording="openai")
    monkeypatch.setattr(litellm, "callbacks", [Adds(" before "), CtxHooks(), Adds(" after "), LOG])

    def group(name, model, window=200_000, info=None, **params):
        own = {"api_base": f"{provider.url}/v1", "api_key": "k", "input_cost_per_token": TOKEN_COST}
        parameters = {"model": f"openai/{model}", **own, "output_cost_per_token": 0, **params}
        stated = {"max_input_tokens": window, "ctx_hooks": {"block_below_tokens": 0}, **(info or {})}
        return {"model_name": name, "litellm_params": parameters, "model_info": stated}

    def asking(settings, number, **more):
        model = f"served-{number}"
        groups = [
            group("twins", model), group("twins", "wide", 500_000), group("ordered by info", model, info={"order": 1}),
            group("ordered by info", "wide", 500_000, info={"order": 2}), group("ordered", model, order=1),
            group("ordered", "wide", 500_000, order=2), group("behind", model), group("openai/*", "*"),
            group("fallback", "tiny"), group("pair", model), group("pair", model), group("wide", "wide", 500_000),
        ]  # fmt: skip
        aliases = {"alias": "behind"}
        LOG.router = proxy_router(*groups, retry_after=0, model_group_alias=aliases, **SETTINGS[settings], **more)

        async def call(name, messages=None, **fields):
            session = agent_session("openai-chat", turns=8, result_chars=3_200)
            call_id = f"{name} {number} {len(LOG.told)}"
            data = {**session, "model": name, "messages": messages or session["messages"], "metadata": {}, **fields}
            auth, proxy = UserAPIKeyAuth(api_key="sk-one"), ProxyLogging(user_api_key_cache=DualCache())
            sent = await proxy.pre_call_hook(auth, {**data, "litellm_call_id": call_id}, "acompletion")
            answer = await LOG.router.acompletion(**sent)
            await until(lambda: any(record["answered"] for record in LOG.told[call_id]))
            return answer, LOG.told[call_id]

        return call

    return asking


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("name", REFUSALS)
async def test_what_overflows_is_answered_in_few_calls_and_billed_once(name, settings, ask, provider):
    asked = ask(settings, 1)
    _, told = await asked(name)
    *refused, accepted = provider.requests()
    most = max(REFUSALS[name]) + REPEATED[settings]
    assert [r["status"] for r in refused] in [[400] * n for n in range(min(REFUSALS[name]), most + 1)]
    assert accepted["model"].startswith(("wide",) if name == "fallback" else ("served", "wide", "any"))
    assert violations(accepted["format"], accepted["payload"]) == []
    assert " before  after " in json.dumps(accepted["payload"]), "callbacks before and after ours have their say"
    (success,) = [record for record in told if record["answered"]]
    assert success["prompt_tokens"] == accepted["input_tokens"]
    assert success["response_cost"] == pytest.approx(accepted["input_tokens"] * TOKEN_COST)
    assert not any(record["cooled"] for record in told)
    provider.reset()
    await asked(name, [{"role": "user", "content": "Hi"}], tools=None)
    assert [r["status"] for r in provider.requests()] == [200], "the next request is answered at once"


@pytest.mark.parametrize("status", OTHER_STATUSES)
@pytest.mark.parametrize("settings", SETTINGS)
async def test_an_overflow_with_another_status_cools_no_deployment_down(status, settings, ask, provider):
    provider.reset(wording=OTHER_STATUSES[status])
    _, told = await ask(settings, 2)("pair")
    *refused, accepted = provider.requests()
    assert {r["status"] for r in refused} == {status}
    assert accepted["status"] == 200
    assert len(refused) < MOST_CALLS
    assert not any(record["cooled"] for record in told)
