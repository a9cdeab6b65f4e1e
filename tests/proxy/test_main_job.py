"""An overflowing request is answered by the same model, on every route, and the client notices nothing."""

import asyncio
import http.client
import json
import re
from dataclasses import replace

import httpx
import pytest
from configurations import WINDOW, deployment
from routes import CHAT, CURSOR, MESSAGES, NAMES, RESPONSES, ROUTES, SIZE
from strategies import FIELDS, spoken

from ctx_hooks.testing import agent_session, violations

ALL = {**dict(zip(NAMES, ROUTES, strict=True)), "cursor": CURSOR, "cursor-chat": replace(CURSOR, fmt="openai-chat")}
in_turn = pytest.mark.parametrize(("route", "stream"), [(r, n % 2 == 1) for n, r in enumerate(ROUTES)], ids=NAMES)
TIMES = {f"x-litellm-{name}" for name in ("call-id", "response-cost", "response-duration-ms", "overhead-duration-ms")}
VARYING = TIMES | {"date", "llm_provider-date", "content-length"}


def groups(url):
    yield deployment(url, CURSOR.fitted, "openai/served", max_input_tokens=WINDOW)
    for mode in ("whole", "streamed"):
        yield from (deployment(url, f"{name}-{mode}", "openai/served") for name in ("cursor", "cursor-chat"))
    for mode in ("enforce", "off"):
        yield deployment(url, f"cursor-{mode}", "openai/served", ctx_hooks={"mode": mode, "retrieval": True})


def told(answer):
    """Return what the response headers say was decided, of how many attempts, by which policy."""
    decision, attempts, policy = (answer.headers[f"x-ctx-hooks-{name}"] for name in ("decision", "attempts", "policy"))
    before, after = map(int, re.findall(r"(?:before|after)=(\d+)", answer.headers["x-ctx-hooks"]))
    assert answer.headers["x-ctx-hooks"].startswith(f"{decision}; before={before}; after={after}")
    assert before > after
    return decision, attempts, policy


def seen_by_client(answer):
    """Return each model that an answer names, and the headers without the plugin's own, times and sums without values."""
    headers = {name: value for name, value in answer.headers.items() if not name.startswith("x-ctx-hooks")}
    named = re.findall(r'"(?:model|modelVersion)": ?"([^"]*)"', answer.text)
    return [*dict.fromkeys(named)], headers | dict.fromkeys(VARYING & headers.keys())


@pytest.mark.parametrize(("route", "stream"), [(r, n % 2 == 0) for n, r in enumerate(ALL.values())], ids=ALL)
def test_request_known_as_too_long_is_fitted(route, stream, proxy, provider):
    answer = route.ask(proxy, group=route.fitted, stream=stream)
    assert answer.status_code == 200, answer.text
    (only,) = provider.requests()
    assert only["status"] == 200
    assert violations(only["format"], only["payload"]) == []
    assert answer.headers["x-litellm-attempted-fallbacks"] == "0"
    assert told(answer) == ("compressed", "1", "defaults")


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("name", ALL)
def test_same_model_answers_refused_request_compressed(name, stream, proxy, provider):
    """Each case has a group of its own: a deployment overflows only once, then its limit is known."""
    route, group = ALL[name], f"{name}-{'streamed' if stream else 'whole'}"
    answer = route.ask(proxy, group=group, stream=stream)
    assert answer.status_code == 200, answer.text
    refused, accepted = provider.requests()
    assert (refused["status"], accepted["status"]) == (400, 200)
    assert refused["model"] == accepted["model"]
    assert answer.headers["x-litellm-attempted-fallbacks"] == "0"
    assert told(answer) == ("retried", "2", "defaults")
    assert violations(accepted["format"], accepted["payload"]) == []
    assert "Answer" in answer.text
    sent = json.dumps(accepted["payload"])
    assert "Now summarise what you found." in sent
    assert "You are a careful reviewer." in sent
    assert "ctx_hooks_retry" not in sent
    provider.reset()
    next_answer = route.ask(proxy, group=group, stream=stream, seed=1)
    assert next_answer.status_code == 200
    assert [r["status"] for r in provider.requests()] == [200], "the limit is known now"
    assert seen_by_client(answer) == seen_by_client(next_answer)


