"""`ctx-hooks doctor`: this installation. `ctx-hooks demo`: also an overflow over every route of a real proxy."""

import platform
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Any, NamedTuple, get_args

import click
import httpx
import yaml
from packaging.requirements import Requirement

from ctx_hooks.cli.check import Finding, finding, print_findings
from ctx_hooks.cli.terminal import FAILED, CommandError, as_json, console, print_json, tell, working
from ctx_hooks.formats import ANTHROPIC, CHAT, GEMINI, RESPONSES
from ctx_hooks.litellm_compat.registry import NAMES
from ctx_hooks.policy.resolve import KILL_SWITCH, switched_off
from ctx_hooks.testing import LOOPBACK, FakeProvider, ProviderSettings, ProxyProcess, agent_session
from ctx_hooks.testing.behaviour import Format, count_payload
from ctx_hooks.testing.gemini import addressed
from ctx_hooks.tokens.counter import VocabularyName, encoding

PACKAGE = "ctx-hooks"
WINDOW_TOKENS = 12_000
PROVIDER = ProviderSettings(window_tokens=WINDOW_TOKENS)
TURNS, RESULT_CHARS = 60, 4_000
TIMEOUT_SECONDS = 120
API_PATHS = {"openai": "/v1", "anthropic": "", "gemini": "/v1beta"}
"""The path of the API for each LiteLLM provider, below the simulated provider's address."""
ANSWER = "Answer "
"""The beginning of each answer of the simulated provider, whole and in the first event of a stream."""
TO_ADD = """A provider with a window of {window:,} tokens answers until Ctrl-C. Add this to your model_list:

  - model_name: simulated
    litellm_params: {{model: openai/simulated, api_base: "{url}/v1", api_key: not-a-key}}
    model_info: {{max_input_tokens: {window}}}  # without it one request is refused first"""
ROW = "{:22}{:18}{:7}{:>7}{:>7}{:>10}  {}"


class Trial(NamedTuple):
    """A route of the proxy, the format of its requests, and the deployment of litellm_config.yaml, by name and in words."""

    path: str
    fmt: Format
    model: str
    deployment: str


TRIALS = (
    Trial("/v1/chat/completions", CHAT, "gpt", "OpenAI"),
    Trial("/v1/chat/completions", CHAT, "local", "window configured"),
    Trial("/v1/messages", ANTHROPIC, "claude", "Anthropic"),
    Trial("/v1/messages", ANTHROPIC, "gpt", "OpenAI"),
    Trial("/v1/responses", RESPONSES, "gpt", "OpenAI"),
    Trial("/v1beta/models", GEMINI, "gemini", "Google"),
    Trial("/v1beta/models", GEMINI, "gpt", "OpenAI"),
)


def run(*, provider_only: bool, port: int | None, window: int) -> int:
    """Print each request as it is answered, or serve only the provider until Ctrl-C; return the exit code."""
    if provider_only:
        _serve_provider(port, window)
        return 0
    findings, found = _examined(), []
    if not as_json():
        click.echo(f"\nA provider with a window of {WINDOW_TOKENS:,} tokens and a LiteLLM proxy start here.\n")
        click.echo(ROW.format("route", "deployment", "stream", "sent", "asked", "accepted", "answer"))
    try:
        for answer in answers():
            found.append(answer)
            if not as_json():
                words = (answer["route"], answer["deployment"], "yes" if answer["stream"] else "no")
                sizes = (f"{answer['sent_tokens']:,}", answer["attempts"], f"{answer['accepted_tokens']:,}")
                click.echo(ROW.format(*words, *sizes, "yes" if answer["answered"] else answer["status"]))
    except RuntimeError as error:
        raise CommandError(f"the proxy does not start: {error}") from error
    answered = all(answer["answered"] for answer in found)
    listed = list(map(asdict, findings))
    end = "Every route was answered." if answered else "A route was not answered."
    tell(
        {"findings": listed, "window_tokens": WINDOW_TOKENS, "answered": answered, "requests": found},
        f"\nsent, accepted: the provider's tokens; asked: how often the proxy asked it.\n{end}",
    )
    return 0 if answered and not any(each.level == "fails" for each in findings) else FAILED


def examine() -> int:
    """Print the problems that keep the plugin from working in this installation; return the exit code."""
    findings = _examined()
    if as_json():
        print_json({"findings": list(map(asdict, findings))})
    return FAILED if any(each.level == "fails" for each in findings) else 0


def _examined() -> list[Finding]:
    """Return the findings about this installation; without `--json`, print them too."""
    with working("Loading LiteLLM"):
        findings = list(installation())
    if not as_json():
        print_findings(console(), findings)
    return findings


