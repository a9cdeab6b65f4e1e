"""`ctx-hooks explain`: the plugin's decision about a request, its figures, and what became of each message like a diff."""

import asyncio
import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fnmatch import fnmatchcase
from operator import attrgetter
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from ctx_hooks.attempts.attempt import Limits, limits_of
from ctx_hooks.attempts.observations import DeploymentStats
from ctx_hooks.attempts.request import Request, counted_history
from ctx_hooks.attempts.target import Target, of_deployment
from ctx_hooks.cli.check import DEFAULTS, SOURCES
from ctx_hooks.cli.configuration import Listed, read_configuration, read_text, suggestion
from ctx_hooks.cli.message_changes import MessageChange, changes_of, lines_of, table_of
from ctx_hooks.cli.rendering import all_steps
from ctx_hooks.cli.terminal import CommandError, as_json, console, counted, print_json, print_text, setting, table
from ctx_hooks.compaction.steps import oldest_turns
from ctx_hooks.conversation.model import Message
from ctx_hooks.errors import MalformedConversationError
from ctx_hooks.flow.decision import Decision, GaveUp, LeftToFallback, NotRetried, Untouched, outcome_of
from ctx_hooks.flow.request_flow import RequestFlow
from ctx_hooks.formats import ANTHROPIC, CHAT, GEMINI, RESPONSES, Format
from ctx_hooks.formats.fields import mapping_or_empty
from ctx_hooks.litellm_compat.call import Deployment
from ctx_hooks.policy.resolve import Resolved
from ctx_hooks.telemetry.events import UNCHANGED
from ctx_hooks.tokens.budget import replaced_reserve
from ctx_hooks.tokens.counter import Counter, vocabulary_of
from ctx_hooks.tokens.units import LocalTokens, to_provider

OF_PROCESS = {"backend": "disk", "path": None}
"""The settings of an archive that is this process's own."""


@dataclass(frozen=True, slots=True)
class Decided:
    """What would be done with a request; sizes are provider tokens, and `factor` of them are one local token.

    The first of a group's `deployments` is used.
    """

    group: str
    deployments: int
    request: Request
    target: Target
    resolved: Resolved
    decision: Decision
    sent: Request
    factor: float
    context_tokens: int
    budget_tokens: int


def run(*, sent: bool, show: bool, **asked: Any) -> None:
    """Print the decision about the request that `asked`, the arguments of `decided`, names."""
    found = decided(**asked)
    if sent:
        print_text(json.dumps(found.sent.fields, indent=1, ensure_ascii=False))
        return
    messages = messages_of(found)
    if as_json():
        print_json({**document(found), "messages": [asdict(message) for message in messages]})
        return
    _print_decided(console(), found, messages)
    for message in found.sent.messages.conversation().messages if show else ():
        print_text("\n".join(("", f"[{message.role}]", *lines_of(message))))


def document(found: Decided) -> dict[str, Any]:
    """Return the decision without its messages as a JSON document, as for `mode: enforce`."""
    figures, policy, window = found.decision.figures, found.resolved.policy, found.target.window
    budget, context = found.budget_tokens, found.context_tokens
    origins, values = found.resolved.origins, policy.model_dump(mode="json")
    saved = figures.tokens_before - figures.tokens_after if figures else 0
    steps = [replace(s, tokens_saved=to_provider(LocalTokens(s.tokens_saved), found.factor)) for s in found.decision.steps]
    return {
        "context_tokens": context,
        "window_tokens": window.tokens,
        "window_source": window.source,
        "reserve_tokens": window.tokens - budget,
        "budget_tokens": budget,
        "usage_percent": round(100 * context / window.tokens, 1),
        "triggers": context > budget,
        "remaining_tokens": budget - context,
        "model_group": found.group,
        "model": found.target.model,
        "format": found.request.format,
        "mode": policy.mode,
        "decision": outcome_of(found.decision, 0, found.request.wire),
        "reason": found.decision.reason,
        "replaced_reserve": replaced_reserve(window, policy),
        "factor": found.factor,
        "tokens_before": figures.tokens_before if figures else None,
        "tokens_after": figures.tokens_after if figures else None,
        "requested_output_tokens": found.request.max_output_tokens,
        "sent_output_tokens": found.sent.max_output_tokens,
        "steps": [asdict(step) for step in all_steps(steps, saved)],
        "policy": {n: {"value": v, "set_by": origins.get(n, "default")} for n, v in values.items()},
        "ignored": list(found.resolved.ignored),
    }


def _print_decided(out: Console, found: Decided, messages: Sequence[MessageChange]) -> None:
    values = document(found)
    asked = f"{found.group} ({found.target.model})" if found.group != found.target.model else found.group
    received = counted(sum(message.received is not None for message in messages), "message")
    out.print(f"{asked}: {found.request.format}, {received}", style="bold")
    for line in (*_figures(values), *_decision(found, values), *_policy(values)):
        out.print(line)
    if not found.decision.changes:
        return
    if values["steps"]:
        shown = table("step", "tokens", "messages", "why", right=(1, 2), folded=(3,))
        for step in values["steps"]:
            shown.add_row(step["name"], f"{-step['tokens_saved']:,}", f"{step['messages_touched']:,}", step["why"])
        out.print("", shown, sep="\n")
    out.print("", table_of(messages), sep="\n")
    out.print("Tokens are estimates of what the provider counts. - removed, ~ changed, + added", style="dim")


