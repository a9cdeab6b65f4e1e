"""Whether the plugin works in this installation: one overflow through every route and hook of a real proxy."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx

from ctx_hooks.cli.findings import Finding, finding
from ctx_hooks.cli.report import read_events
from ctx_hooks.cli.trial import (
    API_PATHS,
    CHAT,
    GOOGLE,
    GOOGLE_TO_OPENAI,
    MESSAGES,
    MESSAGES_TO_OPENAI,
    PROVIDER,
    RESPONSES,
    WINDOW_TOKENS,
    Asked,
    Route,
    ask,
)
from ctx_hooks.telemetry.headers import DECISION
from ctx_hooks.testing import FakeProvider, ProxyProcess

ROUTES = (CHAT, MESSAGES, MESSAGES_TO_OPENAI, RESPONSES, GOOGLE, GOOGLE_TO_OPENAI)
MODELS = {"OpenAI": "openai/", "Anthropic": "anthropic/claude-", "Google": "gemini/"}
"""What a deployment's model begins with, by whose format it has."""
LARGE_TOKENS = 200_000
TINY_TOKENS = 60
"""A window that no request can be fitted to."""
MOST_WEIGHT = 1_000_000
"""Of the deployment that does not hold the request, beside one of weight 1: chance alone does not choose the other."""
UNKNOWN_WORDING = "xai"
"""An overflow that LiteLLM leaves as a BadRequestError."""
ERROR_TEXT = "worded for ctx-hooks doctor"
POLICIES: dict[str, dict[str, Any]] = {
    "usage-*": {"report_usage": "original"},
    "mixed": {"deployment_choice": "holds_request"},
    "hopeless": {"error_text": ERROR_TEXT},
}
HOOKS = {
    "async_pre_call_deployment_hook": "A request that is too long is fitted before it is sent",
    "async_pre_call_hook": "Retries on the same model are arranged",
    "async_post_call_response_headers_hook": "The client is told what was done",
    "Router.make_call": "An overflow in words that LiteLLM does not know is retried",
    "async_filter_deployments": "A request goes to the deployment that holds it, where the policy says so",
    "async_post_call_success_hook": "An answer's usage can be the caller's own size",
    "async_post_call_streaming_iterator_hook": "A stream's usage as well",
    "async_post_call_failure_hook": "What no retry helps ends in one readable error",
    "async_post_call_failure_deployment_hook": "A refusal is heard and learned from",
    "async_logging_hook": "The bill of an answer is read and learned from",
}
"""Of LiteLLM, each with what the plugin does in it."""


def overflow_findings() -> list[Finding]:
    """Return what became of an overflow on each route, and which hooks of LiteLLM were seen to work."""
    provider = FakeProvider(PROVIDER)
    with tempfile.TemporaryDirectory(prefix="ctx_hooks_doctor_") as folder:
        with provider:
            provider.configure(windows={"tiny": TINY_TOKENS, "large": LARGE_TOKENS})
            with ProxyProcess(_config(provider.url, folder)) as proxy:
                found = [*_routes(provider, proxy), *_hooks(provider, proxy)]
        return [*found, *_recorded(Path(folder))]


def _routes(provider: FakeProvider, proxy: ProxyProcess) -> Iterator[Finding]:
    for number, route in enumerate(ROUTES):
        provider.configure(refused_form="wording")
        whole = ask(provider, proxy, route, f"whole-{number}")
        streamed = ask(provider, proxy, route, f"streamed-{number}", stream=True)
        provider.configure(refused_form="nested")
        told = ask(provider, proxy, route, f"told-{number}", stream=True)
        provider.configure(refused_form="wording")
        yield _route(route, {"whole": whole, "streamed": streamed, "refused in a stream": told})


def _route(route: Route, ways: dict[str, Asked]) -> Finding:
    name = f"{route.path} to {route.provider} format"
    failed = [way for way, asked in ways.items() if not _is_retried(asked)]
    if not failed:
        sent, accepted = ways["whole"].sent_tokens, ways["whole"].accepted_tokens
        return finding("route", route=name, sent=f"{sent:,}", accepted=f"{accepted:,}", ways=", ".join(ways))
    statuses = ", ".join(f"{way} ({ways[way].status})" for way in failed)
    return finding("route_in_stream" if failed == ["refused in a stream"] else "route_fails", route=name, statuses=statuses)


