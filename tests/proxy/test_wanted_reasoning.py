"""A model that wants its reasoning back gets it from a compacted request; a server that says so is believed."""

import pytest
from configurations import deployment
from routes import CHAT, MESSAGES, MESSAGES_TO_OPENAI, RESPONSES
from strategies import items_of

from ctx_hooks.testing import agent_session

KNOWN = (
    "openai/kimi-k2.6",
    "deepseek/deepseek-v4-pro",
    "moonshot/kimi-k2.5",
    "hosted_vllm/deepseek-v4-flash",
)
SERVERS = {
    "chat": (CHAT, "openai/thinker"),
    "messages": (MESSAGES, "anthropic/thinker"),
    "messages-to-chat": (MESSAGES_TO_OPENAI, "hosted_vllm/thinker"),
}
STATED, WINDOW = 8_000, 16_000
"""What the proxy and the provider take for the window: the only refusals here are about reasoning."""
CASES = [("chat", False), ("chat", True), ("messages", False), ("messages-to-chat", True)]


def group_of(name, *, streamed):
    return f"wanting-{name}-{'streamed' if streamed else 'whole'}"


def groups(url):
    for name, streamed in CASES:
        made = deployment(url, group_of(name, streamed=streamed), SERVERS[name][1], max_input_tokens=STATED)
        made["litellm_params"].update({"api_base": f"{url}/v1"} if name.endswith("-to-chat") else {})
        yield made
    for model in KNOWN:
        made = deployment(url, f"wanting-{model}", model, max_input_tokens=STATED)
        made["litellm_params"].update(api_base=f"{url}/v1", use_chat_completions_api=True)
        yield made


def session(route, group, seed=0, turns=14):
    """Return two tasks whose answers carry reasoning, unsigned, as a chat server's becomes through LiteLLM."""
    fields = {"model": group, "turns": turns, "result_chars": 1_500, "thinking": True}
    payload, task = (agent_session(route.fmt, seed=2 * seed + n, **fields) for n in (0, 1))
    items_of(payload).extend(item for item in items_of(task) if item.get("role") != "system")
    for message in payload.get("messages", ()):
        for block in message["content"] if isinstance(message["content"], list) else ():
            block.pop("signature", None)
    return payload


@pytest.fixture(autouse=True)
def _room(_fresh_provider, provider):
    provider.reset(window_tokens=WINDOW)


def statuses(provider):
    return [(record["status"], record["error"]) for record in provider.requests()]


ROUTES = {"chat": CHAT, "messages": MESSAGES_TO_OPENAI, "responses": RESPONSES}
ASKED = [(name, model) for model in KNOWN for name in ROUTES if name == "chat" or not model.startswith("deepseek/")]
"""LiteLLM sends the other two routes to paths of DeepSeek's that the simulated provider has not."""


@pytest.mark.parametrize(("name", "model"), ASKED)
def test_known_model_is_asked_once(name, model, proxy, provider):
    route = ROUTES[name]
    answer = route.post(proxy, session(route, f"wanting-{model}"))
    assert answer.status_code == 200, answer.text
    assert answer.headers["x-ctx-hooks"].startswith("compressed")
    assert statuses(provider) == [(200, None)]


@pytest.mark.parametrize(("name", "streamed"), CASES, ids=[group_of(name, streamed=s) for name, s in CASES])
def test_refusal_is_believed_and_remembered(name, streamed, proxy, provider):
    route, _ = SERVERS[name]
    group = group_of(name, streamed=streamed)
    answer = route.post(proxy, {**session(route, group), "stream": streamed})
    assert answer.status_code == 200, answer.text
    assert "Answer" in answer.text
    assert answer.headers["x-ctx-hooks"].startswith("compressed"), "it is no retry of a smaller request"
    assert [status for status, _ in statuses(provider)] == [400, 200], statuses(provider)
    provider.reset()
    assert route.post(proxy, {**session(route, group, seed=1), "stream": streamed}).status_code == 200
    assert statuses(provider) == [(200, None)]


@pytest.mark.parametrize("name", ["chat", "messages"])
def test_clients_own_omission_is_refused_once(name, proxy, provider):
    route, _ = SERVERS[name]
    payload = session(route, group_of(name, streamed=False), turns=3)
    for message in payload["messages"]:
        message.pop("reasoning_content", None)
        if isinstance(message["content"], list):
            message["content"] = [block for block in message["content"] if block["type"] != "thinking"]
    answer = route.post(proxy, payload)
    assert answer.status_code == 400
    assert "reasoning_content is missing" in answer.text
    assert [status for status, _ in statuses(provider)] == [400]
