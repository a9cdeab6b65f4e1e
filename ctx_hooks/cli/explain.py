"""`ctx-hooks explain`: what the plugin would do with a request, and why. Nothing is sent."""

from __future__ import annotations

import asyncio
import difflib
import json
from pathlib import Path
from typing import Any

import click
import yaml

from ctx_hooks.cli.configuration import configuration_of
from ctx_hooks.compaction.steps import oldest_turns
from ctx_hooks.compaction.summary.model_written import applies_to
from ctx_hooks.decision import Compressed, GaveUp, NotRetried, Rescued, Untouched
from ctx_hooks.learning.calibration import Calibration
from ctx_hooks.litellm_compat import Deployment
from ctx_hooks.policy.caller import Caller, as_text
from ctx_hooks.policy.resolve import Policies, Resolved
from ctx_hooks.policy.settings import Policy
from ctx_hooks.request.request import Request
from ctx_hooks.request.target import of_deployment
from ctx_hooks.serving.attempt_runner import AttemptRunner
from ctx_hooks.tokens.units import to_local, to_provider
from ctx_hooks.tokens.window import ReservedOutput, Window, budget_tokens_of, target_tokens_of


@click.command()
@click.argument("request_path", metavar="REQUEST", type=click.Path(path_type=Path))
@click.option("--model", required=True, help="The model group, or a LiteLLM model name.")
@click.option("--config", "config_path", type=click.Path(path_type=Path), help="The proxy configuration.")
@click.option("--team", help="Team id or alias.")
@click.option("--key", help="Alias of a virtual key.")
@click.option("--diff", is_flag=True, help="Print only what changes in the request.")
def command(
    request_path: Path, model: str, config_path: Path | None, team: str | None, key: str | None, *, diff: bool
) -> int:
    """Say what would be done with a request, and why; nothing is sent."""
    config: dict[str, Any] = yaml.safe_load(config_path.read_text(encoding="utf-8")) if config_path else {}
    found = configuration_of(config)
    settings = found.settings
    for line in found.mistakes:
        print(line)
    name, info = _deployment(config, model)
    caller = Caller(
        group=model,
        deployment=as_text(info.get("ctx_hooks")),
        team_names=(team,) if team else (),
        key_names=(key,) if key else (),
    )
    resolved = Policies(settings).resolve(caller)
    fields = json.loads(request_path.read_text(encoding="utf-8"))
    request = Request(_format(fields), fields)
    target = of_deployment(Deployment(name, info), resolved, "explain")
    _print_policy(resolved, target.window, request, name)
    decision = asyncio.run(AttemptRunner().decide(request, target))
    if isinstance(decision, (Untouched, NotRetried)):
        print(f"untouched: {decision.reason}")
        sent = fields
    else:
        figures = decision.figures
        if figures is not None:
            print(f"{type(decision).__name__.lower()}: {figures.tokens_before} tokens before, {figures.tokens_after} after")
        for step in decision.steps:
            print(f"  {step.name}: {step.tokens_saved} tokens, {step.items_touched} messages: {step.why}")
        sent = {**fields, **decision.changes}
        _print_summary(resolved.policy, Request(request.format, sent), decision)
    before, after = (json.dumps(f, indent=1, ensure_ascii=False) for f in (fields, sent))
    if diff:
        print("\n".join(difflib.unified_diff(before.splitlines(), after.splitlines(), "received", "sent", lineterm="", n=1)))
    else:
        print(after)
    return 0


def _print_policy(resolved: Resolved, window: Window, request: Request, model: str) -> None:
    for name, value in resolved.policy.model_dump().items():
        print(f"{name}: {value!r} ({resolved.origins.get(name, 'default')})")
    for line in resolved.ignored:
        print(f"ignored: {line}")
    budget = budget_tokens_of(window, resolved.policy, ReservedOutput(request.max_output_tokens))
    factor = Calibration().factor(model)
    target_tokens = target_tokens_of(to_local(budget, factor), resolved.policy)
    target = "what costs least" if target_tokens is None else to_provider(target_tokens, factor)
    print(f"window: {window.tokens} tokens ({window.source}), budget {budget}, compacted down to {target}, factor {factor}")


def _print_summary(policy: Policy, sent: Request, decision: Compressed | Rescued | GaveUp) -> None:
    """Print where a summary would stand that a model has written; none is written here."""
    if policy.summary is None:
        return
    place = next((i for i, m in enumerate(sent.conversation().messages) if m.role != "system"), 0)
    if not applies_to(policy):
        where = "none with `compaction: gentle` or `max_turns`"
    elif all(step.name != oldest_turns.STEP.name for step in decision.steps):
        where = "no place: no exchange gives way"
    else:
        where = f"stands in message {place}, for the exchanges that gave way, instead of what is extracted from them"
    print(f"summary by {policy.summary.model}, once written: {where}")


def _deployment(config: dict[str, Any], group: str) -> tuple[str, dict[str, Any]]:
    for model in config.get("model_list") or []:
        if model.get("model_name") == group:
            return str((model.get("litellm_params") or {}).get("model") or group), model.get("model_info") or {}
    return group, {}


def _format(fields: dict[str, Any]) -> Any:
    if "contents" in fields:
        return "gemini"
    if "input" in fields and "messages" not in fields:
        return "openai-responses"
    blocks = [b for m in fields.get("messages") or [] if isinstance(m.get("content"), list) for b in m["content"]]
    kinds = {str(b.get("type")) for b in blocks if isinstance(b, dict)}
    anthropic = "system" in fields or bool(kinds & {"tool_use", "tool_result", "thinking"})
    return "anthropic" if anthropic else "openai-chat"
