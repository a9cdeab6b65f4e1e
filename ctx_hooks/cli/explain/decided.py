"""The plugin's decision about a request, with the policy and the window that it uses."""

import asyncio
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from operator import attrgetter
from pathlib import Path

import click

from ctx_hooks.cli.configuration import Listed, configuration_without_mistakes
from ctx_hooks.cli.files import format_of, read_json
from ctx_hooks.cli.spelling import suggestion
from ctx_hooks.cli.terminal import CommandError
from ctx_hooks.engine.decision import Decision, NotRetried
from ctx_hooks.errors import MalformedConversationError
from ctx_hooks.learning.attempts import Limits, limits_of
from ctx_hooks.learning.observations import DeploymentStats
from ctx_hooks.litellm_compat.call import Deployment
from ctx_hooks.policy.resolve import Resolved
from ctx_hooks.request.request import Request, counted_history
from ctx_hooks.request.target import Target, of_deployment
from ctx_hooks.serving.request_flow import RequestFlow
from ctx_hooks.tokens.budget import budget_tokens_of
from ctx_hooks.tokens.counter import Counter, vocabulary_of
from ctx_hooks.tokens.units import to_provider


@dataclass(frozen=True, slots=True)
class Decided:
    """What would be done with a request; sizes are provider tokens, and `factor` of them are one local token.

    The first of a group's `deployments` is used. `context_tokens` is None if the messages cannot be read.
    """

    group: str
    deployments: int
    request: Request
    target: Target
    resolved: Resolved
    decision: Decision
    sent: Request
    factor: float
    context_tokens: int | None
    budget_tokens: int


def decided(*, request: Path, model: str | None, config: Path | None, team: str | None, key: str | None) -> Decided:
    """Return the decision about the request of a file; the arguments are the options of the command.

    Raises CommandError for an unreadable file, no request, a wrong configuration, or an unknown model, team or key.
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
    names = {"team_names": tuple(filter(None, [team])), "key_names": tuple(filter(None, [key]))}
    resolved = proxy.resolved(listed[0] if listed else Listed(group, deployment, {}), **names)
    received = Request(format_of(fields), fields)
    target = of_deployment(deployment, resolved, "explain")
    options = []
    for name in proxy.fallbacks_of(group, fields) if resolved.policy.fallbacks == "first" else ():
        entries = proxy.group_of(name) or [Listed(name, Deployment(name, {}), {})]
        reached = (of_deployment(e.deployment, proxy.resolved(e, **names), "explain", group=name) for e in entries)
        options.append(max(reached, key=attrgetter("window.tokens")))
    decision = asyncio.run(RequestFlow().deciding.decide_before(received, _without_stores(target), options))
    own = [of_deployment(e.deployment, proxy.resolved(e, **names), "explain") for e in listed] or [target]
    widest = max(own, key=attrgetter("window.tokens"))
    if widest.window.tokens < (least := widest.policy.block_below_tokens or 0):
        decision = NotRetried(reason=f"answered 400, since its window is below `block_below_tokens` ({least:,})")
    sent = Request(received.format, {**fields, **decision.changes})
    limits = limits_of(target, DeploymentStats(), time.time())
    context, budget = _sizes(received, target, limits)
    if decision.figures is not None:
        budget = decision.figures.budget_tokens
    return Decided(group, len(listed), received, target, resolved, decision, sent, limits.factor, context, budget)


def _sizes(request: Request, target: Target, limits: Limits) -> tuple[int | None, int]:
    """Return the size of a request, None if its messages cannot be read, and its budget; in provider tokens."""
    try:
        history = counted_history(request, Counter(vocabulary_of(target.model), other_weight=limits.other_weight))
    except MalformedConversationError:
        return None, budget_tokens_of(target.window, target.policy)
    budget = limits.budget_tokens(target.policy, request, history)
    return to_provider(history.tokens, limits.factor), to_provider(budget, limits.factor)


def _unknown(kind: str, name: str, known: Iterable[str]) -> CommandError:
    return CommandError(f"The configuration has nothing for the {kind} {name!r:.60}{suggestion(name, known)}")


def _without_stores(target: Target) -> Target:
    """Return the target with an archive of this process instead of any other: equal placeholders, and nothing is kept."""
    archive = target.policy.archive
    if archive is None:
        return target
    own = archive.model_copy(update={"backend": "disk", "path": None})
    return replace(target, policy=target.policy.model_copy(update={"archive": own}))
