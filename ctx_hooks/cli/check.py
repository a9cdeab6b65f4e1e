"""`ctx-hooks check FILE`: the mistakes of a proxy configuration, or the policies that it resolves to."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
from pydantic import ValidationError

from ctx_hooks.cli.files import read_config
from ctx_hooks.policy.caller import Caller, as_text
from ctx_hooks.policy.renamed import old_names
from ctx_hooks.policy.resolve import Policies, Resolved, mistakes
from ctx_hooks.policy.settings import Settings


@click.command()
@click.argument("config", type=click.Path(path_type=Path))
def command(config: Path) -> int:
    """Find the mistakes of a proxy configuration, or print its policies."""
    return run(config)


def run(path: Path) -> int:
    """Print deprecated names and every mistake, or else the resolved policy of each model and team; return 1 or 0."""
    config = read_config(path)
    settings, wrong = settings_of(config)
    wrong += _mistakes_of_models(config, Policies(settings))
    for line in wrong:
        print(line)
    for line in _old_names(config, settings):
        print(line)
    if wrong:
        print(f"{len(wrong)} mistakes")
        return 1
    print(table(config, settings))
    return 0


def settings_of(config: Mapping[str, Any]) -> tuple[Settings, list[str]]:
    """Return the settings of a proxy configuration and their mistakes."""
    section = config.get("callback_settings") if isinstance(config, Mapping) else None
    raw = section.get("ctx_hooks") if isinstance(section, Mapping) else None
    try:
        settings = Settings.model_validate(raw or {})
    except ValidationError as error:
        return Settings(), mistakes(error, "callback_settings.ctx_hooks", Settings)
    return settings, [f"callback_settings.ctx_hooks.{line}" for line in Policies(settings).mistakes()]


def table(config: Mapping[str, Any], settings: Settings) -> str:
    """Return the policy of each model group, and of each team on it: the fields that are set, and by which scope."""
    policies = Policies(settings)
    lines = []
    for model in models_of(config):
        info = model.get("model_info") or {}
        group = str(model.get("model_name") or "")
        alone = Caller(group=group, deployment=as_text(info.get("ctx_hooks")))
        lines.append(_row(group, policies.resolve(alone)))
        for team in settings.teams:
            caller = Caller(group=group, deployment=alone.deployment, team_names=(team,))
            lines.append(_row(f"{group}, team {team}", policies.resolve(caller)))
    return "\n".join(lines)


def _row(name: str, resolved: Resolved) -> str:
    fields = [f"{n}={getattr(resolved.policy, n)!r} ({origin})" for n, origin in sorted(resolved.origins.items())]
    return f"{name}: {', '.join(fields) or 'all defaults'}"


def models_of(config: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the entries of a proxy configuration's list of models."""
    listed = config.get("model_list") if isinstance(config, Mapping) else None
    return [m for m in listed if isinstance(m, Mapping)] if isinstance(listed, list) else []


def _old_names(config: Mapping[str, Any], settings: Settings) -> list[str]:
    """Return a line for every deprecated name in the settings and in the deployments' `model_info`."""
    lines = [f"callback_settings.ctx_hooks.{line}" for line in Policies(settings).old_names()]
    for i, model in enumerate(models_of(config)):
        info = model.get("model_info")
        scope = info.get("ctx_hooks") if isinstance(info, Mapping) else None
        lines += old_names(f"model_list.{i}.model_info.ctx_hooks", scope)
    return lines


def _mistakes_of_models(config: Mapping[str, Any], policies: Policies) -> list[str]:
    lines = []
    for i, model in enumerate(models_of(config)):
        info = model.get("model_info")
        scope = info.get("ctx_hooks") if isinstance(info, Mapping) else None
        if scope:
            ignored = policies.resolve(Caller(deployment=as_text(scope))).ignored
            lines += [f"model_list.{i}.{line}" for line in ignored if line.startswith("model_info")]
    return lines
