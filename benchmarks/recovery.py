"""Whether a request that is larger than the window is answered, for what runs inside a LiteLLM proxy.

A real proxy for each, before the strict fake provider. Each is told the window in its own setting, once the provider's and
once a far larger one, as where nobody knows the window. Every route is asked once whole and once streamed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ctx_hooks.testing import LOOPBACK, FakeProvider, ProviderSettings, ProxyProcess, agent_session

WINDOW_TOKENS = 8_000
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
ALL, WHOLE, STREAMED, NONE = "yes", "not streamed", "streamed alone", "no"


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


def answered(proxy: ProxyProcess, provider: FakeProvider, route: tuple[str, str, str], *, stream: bool) -> bool:
    """Send an agent session of about 25,000 tokens; return whether provider and proxy answer it."""
    path, fmt, group = route
    provider.reset()
    payload = {**agent_session(fmt, model=group), "stream": stream}
    answer = LOOPBACK.post(proxy.url + path, json=payload, headers=proxy.headers, timeout=120)
    return answer.is_success and any(r["status"] == 200 for r in provider.requests())


def outcomes(settings: dict[str, Any], window_tokens: int) -> Iterator[str]:
    """Yield for each route whether a proxy with these settings answers there."""
    with TemporaryDirectory() as folder, FakeProvider(ProviderSettings(window_tokens=WINDOW_TOKENS)) as provider:
        Path(folder, "headroom_callback.py").write_text(HEADROOM.format(window_tokens), encoding="utf-8")
        environment = {"PYTHONPATH": os.pathsep.join([folder, str(Path(__file__).resolve().parents[1])])}
        with ProxyProcess(configuration(provider.url, window_tokens, settings), environment) as proxy:
            for route in ROUTES.values():
                whole, streamed = (answered(proxy, provider, route, stream=stream) for stream in (False, True))
                yield {(True, True): ALL, (True, False): WHOLE, (False, True): STREAMED}.get((whole, streamed), NONE)


def table() -> str:
    """Return a row for each contestant and window that it was told, as Markdown."""
    lines = ["| | window | " + " | ".join(ROUTES) + " |", "|" + "---|" * (len(ROUTES) + 2)]
    for told, window_tokens in (("known", WINDOW_TOKENS), ("unknown", BELIEVED_TOKENS)):
        for name, settings in callbacks(window_tokens).items():
            lines.append(f"| {name} | {told} | {' | '.join(outcomes(settings, window_tokens))} |")
    return "\n".join(lines)