def _hooks(provider: FakeProvider, proxy: ProxyProcess) -> Iterator[Finding]:
    fitted = ask(provider, proxy, CHAT, "fitted")
    yield _hook("async_pre_call_deployment_hook", works=fitted.answered and fitted.attempts == 1)
    rescued = ask(provider, proxy, CHAT, "rescued")
    yield _hook("async_pre_call_hook", works=_is_retried(rescued))
    yield _hook("async_post_call_response_headers_hook", works=rescued.headers.get(DECISION) == "retried")
    provider.configure(wording=UNKNOWN_WORDING)
    yield _hook("Router.make_call", works=_is_retried(ask(provider, proxy, CHAT, "unknown")))
    provider.configure(wording=PROVIDER.wording)
    mixed = ask(provider, proxy, CHAT, "mixed")
    yield _hook("async_filter_deployments", works=mixed.answered and mixed.accepted_tokens > WINDOW_TOKENS)
    whole = ask(provider, proxy, CHAT, "usage-chat")
    yield _hook("async_post_call_success_hook", works=_states_all(whole))
    streamed = ask(provider, proxy, MESSAGES, "usage-messages", stream=True)
    yield _hook("async_post_call_streaming_iterator_hook", works=_states_all(streamed))
    hopeless = ask(provider, proxy, CHAT, "hopeless")
    is_worded = hopeless.status == httpx.codes.BAD_REQUEST and ERROR_TEXT in hopeless.body
    yield _hook("async_post_call_failure_hook", works=is_worded)


def _recorded(folder: Path) -> Iterator[Finding]:
    """Yield what the proxy's event file shows; it is whole when the proxy has ended."""
    names = {event.name for event in read_events(sorted(folder.iterdir())) if event is not None}
    yield _hook("async_post_call_failure_deployment_hook", works="overflow" in names)
    yield _hook("async_logging_hook", works="answer" in names)


def _hook(name: str, *, works: bool) -> Finding:
    return finding("hook" if works else "hook_fails", does=HOOKS[name], hook=name)


def _is_retried(asked: Asked) -> bool:
    return asked.answered and asked.attempts > 1


def _states_all(asked: Asked) -> bool:
    """Whether the usage of an answer states the request as it came, which is more than the window holds."""
    stated = re.findall(r'"(?:prompt|input)_tokens": ?(\d+)', asked.body)
    return asked.answered and any(int(tokens) > WINDOW_TOKENS for tokens in stated)


def _config(provider_url: str, events: str) -> dict[str, Any]:
    """Return a configuration with a group and a model for each request: no limit is known from the one before it."""
    models = [
        _deployment(provider_url, f"{way}-{number}", f"{way}-{number}", route)
        for number, route in enumerate(ROUTES)
        for way in ("whole", "streamed", "told")
    ]
    models += [
        _deployment(provider_url, "rescued", "rescued"),
        _deployment(provider_url, "unknown", "unknown"),
        _deployment(provider_url, "usage-chat", "usage-chat"),
        _deployment(provider_url, "usage-messages", "usage-messages", MESSAGES),
        _deployment(provider_url, "fitted", "fitted", max_input_tokens=WINDOW_TOKENS),
        _deployment(provider_url, "mixed", "small", weight=MOST_WEIGHT, max_input_tokens=WINDOW_TOKENS),
        _deployment(provider_url, "mixed", "large", max_input_tokens=LARGE_TOKENS),
        _deployment(provider_url, "hopeless", "tiny"),
    ]
    return {
        "model_list": models,
        "litellm_settings": {"callbacks": ["ctx_hooks.proxy_handler_instance"]},
        "callback_settings": {"ctx_hooks": {"models": POLICIES, "events": {"path": events}}},
        "general_settings": {"master_key": "os.environ/LITELLM_MASTER_KEY"},
    }


def _deployment(
    provider_url: str, group: str, model: str, route: Route = CHAT, *, weight: int = 1, **info: Any
) -> dict[str, Any]:
    name = MODELS[route.provider] + model
    params = {
        "model": name,
        "api_base": provider_url + API_PATHS[name.split("/")[0]],
        "api_key": "not-a-key",
        "weight": weight,
    }
    return {"model_name": group, "litellm_params": params, "model_info": info}
