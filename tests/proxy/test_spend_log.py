"""What LiteLLM's spend log says of a request, by LiteLLM's own code: on native and translated routes, streamed or not."""

import json

import pytest
from configurations import GENERAL, PLUGIN, deployment, importable
from proxies import Proxy
from routes import MODELS, NAMES, ROUTES

from ctx_hooks.testing import agent_session
from ctx_hooks.testing.streams import OUTPUT_TOKENS

CALLBACKS = """
import json, os
from litellm.integrations.custom_logger import CustomLogger
from litellm.proxy import proxy_server
from litellm.proxy._types import UserAPIKeyAuth
from litellm.proxy.db.db_spend_update_writer import DBSpendUpdateWriter
from litellm.proxy.spend_tracking.spend_tracking_utils import get_logging_payload
from litellm.proxy.utils import PrismaClient

class Spend(CustomLogger):
    '''Prints the rows that LiteLLM would write into its database, where there were one.'''

    async def async_log_success_event(self, kwargs, response_obj, start_time, end_time):
        group = kwargs["standard_logging_object"]["model_group"]
        log = get_logging_payload(kwargs, response_obj, start_time, end_time, proxy_server.llm_router)
        add = DBSpendUpdateWriter()._common_add_spend_log_transaction_to_daily_transaction
        daily = await add(log, PrismaClient.__new__(PrismaClient), "team")
        metadata, payload = json.loads(log["metadata"]), kwargs["standard_logging_object"]
        row = {
            "team": log["team_id"],
            "spend": log["spend"],
            "savings": metadata["compression_savings"],
            "figures": metadata["spend_logs_metadata"]["ctx_hooks"],
            "told": payload["metadata"]["spend_logs_metadata"]["ctx_hooks"],
            "tags": json.loads(log["request_tags"]),
            "daily_spend": daily["spend"],
            "daily_tokens": daily["compression_saved_tokens"],
            "daily_dollars": daily["compression_savings_spend"],
        }
        print("row", kwargs["litellm_call_id"], json.dumps(row), "end", flush=True)

async def user_api_key_auth(request, api_key):
    return UserAPIKeyAuth(api_key=api_key, team_id="red")

handler = Spend()
"""
TIGHT, RESERVE = 12_000, 0.45
"""Holds a session of 8,000 tokens, but not the share that is kept free for its answer as well."""
TURNS = 8
"""Of a session of 8,000 tokens."""
PRICES = {"input_cost_per_token": 0.001, "cache_read_input_token_cost": 0.0001, "output_cost_per_token": 0.01}
PLAIN, CACHED, OUTPUT = PRICES.values()
LOGGED = tuple(name for name in NAMES if name != "gemini-to-openai")
"""The other LiteLLM logs under another id, and bills nothing."""
TAG = "a caller's own"
MOST_APART = 0.02
"""The provider adds four tokens to each message, and thinking a line to each turn, which no local count knows."""
over_every_route = pytest.mark.parametrize("name", LOGGED)
over_every_route_in_turn = pytest.mark.parametrize(
    ("name", "stream"), [(name, n % 2 == 1) for n, name in enumerate(LOGGED)], ids=LOGGED
)


@pytest.fixture(autouse=True)
def _roomy(_fresh_provider, provider):
    provider.configure(window_tokens=1_000_000)


@pytest.fixture(scope="module")
def spending(provider, tmp_path_factory):
    """A proxy that asks the test's logger before the plugin."""
    windows = {"compressed": TIGHT, "whole": 1_000_000}
    models = [
        deployment(provider.url, f"{name}-{group}", MODELS.get(name, "openai/served"), max_input_tokens=window, **PRICES)
        for name in LOGGED
        for group, window in windows.items()
    ]
    config = {
        "model_list": models,
        "litellm_settings": {"callbacks": ["spend_rows.handler", PLUGIN]},
        "general_settings": {**GENERAL, "custom_auth": "spend_rows.user_api_key_auth"},
        "callback_settings": {"ctx_hooks": {"defaults": {"reserve": f"{RESERVE:.0%}"}}},
    }
    with Proxy(config, importable(tmp_path_factory.mktemp("spend"), "spend_rows", CALLBACKS)) as running:
        yield running


def asked(proxy, provider, name, group, *, stream=False):
    """Return the rows of an agent's session, and what the provider read of it."""
    route = ROUTES[NAMES.index(name)]
    thinking = route.fmt in ("anthropic", "gemini")
    session = agent_session(route.fmt, model=f"{name}-{group}", result_chars=3_200, turns=TURNS, thinking=thinking)
    answer = route.post(proxy, {**session, "stream": stream}, headers={**proxy.headers, "x-litellm-tags": TAG})
    assert answer.status_code == 200, answer.text
    start = f"row {answer.headers['x-litellm-call-id']} "
    proxy.wait_until(lambda: " end\n" in proxy.log().partition(start)[2], "the whole row: a long one is written in parts")
    row = json.loads(proxy.log().split(start, 1)[1].split(" end\n", 1)[0])
    assert row["told"] == row["figures"], "loggers and spend log are told the same"
    assert TAG in row["tags"]
    return row, provider.requests()[-1]


def cost_of(read):
    fresh = read["input_tokens"] - read["cached_tokens"]
    return pytest.approx(fresh * PLAIN + read["cached_tokens"] * CACHED + OUTPUT_TOKENS * OUTPUT)


@over_every_route_in_turn
def test_what_was_saved_is_what_the_whole_request_would_have_cost_more(name, stream, spending, provider):
    provider.reset()
    whole, original = asked(spending, provider, name, "whole", stream=stream)
    assert (whole["savings"], whole["daily_tokens"], whole["daily_dollars"]) == (None, 0, 0)
    provider.reset()
    row, read = asked(spending, provider, name, "compressed", stream=stream)
    saved = row["savings"]
    assert saved["source"] == "ctx_hooks"
    assert saved["tokens_before"] == pytest.approx(original["input_tokens"], rel=MOST_APART)
    assert saved["tokens_after"] == read["input_tokens"]
    assert row["daily_tokens"] == saved["tokens_saved"] == saved["tokens_before"] - saved["tokens_after"] > 0
    assert row["daily_dollars"] == pytest.approx(row["figures"]["dollars_saved"])
    assert row["daily_dollars"] == pytest.approx(whole["spend"] - row["spend"], rel=MOST_APART)
    assert row["tags"] == [*whole["tags"], "ctx_hooks:compressed"]
    assert (row["figures"]["decision"], row["figures"]["beyond_window"]) == ("compressed", False)
    assert row["team"] == "red"
    assert row["daily_spend"] == row["spend"] == cost_of(read), "the team pays what the provider bills"


@over_every_route
def test_of_what_the_prompt_cache_serves_the_dollars_are_right_and_the_tokens_are_fewer(name, spending, provider):
    provider.reset()
    for _ in range(2):
        row, read = asked(spending, provider, name, "compressed")
    assert read["cached_tokens"] > 0
    assert row["daily_dollars"] == pytest.approx(row["figures"]["dollars_saved"], abs=PLAIN)
    assert 0 < row["daily_tokens"] < row["savings"]["tokens_before"] - row["savings"]["tokens_after"]
    assert row["spend"] == cost_of(read)
