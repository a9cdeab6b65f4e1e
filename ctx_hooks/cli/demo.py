"""`ctx-hooks demo`: one conversation, larger than the window, over every route of a real proxy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click
import yaml

from ctx_hooks.cli import trial
from ctx_hooks.cli.terminal import FAILED, print_json, working
from ctx_hooks.testing import FakeProvider, ProxyProcess

HEADING = f"{'route':22}{'deployment':18}{'stream':7}{'sent':>7}{'asked':>7}{'accepted':>10}  answer"


def run(*, as_json: bool) -> int:
    """Print each request as it is answered; return the exit code."""
    if not as_json:
        click.echo(f"A provider with a window of {trial.WINDOW_TOKENS:,} tokens and a LiteLLM proxy start here.\n")
        click.echo(HEADING)
    answers = []
    for answer in _answers():
        answers.append(answer)
        if not as_json:
            click.echo(_row(answer))
    answered = all(answer["answered"] for answer in answers)
    if as_json:
        print_json({"window_tokens": trial.WINDOW_TOKENS, "answered": answered, "requests": answers})
    else:
        click.echo("\nsent, accepted: the provider's tokens; asked: how often the proxy asked it.")
        click.echo("Every route was answered." if answered else "A route was not answered.")
    return 0 if answered else FAILED


def _answers() -> Iterator[dict[str, Any]]:
    """Yield what became of each request, as it is answered."""
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
                asked = trial.ask(provider, proxy, route, model, stream=stream)
                yield {
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


def _row(answer: Mapping[str, Any]) -> str:
    sent, asked, accepted = answer["sent_tokens"], answer["attempts"], answer["accepted_tokens"]
    end = "yes" if answer["answered"] else answer["status"]
    stream = "yes" if answer["stream"] else "no"
    return f"{answer['route']:22}{answer['deployment']:18}{stream:7}{sent:7,}{asked:7}{accepted:10,}  {end}"


def _config(provider_url: str) -> dict[str, Any]:
    """Return litellm_config.yaml with every deployment pointed at the fake provider."""
    config: dict[str, Any] = yaml.safe_load(_config_path().read_text(encoding="utf-8"))
    for model in config["model_list"]:
        params = model["litellm_params"]
        params["api_base"] = provider_url + trial.API_PATHS[params["model"].split("/")[0]]
    return config


def _config_path() -> Path:
    """Return the file beside the package in a checkout, or the copy that an installed package carries."""
    beside = Path(__file__).resolve().parents[2] / "litellm_config.yaml"
    return beside if beside.exists() else Path(__file__).with_name("litellm_config.yaml")


def _environment(provider_url: str) -> dict[str, str]:
    keys = dict.fromkeys(("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "LOCAL_API_KEY"), "not-a-key")
    return {**keys, "LOCAL_API_BASE": provider_url}
