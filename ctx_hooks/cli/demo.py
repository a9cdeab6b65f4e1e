"""One conversation, larger than the window, over every route of a real proxy in front of a strict fake provider."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import httpx
import yaml

from ctx_hooks.testing import LOOPBACK, FakeProvider, ProviderSettings, ProxyProcess, agent_session
from ctx_hooks.testing.counting import count_payload
from ctx_hooks.testing.rules import Format

WINDOW_TOKENS = 12_000
TURNS = 60
RESULT_CHARS = 4_000
ANSWER_CHARS = 36


@dataclass(frozen=True, slots=True)
class Route:
    """A route of the proxy, the model group that is asked there, and the format of its deployment."""

    path: str
    fmt: Format
    model: str
    note: str


ROUTES = (
    Route("/v1/chat/completions", "openai-chat", "gpt", "OpenAI"),
    Route("/v1/chat/completions", "openai-chat", "local", "OpenAI, window configured"),
    Route("/v1/messages", "anthropic", "claude", "Anthropic"),
    Route("/v1/messages", "anthropic", "gpt", "OpenAI behind it"),
    Route("/v1/responses", "openai-responses", "gpt", "OpenAI"),
)


@click.command()
def command() -> int:
    """Ask a real proxy over every route; no key, no network."""
    return run()


def run() -> int:
    """Run the demo and print its table; return 0 when every route was answered, else 1."""
    provider_settings = ProviderSettings(window_tokens=WINDOW_TOKENS)
    print(f"A provider with a window of {WINDOW_TOKENS:,} tokens and a LiteLLM proxy are starting on loopback …")
    with (
        FakeProvider(provider_settings) as provider,
        ProxyProcess(_config(provider.url), _environment(provider.url)) as proxy,
    ):
        print(f"{'route':22}{'deployment':27}{'stream':8}{'sent':>8}{'window':>9}{'attempts':>10}{'accepted':>10}  answer")
        answered = [
            _ask(provider, proxy, provider_settings, route, stream=stream) for route in ROUTES for stream in (False, True)
        ]
    print("Every route was answered." if all(answered) else "A route was not answered.")
    return 0 if all(answered) else 1


def _ask(provider: FakeProvider, proxy: ProxyProcess, settings: ProviderSettings, route: Route, *, stream: bool) -> bool:
    payload = agent_session(route.fmt, turns=TURNS, result_chars=RESULT_CHARS, model=route.model)
    sent = count_payload(route.fmt, payload, settings)
    provider.reset()
    answer = LOOPBACK.post(
        f"{proxy.url}{route.path}", json={**payload, "stream": stream}, headers=proxy.headers, timeout=120
    )
    attempts = provider.requests()
    accepted = [a["input_tokens"] for a in attempts if a["status"] == httpx.codes.OK]
    row = f"{route.path:22}{route.note:27}{'yes' if stream else 'no':8}{sent:8,}{WINDOW_TOKENS:9,}{len(attempts):10}"
    text = _text(answer, stream=stream)
    print(f"{row}{accepted[-1] if accepted else 0:10,}  {text[:ANSWER_CHARS] or answer.status_code}")
    return answer.status_code == httpx.codes.OK and bool(accepted) and bool(text)


def _text(answer: httpx.Response, *, stream: bool) -> str:
    """Return the answer's text; of a stream, the deltas of all three routes' events joined."""
    if answer.status_code != httpx.codes.OK:
        return ""
    if not stream:
        return _first_text(answer.json())
    events = [line[6:] for line in answer.text.splitlines() if line.startswith("data: {")]
    return "".join(_delta(json.loads(e)) for e in events)


def _delta(event: dict[str, Any]) -> str:
    if event.get("choices"):
        return event["choices"][0]["delta"].get("content") or ""
    delta = event.get("delta")
    text = delta.get("text") if isinstance(delta, dict) else delta
    return text if isinstance(text, str) else ""


def _first_text(body: dict[str, Any]) -> str:
    if "choices" in body:
        return body["choices"][0]["message"]["content"] or ""
    blocks = body.get("content") or [b for item in body.get("output", []) for b in item.get("content") or []]
    return next((b["text"] for b in blocks if b.get("text")), "")


def _config(provider_url: str) -> dict[str, Any]:
    """Return litellm_config.yaml with every deployment pointed at the fake provider."""
    config: dict[str, Any] = yaml.safe_load(_config_path().read_text(encoding="utf-8"))
    for model in config["model_list"]:
        is_openai = model["litellm_params"]["model"].startswith("openai/")
        model["litellm_params"]["api_base"] = f"{provider_url}/v1" if is_openai else provider_url
    return config


def _config_path() -> Path:
    """Return the file beside the package in a checkout, or the copy that an installed package carries."""
    beside = Path(__file__).resolve().parents[2] / "litellm_config.yaml"
    return beside if beside.exists() else Path(__file__).with_name("litellm_config.yaml")


def _environment(provider_url: str) -> dict[str, str]:
    keys = dict.fromkeys(("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "LOCAL_API_KEY"), "not-a-key")
    return {**keys, "LOCAL_API_BASE": provider_url}