def installation() -> Iterator[Finding]:
    """Yield whether this LiteLLM meets the plugin's needs, and the problems that keep the plugin from working here."""
    yield versions_finding(version("litellm"))
    if switched_off():
        yield finding("switched_off", variable=KILL_SWITCH)
    yield _vocabularies()
    lacking = [f"{name.fault}: {name.without}" for name in NAMES if name.fault]
    yield from (finding("seam_missing", lacking=text) for text in lacking)
    if not lacking:
        yield finding("seam", names=len(NAMES))


def versions_finding(found: str) -> Finding:
    """Return whether a version of LiteLLM is one that the package asks for."""
    here = f"Python {platform.python_version()}"
    try:
        ours = f"ctx-hooks {version(PACKAGE)}"
        (wanted,) = (r for r in map(Requirement, requires(PACKAGE) or ()) if r.name == "litellm" and r.marker is None)
    except PackageNotFoundError:
        return finding("versions_folder", versions=f"LiteLLM {found}, {here}")
    versions = f"LiteLLM {found}, {ours}, {here}"
    if found in wanted.specifier:
        return finding("versions", versions=versions)
    return finding("versions_unsupported", versions=versions, specifier=wanted.specifier, wanted=wanted)


def _vocabularies() -> Finding:
    begun, names = time.perf_counter(), get_args(VocabularyName)
    for name in names:
        try:
            encoding(name).encode_ordinary("")
        except OSError as error:
            return finding("vocabulary_missing", name=name, error=error)
    return finding("vocabularies", names=" and ".join(names), milliseconds=f"{1_000 * (time.perf_counter() - begun):,.0f}")


def _serve_provider(port: int | None, window: int) -> None:
    try:
        with FakeProvider(ProviderSettings(window_tokens=window), port=port) as provider:
            tell({"url": provider.url, "window_tokens": window}, TO_ADD.format(url=provider.url, window=window))
            until_interrupted()
    except RuntimeError as error:
        raise CommandError(f"the provider cannot listen on port {port}: {error}") from error


def until_interrupted() -> None:
    """Wait for Ctrl-C."""
    threading.Event().wait()


def answers() -> Iterator[dict[str, Any]]:
    """Yield the result of each request when it is answered; raises RuntimeError if the proxy does not start."""
    with ExitStack() as running:
        provider = running.enter_context(FakeProvider(PROVIDER))
        keys = dict.fromkeys(("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "LOCAL_API_KEY"), "not-a-key")
        with working("The proxy starts"):
            proxy = running.enter_context(ProxyProcess(_config(provider.url), {**keys, "LOCAL_API_BASE": provider.url}))
        for trial in TRIALS:
            for stream in (False, True):
                yield _answer(provider, proxy, trial, stream=stream)


def _answer(provider: FakeProvider, proxy: ProxyProcess, trial: Trial, *, stream: bool) -> dict[str, Any]:
    payload = agent_session(trial.fmt, turns=TURNS, result_chars=RESULT_CHARS, model=_group(trial, stream=stream))
    path, body = trial.path, {**payload, "stream": stream}
    if trial.fmt == GEMINI:
        method, body = addressed(payload, stream=stream)
        path = f"{path}/{method}"
    provider.reset()
    answer = LOOPBACK.post(f"{proxy.url}{path}", json=body, headers=proxy.headers, timeout=TIMEOUT_SECONDS)
    attempts = provider.requests()
    accepted = [a["input_tokens"] for a in attempts if a["status"] == httpx.codes.OK]
    return {
        "route": trial.path,
        "deployment": trial.deployment,
        "stream": stream,
        "sent_tokens": count_payload(trial.fmt, payload, PROVIDER),
        "attempts": len(attempts),
        "accepted_tokens": accepted[-1] if accepted else 0,
        "status": answer.status_code,
        "answered": answer.status_code == httpx.codes.OK and bool(accepted) and ANSWER in answer.text,
    }


def _group(trial: Trial, *, stream: bool) -> str:
    return f"{trial.model}-{TRIALS.index(trial)}{'-streamed' if stream else ''}"


def _config(provider_url: str) -> dict[str, Any]:
    """Return litellm_config.yaml with a deployment for each request, so that none knows a limit from another."""
    beside = Path(__file__).resolve().parents[2] / "litellm_config.yaml"  # in a checkout; an installed package has a copy
    path = beside if beside.exists() else Path(__file__).with_name("litellm_config.yaml")
    config: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    known = {entry["model_name"]: entry for entry in config["model_list"]}
    config["model_list"] = []
    for trial in TRIALS:
        params = known[trial.model]["litellm_params"]
        params = {**params, "api_base": provider_url + API_PATHS[params["model"].split("/")[0]]}
        groups = (_group(trial, stream=stream) for stream in (False, True))
        config["model_list"] += [{**known[trial.model], "model_name": group, "litellm_params": params} for group in groups]
    return config
