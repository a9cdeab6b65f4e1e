"""Beside LiteLLM's own compaction, guardrails that shorten, and compaction by providers: who acts first, what is left."""

import json

import pytest
from configurations import LITELLM, PLUGIN, WINDOW, deployment
from fastapi.responses import JSONResponse
from routes import CHAT, MESSAGES, NAMES, RESPONSES, SIZE, size_before
from strategies import FIELDS

from ctx_hooks.testing import agent_session, sign

COMPACTOR = "claude-opus-4-8"
SUMMARY = {"type": "compaction", "content": "They build a recipe app.", "signature": sign("They build a recipe app.")}
OPAQUE = {"type": "compaction", "encrypted_content": "gAAAA" * 100}
ON_MESSAGES = {"role": "assistant", "content": [SUMMARY]}
ON_CHAT = {"role": "assistant", "content": "", "provider_specific_fields": {"compaction_blocks": [SUMMARY]}}
CLEARED = {"edits": [{"type": "clear_tool_uses_20250919", "trigger": {"type": "input_tokens", "value": 2_000}}]}
THRESHOLD = [{"type": "compaction", "compact_threshold": 2_000}]
compacts = pytest.mark.skipif(LITELLM < (1, 106), reason="LiteLLM knows none before")
in_three_formats = pytest.mark.parametrize("route", [CHAT, MESSAGES, RESPONSES], ids=[NAMES[0], NAMES[1], NAMES[3]])


def groups(url):
    yield deployment(url, "tier", "openai/tier", max_input_tokens=WINDOW, max_output_tokens=500)
    yield deployment(url, "compactor", f"anthropic/{COMPACTOR}", max_input_tokens=1_000_000, max_output_tokens=4_096)
    yield deployment(url, "guarded", "openai/guarded")
    yield deployment(f"{url}/v1", "edited", "hosted_vllm/edited", max_input_tokens=WINDOW)
    tiers = dict.fromkeys(("SIMPLE", "MEDIUM", "COMPLEX"), "tier") | {"REASONING": "compactor"}
    auto = {"model": "auto_router/complexity_router", "complexity_router_default_model": "tier"}
    yield {"model_name": "auto", "litellm_params": {**auto, "complexity_router_config": {"tiers": tiers}}}


@pytest.fixture(autouse=True)
def _large_compactor(provider):
    provider.configure(windows={COMPACTOR: 1_000_000})


def asked(route, **fields):
    """Return a question behind a talk that the window does not hold."""
    said = [{"role": ("user", "assistant")[n % 2], "content": f"Remark {n} on MAPLE-{n}. " * 80 + "."} for n in range(6)]
    field = FIELDS[route.fmt]
    return {"model": "auto", field: [*said, {"role": "user", "content": "Which was it?"}], "max_tokens": 100, **fields}


@compacts
@in_three_formats
def test_talk_compacted_by_complexity_router_stays(route, proxy, provider):
    answer = route.post(proxy, asked(route))
    assert answer.status_code == 200, answer.text
    summed, sent = provider.requests()
    assert (summed["model"], sent["model"]) == (COMPACTOR, "tier")
    assert "Answer to what was asked." in json.dumps(sent["payload"])
    assert answer.headers["x-ctx-hooks-decision"] == "fits"


@pytest.mark.skipif(LITELLM == (1, 103), reason="its complexity router takes the loop for reasoning")
@in_three_formats
def test_loop_refused_by_complexity_router_is_fitted(route, proxy, provider):
    """ "No closed older conversation is available": LiteLLM refuses it before any deployment hook."""
    session = agent_session(route.fmt, model="auto", **SIZE)
    field = FIELDS[route.fmt]
    answer = route.post(proxy, {**session, field: session[field][:-1], "max_tokens": 100})
    assert answer.status_code == 200, answer.text[:500]
    (only,) = provider.requests()
    assert (only["model"], only["status"], answer.headers["x-ctx-hooks-decision"]) == ("tier", 200, "compressed")


