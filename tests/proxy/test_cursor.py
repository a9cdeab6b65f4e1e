"""What Cursor's route sends to the provider; tests/proxy/test_main_job.py shows that it is fitted and retried."""

import json
from dataclasses import replace

import pytest
from configurations import deployment
from routes import CHAT, CURSOR


def groups(url):
    yield deployment(url, "cursor-chat", "openai/served")
    for mode in ("enforce", "off"):
        policy = {"mode": mode, "retrieval": True}
        yield deployment(url, f"cursor-{mode}", "openai/served", max_input_tokens=4_000, ctx_hooks=policy)


@pytest.mark.parametrize(("mode", "stream"), [("enforce", False), ("enforce", True), ("off", False)])
def test_provider_gets_nothing_of_the_plugin(mode, stream, proxy, provider):
    """LiteLLM sends its own metadata there; the answer is read as chat, so no hidden tool can be offered."""
    metadata = {"ctx_hooks": {"language": "zh"}, "purpose": "a test"}
    CURSOR.ask(proxy, group=f"cursor-{mode}", stream=stream, metadata=metadata, store=False)
    sent = provider.requests()[0]["payload"]
    assert sent["metadata"]["purpose"] == "a test"
    assert mode == "off" or "ctx_hooks" not in json.dumps(sent["metadata"])
    assert "ctx_retrieve" not in json.dumps(sent["tools"])


def test_chat_form_of_route_is_rescued(proxy, provider):
    answer = replace(CHAT, path=CURSOR.path).ask(proxy, group="cursor-chat")
    assert answer.status_code == 200, answer.text
    assert [(r["format"], r["status"]) for r in provider.requests()] == [("openai-chat", 400), ("openai-chat", 200)]
