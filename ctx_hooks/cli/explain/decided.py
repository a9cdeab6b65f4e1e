"""A request as the plugin would decide about it, with the policy and the window that it would be decided by."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path

import click

from ctx_hooks.cli.configuration import Configuration, configuration_without_mistakes
from ctx_hooks.cli.files import format_of, read_json, yaml_of
from ctx_hooks.cli.terminal import CommandError
from ctx_hooks.engine.decision import Decision
from ctx_hooks.learning.calibration import family_factor
from ctx_hooks.litellm_compat import Deployment
from ctx_hooks.policy.caller import Caller, as_text
from ctx_hooks.policy.resolve import Resolved
from ctx_hooks.policy.scopes import suggestion
from ctx_hooks.request.request import Request
from ctx_hooks.request.target import Target, of_deployment
from ctx_hooks.serving.request_flow import RequestFlow

TRIED = "--policy"
"""The scope of a policy that is tried, which stands where that of a key's metadata does: only a lock is above it."""
_KEY = "key"


@dataclass(frozen=True, slots=True)
class Decided:
    """What would be done with a request.

    Attributes:
        group: the model group, or model, that is asked.
        deployments: how many the group has; 0 where no configuration lists it. The first is asked.
        request: as received.
        target: the deployment that is asked, with its window.
        sent: the request as it would be sent.
        factor: provider tokens per local token.
        tried: the policy that is tried, as it was given; "" for none.
    """

    group: str
    deployments: int
    request: Request
    target: Target
    resolved: Resolved
    decision: Decision
    sent: Request
    factor: float
    tried: str = ""


def decided(
    *, request: Path, model: str | None, config: Path | None, team: str | None, key: str | None, policy: str | None
) -> Decided:
    """Return what would be done with the request of a file; the arguments are the options of the command.

    Raises:
        CommandError: a file cannot be read, holds no request, or the configuration is wrong; or it has no such model, team,
            key or policy.
    """
    fields = read_json(request)
    if not isinstance(fields, dict) or not {"messages", "input", "contents"} & fields.keys():
        raise CommandError(f"{request}: the body of a request is expected, with `messages`, `input` or `contents`")
    proxy = configuration_without_mistakes(config)
    group = model or fields.get("model")
    if not isinstance(group, str) or not group:
        raise click.UsageError("The request names no model: say one with --model.")
    listed = proxy.group_of(group)
    if proxy.lists_every_group and not listed:
        raise _unknown("model group", group, [entry.group for entry in proxy.listed])
    for kind, name, scopes in (("team", team, proxy.settings.teams), ("key", key, proxy.settings.keys)):
        if name and not any(fnmatchcase(name, pattern) for pattern in scopes):
            raise _unknown(kind, name, scopes)
    deployment = listed[0].deployment if listed else Deployment(group, {})
    resolved = _resolved(proxy, group, deployment, team, key, policy)
    received = Request(format_of(fields), fields)
    target = of_deployment(deployment, resolved, "explain")
    decision = asyncio.run(RequestFlow().decide(received, _without_stores(target)))
    sent = Request(received.format, {**fields, **decision.changes})
    factor = family_factor(deployment.model)
    return Decided(group, len(listed), received, target, resolved, decision, sent, factor, policy or "")


def _unknown(kind: str, name: str, known: Iterable[str]) -> CommandError:
    return CommandError(f"The configuration has nothing for the {kind} {name!r:.60}{suggestion(name, known)}")


def _resolved(
    config: Configuration, group: str, deployment: Deployment, team: str | None, key: str | None, policy: str | None
) -> Resolved:
    try:
        tried = yaml_of(policy) if policy else None
    except ValueError as error:
        raise CommandError(f"{TRIED}: {error}") from None
    caller = Caller(
        group=group,
        deployment=as_text(deployment.model_info.get("ctx_hooks")),
        team_names=(team,) if team else (),
        key_names=(key,) if key else (),
        key=as_text(tried),
    )
    resolved = config.policies.resolve(caller)
    wrong = [line for line in resolved.ignored if line.startswith((f"{_KEY}.", f"{_KEY}:")) and " is locked by " not in line]
    if wrong:
        raise CommandError("; ".join(f"{TRIED}: {line.removeprefix(_KEY).lstrip('.: ')}" for line in wrong))
    origins = {name: TRIED if origin == _KEY else origin for name, origin in resolved.origins.items()}
    return replace(resolved, origins=origins)


def _without_stores(target: Target) -> Target:
    """Return the target with an archive in memory in the place of any other: placeholders alike, and nothing is stored."""
    archive = target.policy.archive
    if archive is None:
        return target
    in_memory = archive.model_copy(update={"backend": "memory"})
    return replace(target, policy=target.policy.model_copy(update={"archive": in_memory}))
