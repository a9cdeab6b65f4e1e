"""A model that wants its reasoning back gets it from a compacted request; a server that says so is believed."""

import pytest
from configurations import deployment
from routes import CHAT, MESSAGES, MESSAGES_TO_OPENAI, RESPONSES
from strategies import items_of

from ctx_hooks.testing import agent_session

ROUTES = {"chat": CHAT, "messages": MESSAGES, "messages-to-chat": MESSAGES_TO_OPENAI, "responses": RESPONSES}
MODELS = {"chat": "openai/thinker", "messages": "anthropic/thinker", "messages-to-chat": "hosted_vllm/thinker"}
TOLD = [("chat", False), ("chat", True), ("messages", False), ("messages-to-chat", True)]
KNOWN = ("openai/kimi-k2.6", "deepseek/deepseek-v4-pro", "moonshot/kimi-k2.5", "hosted_vllm/deepseek-v4-flash")
ASKED = [(name, model) for model in KNOWN for name in ("chat", "messages-to-chat", "responses")
         if name == "chat" or not model.startswith("deepseek/")]  # fmt: skip
"""LiteLLM sends the other two routes to paths of DeepSeek's that the simulated provider has not."""
STATED, WINDOW = 8_000, 16_000
"""What the proxy and the provider take for the window: the only refusals here are about reasoning."""


def group_of(case):
    return f"wanting-{case[0]}-{'streamed' if case[1] else 'whole'}"


def groups(url):
    for case in TOLD:
        made = deployment(url, group_of(case), MODELS[case[0]], max_input_tokens=STATED)
        made["litellm_params"] |= {"api_base": f"{url}/v1"} if case[0] == "messages-to-chat" else {}
        yield made
    for model in KNOWN:
        made = deployment(url, f"wanting-{model}", model, max_input_tokens=STATED)
        made["litellm_params"] |= {"api_base": f"{url}/v1", "use_chat_completions_api": True}
        yield made


@pytest.fixture(autouse=True)
def _room(_fresh_provider, provider):
    provider.reset(window_tokens=WINDOW)


def statuses_of(proxy, provider, route, payload):
    """Return the statuses of the attempts at a request, which is answered, and what the header says."""
    provider.reset()
    answer = route.post(proxy, payload)
    assert answer.status_code == 200, answer.text
    is_lost = route is MESSAGES_TO_OPENAI and not payload.get("stream")  # LiteLLM loses the text of its whole answers
    assert is_lost or "Answer" in answer.text
    return [record["status"] for record in provider.requests()], answer.headers["x-ctx-hooks"].split(";")[0]


def session(route, group, seed=0, turns=14, **fields):
    """Return two tasks whose answers carry reasoning, unsigned, as a chat server's becomes through LiteLLM."""
    told = {"model": group, "turns": turns, "result_chars": 1_500, "thinking": True}
    payload, task = (agent_session(route.fmt, seed=2 * seed + n, **told) for n in (0, 1))
    items_of(payload).extend(item for item in items_of(task) if item.get("role") != "system")
    for message in payload.get("messages", ()):
        for block in message["content"] if isinstance(message["content"], list) else ():
            block.pop("signature", None)
    return payload | fields


@pytest.mark.parametrize(("name", "model"), ASKED)
def test_known_model_is_asked_once(name, model, proxy, provider):
    route = ROUTES[name]
    assert statuses_of(proxy, provider, route, session(route, f"wanting-{model}")) == ([200], "compressed")


@pytest.mark.parametrize("case", TOLD, ids=group_of)
def test_refusal_is_believed_and_remembered(case, proxy, provider):
    """What follows is no retry of a smaller request."""
    route = ROUTES[case[0]]
    for seed, expected in enumerate(([400, 200], [200])):
        payload = session(route, group_of(case), seed, stream=case[1])
        assert statuses_of(proxy, provider, route, payload) == (expected, "compressed")


@pytest.mark.parametrize("case", TOLD[::2], ids=group_of)
def test_clients_own_omission_is_refused_once(case, proxy, provider):
    payload = session(ROUTES[case[0]], group_of(case), turns=3)
    for message in payload["messages"]:
        message.pop("reasoning_content", None)
        if isinstance(message["content"], list):
            message["content"] = [block for block in message["content"] if block["type"] != "thinking"]
    answer = ROUTES[case[0]].post(proxy, payload)
    assert (answer.status_code, "reasoning_content is missing" in answer.text) == (400, True)
    assert len(provider.requests()) == 1
