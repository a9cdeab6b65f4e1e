"""`ctx-hooks demo`: one conversation, larger than the window, over every route of a real proxy."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ctx_hooks.cli.terminal import FAILED, json_option, print_json, working

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctx_hooks.cli.trial import Asked, Route

HEADING = f"{'route':22}{'deployment':18}{'stream':7}{'sent':>7}{'asked':>7}{'accepted':>10}  answer"


@click.command()
@json_option
def command(*, as_json: bool) -> int:
    """Ask a real proxy over every route; no key, no network.

    A LiteLLM proxy with this plugin and a provider with a small window start on loopback. The provider counts for itself and
    refuses what is too long or breaks a rule of its API.
    """
    from ctx_hooks.cli.trial import WINDOW_TOKENS  # noqa: PLC0415 - slow to load, and not for --help

    if not as_json:
        click.echo(f"A provider with a window of {WINDOW_TOKENS:,} tokens and a LiteLLM proxy start here.\n")
        click.echo(HEADING)
    rows = []
    for route, deployment, stream, asked in _asked():
        rows.append((route, deployment, stream, asked))
        if not as_json:
            click.echo(_row(route, deployment, asked, stream=stream))
    answered = all(asked.answered for *_, asked in rows)
    if as_json:
        told = [_document(route, deployment, asked, stream=stream) for route, deployment, stream, asked in rows]
        print_json({"window_tokens": WINDOW_TOKENS, "answered": answered, "requests": told})
    else:
        click.echo("\nsent, accepted: the provider's tokens; asked: how often the proxy asked it.")
        click.echo("Every route was answered." if answered else "A route was not answered.")
    return 0 if answered else FAILED


def _asked() -> Iterator[tuple[Route, str, bool, Asked]]:
    """Yield each request as it is answered: its route, its deployment, whether it was streamed, and what became of it."""
    from ctx_hooks.cli import trial  # noqa: PLC0415
    from ctx_hooks.testing import FakeProvider, ProxyProcess  # noqa: PLC0415

    requests = (
        (trial.CHAT, "gpt", "OpenAI"),
        (trial.CHAT, "local", "window configured"),
        (trial.MESSAGES, "claude", "Anthropic"),
        (trial.MESSAGES_TO_OPENAI, "gpt", "OpenAI"),
        (trial.RESPONSES, "gpt", "OpenAI"),
        (trial.GOOGLE, "gemini", "Google"),
        (trial.GOOGLE_TO_OPENAI, "gpt", "OpenAI"),
    )
    with ExitStack() as running:
        provider = running.enter_context(FakeProvider(trial.PROVIDER))
        with working("The proxy starts"):
            proxy = running.enter_context(ProxyProcess(_config(provider.url), _environment(provider.url)))
        for route, model, deployment in requests:
            for stream in (False, True):
                yield route, deployment, stream, trial.ask(provider, proxy, route, model, stream=stream)


def _row(route: Route, deployment: str, asked: Asked, *, stream: bool) -> str:
    figures = f"{asked.sent_tokens:7,}{asked.attempts:7}{asked.accepted_tokens:10,}"
    return (
        f"{route.path:22}{deployment:18}{'yes' if stream else 'no':7}{figures}  {'yes' if asked.answered else asked.status}"
    )


def _document(route: Route, deployment: str, asked: Asked, *, stream: bool) -> dict[str, Any]:
    return {
        "route": route.path,
        "deployment": deployment,
        "stream": stream,
        "sent_tokens": asked.sent_tokens,
        "attempts": asked.attempts,
        "accepted_tokens": asked.accepted_tokens,
        "status": asked.status,
        "answer": asked.text,
        "answered": asked.answered,
    }


def _config(provider_url: str) -> dict[str, Any]:
    """Return litellm_config.yaml with every deployment pointed at the fake provider."""
    import yaml  # noqa: PLC0415

    from ctx_hooks.cli.trial import API_PATHS  # noqa: PLC0415

    config: dict[str, Any] = yaml.safe_load(_config_path().read_text(encoding="utf-8"))
    for model in config["model_list"]:
        params = model["litellm_params"]
        params["api_base"] = provider_url + API_PATHS[params["model"].split("/")[0]]
    return config


def _config_path() -> Path:
    """Return the file beside the package in a checkout, or the copy that an installed package carries."""
    beside = Path(__file__).resolve().parents[2] / "litellm_config.yaml"
    return beside if beside.exists() else Path(__file__).with_name("litellm_config.yaml")


def _environment(provider_url: str) -> dict[str, str]:
    keys = dict.fromkeys(("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "LOCAL_API_KEY"), "not-a-key")
    return {**keys, "LOCAL_API_BASE": provider_url}