def _figures(values: Mapping[str, Any]) -> Iterator[str]:
    """Yield the size of the request beside the window and the budget."""
    replaced, source, rest = values["replaced_reserve"], values["window_source"], values["remaining_tokens"]
    yield f"window     {values['window_tokens']:,} tokens (stated by {SOURCES.get(source, source)})"
    yield f"reserve    {values['reserve_tokens']:,} tokens{f' ({replaced})' if replaced else ''}"
    yield f"budget     {values['budget_tokens']:,} tokens: the threshold of compression"
    yield f"context    {values['context_tokens']:,} tokens (counted), {values['usage_percent']:g} % of the window"
    yield f"remaining  {rest:,} tokens: compression {'is' if values['triggers'] else 'is not'} triggered"


def _decision(found: Decided, values: Mapping[str, Any]) -> Iterator[str]:
    """Yield which deployment and mode apply, and what is done."""
    if found.deployments > 1:
        yield f"The first of {found.deployments} deployments of this group."
    if values["mode"] != "enforce":
        yield f"Sent unchanged: mode {values['mode']} ({values['policy']['mode']['set_by']}). With `mode: enforce`:"
    outcome, reason, before = values["decision"], values["reason"], values["tokens_before"]
    if outcome in UNCHANGED or isinstance(found.decision, (Untouched, LeftToFallback, NotRetried)):
        done = ["sent unchanged"] * (outcome in UNCHANGED) + [reason] * (not reason.startswith("fits"))
        yield f"{outcome}: {', '.join(filter(None, done))}."
        return
    done = ["its messages are sent unchanged"]
    if before is not None:
        done = [f"about {before:,} tokens before, {values['tokens_after']:,} after"]
    asked, lowered = values["requested_output_tokens"], values["sent_output_tokens"]
    done += [f"requested output {asked} -> {lowered} tokens"] * (asked != lowered)
    done += [f"still above its budget: {reason}"] * isinstance(found.decision, GaveUp)
    yield f"{outcome}: {'; '.join(done)}."


def _policy(values: Mapping[str, Any]) -> Iterator[str]:
    """Yield each setting that differs from its default, and the ignored ones."""
    for name, entry in values["policy"].items():
        if entry["value"] != DEFAULTS[name]:
            when = name == "tool_results" and entry["value"]["apply"] != "always"
            note = "; applies once a request is compressed" if when else ""
            yield f"{name}: {setting(entry['value'], DEFAULTS[name])} ({entry['set_by']}){note}"
    yield from (f"ignored: {line}" for line in values["ignored"])


def messages_of(found: Decided) -> list[MessageChange]:
    """Return what became of each message."""
    counter = Counter(vocabulary_of(found.target.model))
    removed = "removed: a message rule of the provider would be broken"
    if any(step.name == oldest_turns.STEP.name for step in found.decision.steps):
        removed = "removed: low-relevance older exchange"
    if found.resolved.policy.max_turns:
        removed = f"removed: older than the newest {found.resolved.policy.max_turns} turns, or of low relevance"

    def size(message: Message) -> int:
        return to_provider(counter.message(message, found.request.format), found.factor)

    return changes_of(found.request.messages.conversation(), found.sent.messages.conversation(), size, removed)


def decided(*, request: Path, model: str | None, config: Path | None, team: str | None, key: str | None) -> Decided:
    """Return the decision about the request of a file; the arguments are the options of the command.

    Raises CommandError for an unreadable file, no request, a wrong configuration, or an unknown model, team or key.
    """
    try:
        fields = json.loads(read_text(request))
    except (ValueError, RecursionError) as error:  # ValueError: also a number of too many digits
        raise CommandError(f"{request}: not JSON: {error}") from None
    if not isinstance(fields, dict) or not {"messages", "input", "contents"} & fields.keys():
        raise CommandError(f"{request}: the body of a request is expected, with `messages`, `input` or `contents`")
    proxy = read_configuration(config)
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
    received = Request(_format_of(fields), fields)
    target = of_deployment(deployment, resolved, "explain")
    options = []
    for name in proxy.fallbacks_of(group, fields) if resolved.policy.fallbacks == "first" else ():
        entries = proxy.group_of(name) or [Listed(name, Deployment(name, {}), {})]
        reached = (of_deployment(e.deployment, proxy.resolved(e, **names), "explain", group=name) for e in entries)
        options.append(max(reached, key=attrgetter("window.tokens")))
    archive = target.policy.archive  # one of this process makes the same placeholders, and keeps nothing
    policy = target.policy.model_copy(update={"archive": archive and archive.model_copy(update=OF_PROCESS)})
    decision = asyncio.run(RequestFlow().deciding.decide_before(received, replace(target, policy=policy), options))
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


def _sizes(request: Request, target: Target, limits: Limits) -> tuple[int, int]:
    """Return the size and the budget of a request in provider tokens; raises CommandError if its messages cannot be read."""
    try:
        history = counted_history(request, Counter(vocabulary_of(target.model), other_weight=limits.other_weight))
    except MalformedConversationError as error:
        raise CommandError(f"sent unchanged, since its messages cannot be read: {error}") from None
    budget = limits.budget_tokens(target.policy, request, history)
    return to_provider(history.tokens, limits.factor), to_provider(budget, limits.factor)


def _unknown(kind: str, name: str, known: Iterable[str]) -> CommandError:
    return CommandError(f"The configuration has nothing for the {kind} {name!r:.60}{suggestion(name, known)}")


def _format_of(body: Mapping[str, Any]) -> Format:
    """Return the format of a body; only a system text or the schemas of tools tell Anthropic's from a chat request."""
    if "messages" not in body:
        return GEMINI if "contents" in body else RESPONSES
    tools = body.get("tools")
    has_schemas = isinstance(tools, list) and any("input_schema" in mapping_or_empty(tool) for tool in tools)
    return ANTHROPIC if "system" in body or has_schemas else CHAT
