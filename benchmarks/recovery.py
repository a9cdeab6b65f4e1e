"""Whether a request that is larger than the window is answered, for what runs inside a LiteLLM proxy.

A real proxy for each, before the strict fake provider. Each is told the window in its own setting, once the provider's and
once a far larger one, as where nobody knows the window. Every route is asked once whole and once streamed.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx

from ctx_hooks.testing import LOOPBACK, FakeProvider, ProviderSettings, ProxyProcess, agent_session
from ctx_hooks.testing.conversations import TOOL, source_text
from ctx_hooks.testing.rules import Format

WINDOW_TOKENS = 20_000
"""The conversations have some 25,000: a session that grows exceeds its window by little at first."""
BELIEVED_TOKENS = 200_000
ROUTES = {
    "`/v1/chat/completions`": ("/v1/chat/completions", "openai-chat", "openai"),
    "`/v1/messages`": ("/v1/messages", "anthropic", "anthropic"),
    "`/v1/messages` to OpenAI": ("/v1/messages", "anthropic", "openai"),
    "`/v1/responses`": ("/v1/responses", "openai-responses", "openai"),
}
HEADROOM = (
    "from headroom.integrations.litellm_callback import HeadroomCallback\nhandler = HeadroomCallback(model_limit={})\n"
)
CELLS = {(True, True): "yes", (True, False): "not streamed", (False, True): "streamed alone", (False, False): "no"}
"""By whether the whole and the streamed request are answered."""
FILE_CHARS = 4_000
RECORDS = 45


def callbacks(window_tokens: int) -> dict[str, dict[str, Any]]:
    """Return the `litellm_settings` of each contestant that is told the window; the others read it from `model_info`."""
    found: dict[str, dict[str, Any]] = {
        "LiteLLM alone": {},
        "compression_interception": {
            "callbacks": ["compression_interception"],
            "compression_interception_params": {"compression_trigger": window_tokens},
        },
        "ctx_hooks": {"callbacks": ["ctx_hooks.proxy_handler_instance"]},
    }
    if find_spec("headroom"):
        found["headroom"] = {"callbacks": ["headroom_callback.handler"]}
    return found


def configuration(url: str, window_tokens: int, settings: dict[str, Any]) -> dict[str, Any]:
    """Return a proxy's configuration with a group for each kind of deployment."""
    bases = {"openai": f"{url}/v1", "anthropic": url}
    models = [
        {
            "model_name": kind,
            "litellm_params": {"model": f"{kind}/served", "api_base": base, "api_key": "none"},
            "model_info": {"max_input_tokens": window_tokens},
        }
        for kind, base in bases.items()
    ]
    general = {"master_key": "os.environ/LITELLM_MASTER_KEY"}
    return {"model_list": models, "litellm_settings": settings, "general_settings": general}


def sources(fmt: Format, model: str) -> dict[str, Any]:
    """Return a payload in which an agent reads twenty source files."""
    return agent_session(fmt, model=model, result_chars=FILE_CHARS)


def records(fmt: Format, model: str) -> dict[str, Any]:
    """Return a payload in which an agent gets JSON records from another tool: what Headroom shortens best."""
    rng = random.Random(0)

    def changed(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: changed(held) for name, held in value.items()}
        if isinstance(value, list):
            return [changed(held) for held in value]
        if isinstance(value, str) and len(value) >= FILE_CHARS:
            rows = [{"id": n, "service": "billing", "status": "done", "ms": rng.randrange(900)} for n in range(RECORDS)]
            return json.dumps(rows)
        return value.replace(TOOL, "query_requests") if isinstance(value, str) else value

    found: dict[str, Any] = changed(sources(fmt, model))
    return found


def dialogue(fmt: Format, model: str) -> dict[str, Any]:
    """Return a payload without tools: a user shows twenty files and asks about one of them."""
    rng = random.Random(0)
    messages = []
    for n in range(20):
        messages.append({"role": "user", "content": f"# file_{n}.py\n{source_text(rng, FILE_CHARS)}"})
        messages.append({"role": "assistant", "content": f"I have read file_{n}.py."})
    messages.append({"role": "user", "content": "Fix the bug in file_7.py."})
    limit = {"max_tokens": 256} if fmt == "anthropic" else {}
    return {"model": model, "input" if fmt == "openai-responses" else "messages": messages, **limit}


def answered(proxy: ProxyProcess, provider: FakeProvider, path: str, payload: dict[str, Any]) -> bool:
    """Send a request; return whether the provider accepts it and the proxy answers."""
    provider.reset()
    answer = LOOPBACK.post(proxy.url + path, json=payload, headers=proxy.headers, timeout=120)
    return answer.is_success and any(r["status"] == httpx.codes.OK for r in provider.requests())


def outcomes(settings: dict[str, Any], window_tokens: int) -> Iterator[str]:
    """Yield for each route which of the three conversations a proxy with these settings answers."""
    with TemporaryDirectory() as folder, FakeProvider(ProviderSettings(window_tokens=WINDOW_TOKENS)) as provider:
        Path(folder, "headroom_callback.py").write_text(HEADROOM.format(window_tokens), encoding="utf-8")
        with ProxyProcess(configuration(provider.url, window_tokens, settings), {"PYTHONPATH": folder}) as proxy:
            for path, fmt, group in ROUTES.values():
                cells = []
                for conversation in (sources, records, dialogue):
                    payload = conversation(fmt, group)
                    ways = [answered(proxy, provider, path, {**payload, "stream": stream}) for stream in (False, True)]
                    cells.append(CELLS[tuple(ways)])
                yield " / ".join(cells)


def table() -> str:
    """Return a row for each contestant and window that it was told, as Markdown."""
    lines = ["| | window | " + " | ".join(ROUTES) + " |", "|" + "---|" * (len(ROUTES) + 2)]
    for told, window_tokens in (("known", WINDOW_TOKENS), ("unknown", BELIEVED_TOKENS)):
        for name, settings in callbacks(window_tokens).items():
            lines.append(f"| {name} | {told} | {' | '.join(outcomes(settings, window_tokens))} |")
    return "\n".join(lines)