@in_turn
def test_hopeless_request_ends_in_one_readable_error(route, stream, proxy, provider):
    answer = route.ask(proxy, group=route.hopeless, stream=stream)
    assert answer.status_code == 400
    message = answer.json()["error"]["message"]
    assert "60" in message or "prompt is too long" in message
    assert "new conversation" in message
    assert "Traceback" not in answer.text
    assert 2 <= len(provider.requests()) <= 4, "at most three retries"
    sizes = [r["input_tokens"] for r in provider.requests()]
    assert sizes == sorted(sizes, reverse=True)
    if route.path != MESSAGES.path:  # LiteLLM makes the headers of its errors itself, and asks no hook for any
        assert told(answer) == ("failed", str(len(sizes)), "defaults")


def test_error_keeps_the_words_that_clients_know(proxy):
    chat = CHAT.ask(proxy, group="hopeless").json()["error"]
    assert chat["code"] == "context_length_exceeded"
    assert chat["message"].startswith("This model's maximum context length is 60 tokens.")
    messages = MESSAGES.ask(proxy, group="hopeless-claude").json()
    assert (messages["type"], messages["error"]["message"][:20]) == ("error", "prompt is too long: ")


@in_turn
@pytest.mark.parametrize(("group", "models"), [("hopeless", ["tiny"]), ("cornered", ["tiny", "large"])])
def test_request_that_cannot_shrink_is_not_retried(route, stream, group, models, proxy, provider):
    """The newest message is all of it."""
    items = {FIELDS[route.fmt]: [spoken(route.fmt, "user", "Why is the sky blue? " * 200)], "stream": stream}
    limit = {"generationConfig": {"maxOutputTokens": 50}} if route.fmt == "gemini" else {"max_tokens": 50}
    answer = route.post(proxy, {"model": route.hopeless if group == "hopeless" else group, **limit, **items})
    assert [r["model"] for r in provider.requests()] == models
    assert answer.status_code == (400 if group == "hopeless" else 200), answer.text
    assert group == "cornered" or "60" in answer.json()["error"]["message"], "the provider's own figures are told"


@pytest.mark.parametrize(("route", "stream"), [(CHAT, False), (MESSAGES, True), (RESPONSES, False), (CHAT, True)])
def test_leaving_client_ends_retries(route, stream, proxy, provider):
    """The provider sees the call end with the client, and no other attempt comes before what the proxy is asked next."""
    provider.configure(held_models=["tiny"])
    talk = [{"role": ("user", "assistant")[n % 2], "content": f"{n} " + "word " * 100} for n in range(21)]
    payload = {"model": route.hopeless, "max_tokens": 100, "stream": stream, FIELDS[route.fmt]: talk}
    address = httpx.URL(proxy.url)
    client = http.client.HTTPConnection(address.host, address.port)
    try:
        client.request("POST", route.path, json.dumps(payload), {**proxy.headers, "Content-Type": "application/json"})
        provider.wait_until(lambda records: len(records) == 1)
        client.close()
        provider.wait_until(lambda records: records[0]["left"])
    finally:
        provider.configure(held_models=["hangs"])
    assert CHAT.post(proxy, {"model": "large", "messages": [{"role": "user", "content": "hi"}]}).status_code == 200
    assert [r["model"] for r in provider.requests()] == ["tiny", "large"]


@pytest.mark.parametrize(("mode", "stream"), [("enforce", False), ("enforce", True), ("off", False)])
def test_cursors_provider_gets_nothing_of_the_plugin(mode, stream, proxy, provider):
    """LiteLLM sends its own metadata there; the answer is read as chat, so no hidden tool can be offered."""
    metadata = {"ctx_hooks": {"language": "zh"}, "purpose": "a test"}
    CURSOR.ask(proxy, group=f"cursor-{mode}", stream=stream, metadata=metadata, store=False)
    sent = provider.requests()[-1]["payload"]
    assert sent["metadata"]["purpose"] == "a test"
    assert mode == "off" or "ctx_hooks" not in json.dumps(sent["metadata"])
    assert "ctx_retrieve" not in json.dumps(sent["tools"])


async def test_ten_overflows_at_once_are_all_answered(proxy, provider):
    async with httpx.AsyncClient(timeout=300) as client:

        async def ask(seed: int) -> int:
            payload = agent_session("openai-chat", model="chat", seed=seed, **SIZE)
            return (await client.post(proxy.url + CHAT.path, json=payload, headers=proxy.headers)).status_code

        assert await asyncio.gather(*(ask(seed) for seed in range(1, 11))) == [200] * 10
    accepted = [r for r in provider.requests() if r["status"] == 200]
    assert len(accepted) == 10
    for record in accepted:
        sent = json.dumps(record["payload"])
        seeds = {seed for seed in range(1, 11) if f"call_{seed}_" in sent or f"project {seed} " in sent}
        assert len(seeds) == 1
