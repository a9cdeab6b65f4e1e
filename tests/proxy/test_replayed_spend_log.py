"""`ctx-hooks replay` reads the spend log that a real proxy writes, with LiteLLM's own code for its rows."""

from __future__ import annotations

import json

import pytest
from configurations import GENERAL, deployment, importable
from proxies import Proxy
from routes import MODELS, NAMES, ROUTES

from ctx_hooks.cli import main
from ctx_hooks.testing import FakeProvider, ProviderSettings, agent_session

WHOLE = 10_000_000
"""Longer than any text here; by default LiteLLM stores 2,048 characters of each."""
CALLBACKS = f"""
import json, os
from litellm.integrations.custom_logger import CustomLogger
from litellm.proxy import proxy_server
from litellm.proxy.spend_tracking.spend_tracking_utils import get_logging_payload

class Rows(CustomLogger):
    '''Prints the rows that LiteLLM would write into its database, where there were one.'''

    async def async_log_success_event(self, kwargs, response_obj, start_time, end_time):
        shortens = kwargs["standard_logging_object"]["model_group"] == "shortened"
        os.environ["MAX_STRING_LENGTH_PROMPT_IN_DB"] = "2048" if shortens else "{WHOLE}"
        row = get_logging_payload(kwargs, response_obj, start_time, end_time, proxy_server.llm_router)
        print("row", kwargs["litellm_call_id"], json.dumps(row, default=str), "end", flush=True)

handler = Rows()
"""
PRICES = {"input_cost_per_token": 0.001, "cache_read_input_token_cost": 0.0001, "output_cost_per_token": 0.01}
TURNS = (4, 6, 8)
ANSWERING = tuple(name for name in NAMES if name != "gemini-to-openai")
"""The other LiteLLM logs under another id, and bills nothing."""


@pytest.fixture(scope="module")
def provider():
    with FakeProvider(ProviderSettings(window_tokens=1_000_000)) as running:
        yield running


@pytest.fixture(scope="module")
def proxy(provider, tmp_path_factory):
    models = [deployment(provider.url, name, MODELS.get(name, "openai/served"), **PRICES) for name in ANSWERING]
    config = {
        "model_list": [*models, deployment(provider.url, "shortened", "openai/served", **PRICES)],
        "litellm_settings": {"callbacks": ["logged_rows.handler"]},
        "general_settings": {**GENERAL, "store_prompts_in_spend_logs": True},
    }
    with Proxy(config, importable(tmp_path_factory.mktemp("rows"), "logged_rows", CALLBACKS)) as running:
        yield running


def rows_of(proxy, name, group=None):
    """Return the rows of the requests of a session over a route, each longer than the one before."""
    route = ROUTES[NAMES.index(name)]
    field = {"openai-responses": "input", "gemini": "contents"}.get(route.fmt, "messages")
    session = agent_session(
        route.fmt, model=group or name, turns=max(TURNS), result_chars=2_000, thinking=route.fmt == "anthropic"
    )
    rows = []
    for length in request_lengths(session[field]):
        answer = route.post(proxy, {**session, field: session[field][:length]})
        assert answer.status_code == 200, answer.text
        start = f"row {answer.headers['x-litellm-call-id']} "
        proxy.wait_for_log(start)
        rows.append(proxy.log().split(start, 1)[1].split(" end\n", 1)[0])
    return rows


def request_lengths(items):
    """Return some lengths at which a client has sent a request: at its end, and before an answer."""
    answers = [i for i, item in enumerate(items) if i and is_answer(item) and not is_answer(items[i - 1])]
    return [answers[n] for n in TURNS[:-1]] + [len(items)]


def is_answer(item):
    return item.get("role") in ("assistant", "model") or item.get("type") in ("function_call", "reasoning")


def replayed(rows, folder, capsys):
    (folder / "log.jsonl").write_text("\n".join(rows))
    assert main(["replay", str(folder / "log.jsonl"), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("name", ANSWERING)
def test_tokens_cache_and_dollars_are_those_of_the_proxy(name, proxy, provider, tmp_path, capsys):
    """Where nothing is compacted, the prefixes that sessions share are what the provider's cache has served."""
    provider.reset()
    rows = rows_of(proxy, name)
    read = provider.requests()
    found = replayed(rows, tmp_path, capsys)
    total = found["total"]
    assert found["kinds"] == {"LiteLLM spend log": 1}
    assert total["without"] == total["policies"]["balanced"]
    assert total["without"]["requests"] == len(TURNS)
    assert total["without"]["input_tokens"] == sum(r["input_tokens"] for r in read)
    assert total["without"]["cached_tokens"] == pytest.approx(sum(r["cached_tokens"] for r in read), rel=0.05)
    assert total["recorded"]["dollars"] == pytest.approx(sum(json.loads(row)["spend"] for row in rows))
    assert total["without"]["dollars"] == pytest.approx(total["recorded"]["dollars"], rel=0.05)


def test_texts_that_litellm_has_shortened_are_not_replayed(proxy, tmp_path, capsys):
    found = replayed(rows_of(proxy, "chat", "shortened"), tmp_path, capsys)
    assert found["sessions"] == []
    assert found["without_text"]["shortened"]["requests"] == len(TURNS)
