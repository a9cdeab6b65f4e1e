"""A LiteLLM that a recipe has installed, and what it answers."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from ctx_hooks.testing import LOOPBACK, MASTER_KEY, FakeProvider, ProxyProcess, agent_session

KEYS = {
    **dict.fromkeys(("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "LOCAL_API_KEY"), "not-a-key"),
    "LOCAL_API_BASE": "http://127.0.0.1:9",  # of a model group that is not asked
    "PROXY_MASTER_KEY": MASTER_KEY,
    "PYTHONDONTWRITEBYTECODE": "",  # LiteLLM is compiled at the first start of an environment alone
}
OVERFLOWING = agent_session("openai-chat", turns=20, result_chars=2_000, model="gpt")
SMALL = {"model": "gpt", "messages": [{"role": "user", "content": "Hello."}]}


@contextmanager
def started(program: Path, config: dict[str, Any], provider: FakeProvider, **variables: str) -> Iterator[ProxyProcess]:
    """Start a `litellm` without this tree on its path, and with the deployments of a configuration at the provider."""
    for model in config["model_list"]:
        model["litellm_params"]["api_base"] = f"{provider.url}/v1"
    with ProxyProcess(config, {**KEYS, "PYTHONPATH": "", **variables}, program=program) as proxy:
        yield proxy


def asked(proxy: ProxyProcess, provider: FakeProvider, payload: dict[str, Any]) -> tuple[httpx.Response, list[int]]:
    """Return the answer of the chat route, and the status of each attempt that the provider saw."""
    provider.reset()
    answer = LOOPBACK.post(f"{proxy.url}/v1/chat/completions", json=payload, headers=proxy.headers, timeout=300)
    return answer, [attempt["status"] for attempt in provider.requests()]


def assert_rescued(proxy: ProxyProcess, provider: FakeProvider) -> None:
    """The provider refuses what was sent, which is more than its window, and the client gets an answer all the same."""
    answer, attempts = asked(proxy, provider, OVERFLOWING)
    assert (answer.status_code, attempts) == (200, [400, 200]), (answer.text, proxy.log())
    assert answer.headers["x-ctx-hooks-decision"] == "retried"


def without_the_callback(config: dict[str, Any]) -> dict[str, Any]:
    """Remove the one line that docs/install.md names; what else concerns the plugin stays."""
    config["litellm_settings"]["callbacks"].remove("ctx_hooks.proxy_handler_instance")
    return config