@pytest.mark.parametrize("route", [CHAT, MESSAGES, pytest.param(RESPONSES, marks=compacts)], ids=lambda route: route.fmt)
def test_request_shortened_by_guardrail_is_fitted(route, proxy, provider, elsewhere):
    async def halved(request):
        body = await request.json()
        cut = [{**m, "content": m["content"][: len(m["content"]) // 2]} for m in body["messages"]]
        return JSONResponse({"messages": cut})

    elsewhere.answer = halved
    answer = route.ask(proxy, group=route.fitted, guardrails=["headroom"])
    assert answer.status_code == 200, answer.text
    (only,) = provider.requests()
    assert only["status"] == 200
    assert answer.headers["x-ctx-hooks-decision"] == "compressed"
    assert 4_000 < size_before(answer) < 7_000, "of about 8,000 that the client sent"


@pytest.mark.parametrize(("route", "asked_for"), [(MESSAGES, CLEARED), (RESPONSES, THRESHOLD)])
def test_provider_is_asked_for_its_own_compaction(route, asked_for, proxy, provider):
    answer = route.ask(proxy, group=route.fitted, context_management=asked_for)
    assert answer.headers["x-ctx-hooks-decision"] == "compressed"
    (only,) = provider.requests()
    assert (only["status"], only["payload"]["context_management"]) == (200, asked_for)


@compacts
@pytest.mark.parametrize(
    ("route", "own", "kept"),
    [(MESSAGES, ON_MESSAGES, SUMMARY), (CHAT, ON_CHAT, SUMMARY), (RESPONSES, OPAQUE, OPAQUE)],
    ids=["messages", "chat", "responses"],
)
def test_providers_own_compaction_stays_first_and_unchanged(route, own, kept, proxy, provider):
    group = route.fitted if route is RESPONSES else MESSAGES.fitted
    session = agent_session(route.fmt, model=group, turns=10, result_chars=2_500)
    field = FIELDS[route.fmt]
    answer = route.post(proxy, {**session, field: [own, *session[field]], "max_tokens": 100})
    assert answer.headers["x-ctx-hooks-decision"] == "compressed"
    (only,) = provider.requests()
    assert only["status"] == 200, only["error"]
    first = only["payload"][field][0]
    assert kept in (first, *first.get("content", ()))


@compacts
def test_request_for_providers_summary_is_fitted(proxy, provider):
    answer = MESSAGES.ask(proxy, group=MESSAGES.fitted, compaction={"type": "summarize"}, max_tokens=500)
    assert answer.status_code == 200, answer.text
    assert (answer.json()["stop_reason"], answer.json()["content"][0]["type"]) == ("compaction", "compaction")
    (only,) = provider.requests()
    assert only["payload"]["compaction"] == {"type": "summarize"}


@pytest.fixture(scope="module")
def intercepting(started):
    """A proxy whose compression_interception stands before the plugin, and would take more than half of a session out."""
    with started(callbacks=("compression_interception", PLUGIN)) as running:
        yield running


def test_plugin_leaves_nothing_to_compression_interception(intercepting, provider):
    answer = MESSAGES.ask(intercepting, group=MESSAGES.fitted)
    assert answer.status_code == 200, answer.text
    assert answer.headers["x-ctx-hooks-decision"] == "compressed"
    assert size_before(answer) > 7_000, "all that the client sent"
    (only,) = provider.requests()
    assert only["status"] == 200
    assert "litellm_content_retrieve" not in json.dumps(only["payload"])


@pytest.mark.parametrize("turns", [2, 10], ids=["fits", "is too long"])
def test_litellms_own_edits_follow_the_plugin(turns, proxy, provider):
    limits = {"trigger": {"type": "input_tokens", "value": 500}, "keep": {"type": "tool_uses", "value": 1}}
    edits = {"edits": [CLEARED["edits"][0] | limits]}
    size = {"turns": turns, "result_chars": 2_500}
    answer = MESSAGES.ask(proxy, group="edited", size=size, context_management=edits)
    assert answer.headers["x-ctx-hooks-decision"] == ("fits" if turns == 2 else "compressed")
    (only,) = provider.requests()
    assert (only["status"], "context_management" in only["payload"]) == (200, False)
    *older, newest = (m["content"] for m in only["payload"]["messages"] if m["role"] == "tool")
    assert set(older) == {"[Cleared by context management]"}
    assert newest not in older
