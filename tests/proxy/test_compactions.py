"""Beside LiteLLM's own compaction, guardrails that shorten, and compaction by providers: who acts first, what is left."""

import json

import litellm_versions
import pytest
from configurations import WINDOW, deployment
from fastapi.responses import JSONResponse
from routes import CHAT, MESSAGES, NAMES, RESPONSES, SIZE

from ctx_hooks.testing import agent_session

COMPACTOR = "claude-opus-4-8"
CLEARED = {"edits": [{"type": "clear_tool_uses_20250919", "trigger": {"type": "input_tokens", "value": 2_000}}]}
THRESHOLD = [{"type": "compaction", "compact_threshold": 2_000}]
compacts = pytest.mark.skipif(litellm_versions.LITELLM < (1, 106), reason="LiteLLM knows none before")
in_three_formats = pytest.mark.parametrize("route", [CHAT, MESSAGES, RESPONSES], ids=[NAMES[0], NAMES[1], NAMES[3]])


def groups(url):
    yield deployment(url, "tier", "openai/tier", max_input_tokens=WINDOW, max_output_tokens=500)
    yield deployment(url, "compactor", f"anthropic/{COMPACTOR}", max_input_tokens=1_000_000, max_output_tokens=4_096)
    tiers = dict.fromkeys(("SIMPLE", "MEDIUM", "COMPLEX"), "tier") | {"REASONING": "compactor"}
    auto = {"model": "auto_router/complexity_router", "complexity_router_default_model": "tier"}
    yield {"model_name": "auto", "litellm_params": {**auto, "complexity_router_config": {"tiers": tiers}}}


@pytest.fixture(autouse=True)
def _large_compactor(provider):
    provider.configure(windows={COMPACTOR: 1_000_000})


def asked(route, **fields):
    """Return a question behind a talk that the window does not hold."""
    said = [{"role": ("user", "assistant")[n % 2], "content": f"Remark {n} on MAPLE-{n}. " * 80 + "."} for n in range(6)]
    field = "input" if route is RESPONSES else "messages"
    return {"model": "auto", field: [*said, {"role": "user", "content": "Which was it?"}], "max_tokens": 100, **fields}


@compacts
@in_three_formats
def test_a_talk_that_litellms_complexity_router_has_compacted_is_sent_as_it_is(route, proxy, provider):
    answer = route.post(proxy, asked(route))
    assert answer.status_code == 200, answer.text
    summed, sent = provider.requests()
    assert (summed["model"], sent["model"]) == (COMPACTOR, "tier")
    assert "Answer to what was asked." in json.dumps(sent["payload"])
    assert answer.headers["x-ctx-hooks-decision"] == "fits"


@in_three_formats
def test_an_agents_loop_that_the_complexity_router_refuses_is_fitted_on_the_way_back(route, proxy, provider):
    """ "No closed older conversation is available": LiteLLM refuses it before any deployment hook."""
    session = agent_session(route.fmt, model="auto", **SIZE)
    field = "input" if route is RESPONSES else "messages"
    answer = route.post(proxy, {**session, field: session[field][:-1], "max_tokens": 100})
    assert answer.status_code == 200, answer.text[:500]
    (only,) = provider.requests()
    assert (only["model"], only["status"], answer.headers["x-ctx-hooks-decision"]) == ("tier", 200, "compressed")


@pytest.mark.parametrize("route", [CHAT, MESSAGES, pytest.param(RESPONSES, marks=compacts)], ids=lambda route: route.fmt)
def test_what_a_guardrail_has_left_too_long_is_fitted(route, proxy, provider, elsewhere):
    async def halved(request):
        body = await request.json()
        return JSONResponse(
            {"messages": [{**m, "content": m["content"][: len(m["content"]) // 2]} for m in body["messages"]]}
        )

    elsewhere.answer = halved
    answer = route.ask(proxy, group=route.fitted, guardrails=["headroom"])
    assert answer.status_code == 200, answer.text
    (only,) = provider.requests()
    assert only["status"] == 200
    assert answer.headers["x-ctx-hooks-decision"] == "compressed"
    assert 4_000 < int(answer.headers["x-ctx-hooks-tokens-before"]) < 7_000, "of about 8,000 that the client sent"


@pytest.mark.parametrize(
    ("route", "asked_for"), [(MESSAGES, CLEARED), (RESPONSES, THRESHOLD)], ids=["messages", "responses"]
)
@pytest.mark.parametrize("turns", [2, 10], ids=["fits", "is too long"])
def test_compaction_that_the_request_asks_of_its_provider_is_asked_of_it(route, asked_for, turns, proxy, provider):
    size = {"turns": turns, "result_chars": 2_500}
    answer = route.ask(proxy, group=route.fitted, size=size, context_management=asked_for)
    assert answer.headers["x-ctx-hooks-decision"] == ("fits" if turns == 2 else "compressed")
    (only,) = provider.requests()
    assert (only["status"], only["payload"]["context_management"]) == (200, asked_for)


@compacts
def test_a_summary_that_a_client_asks_its_provider_for_is_made_of_what_the_window_holds(proxy, provider):
    answer = MESSAGES.ask(proxy, group=MESSAGES.fitted, compaction={"type": "summarize"}, max_tokens=500)
    assert answer.status_code == 200, answer.text
    assert (answer.json()["stop_reason"], answer.json()["content"][0]["type"]) == ("compaction", "compaction")
    (only,) = provider.requests()
    assert only["payload"]["compaction"] == {"type": "summarize"}
