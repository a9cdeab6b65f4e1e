"""Print a decision: first the figures and the action, then every message like a diff."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import groupby
from typing import Any

from rich.console import Console

from ctx_hooks.cli.check import DEFAULTS, SOURCES
from ctx_hooks.cli.explain.decided import Decided, decided
from ctx_hooks.cli.explain.messages import Became, Changed, changed, lines_of
from ctx_hooks.cli.rendering import all_steps
from ctx_hooks.cli.terminal import as_json, console, counted, print_json, print_text, setting, table
from ctx_hooks.compaction.history import message_stats, newest_turns
from ctx_hooks.compaction.steps import oldest_turns
from ctx_hooks.engine.decision import GaveUp, LeftToFallback, NotRetried, Untouched, outcome_of
from ctx_hooks.errors import MalformedConversationError
from ctx_hooks.telemetry.events import UNCHANGED
from ctx_hooks.tokens.budget import replaced_reserve
from ctx_hooks.tokens.counter import Counter, vocabulary_of
from ctx_hooks.tokens.units import LocalTokens, to_provider

SIGNS: Mapping[Became, tuple[str, str]] = {
    "kept": (" ", "dim"),
    "removed": ("-", "red"),
    "changed": ("~", "yellow"),
    "added": ("+", "green"),
}
"""For an exchange, the last one of these is reported."""


def run(*, sent: bool, show: bool, **asked: Any) -> None:
    """Print the decision about a request; the arguments are the form of the output, and those of `decided`."""
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
    """Return the decision without its messages as a JSON document; as for `mode: enforce`, whatever the mode is."""
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
        "usage_percent": None if context is None else round(100 * context / window.tokens, 1),
        "triggers": context is not None and context > budget,
        "remaining_tokens": None if context is None else budget - context,
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
        "fields": _fields(found),
        "steps": [asdict(step) for step in all_steps(steps, saved)],
        "policy": {n: {"value": v, "set_by": origins.get(n, "default")} for n, v in values.items()},
        "ignored": list(found.resolved.ignored),
    }


def _fields(found: Decided) -> dict[str, dict[str, Any]]:
    """Return each changed figure among the fields, such as `max_tokens`, with its received and its sent value."""
    came, sent = _flat(found.request.fields), _flat(found.decision.changes)
    return {n: {"received": came.get(n), "sent": v} for n, v in sent.items() if isinstance(v, int) and v != came.get(n)}


def _flat(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return fields, with the fields of Google's `generationConfig` beside them."""
    inner = [(f"{n}.{k}", v) for n, found in fields.items() if isinstance(found, Mapping) for k, v in found.items()]
    return {**fields, **dict(inner)}


def _print_decided(out: Console, found: Decided, messages: Sequence[Changed]) -> None:
    """Print the figures, the decision, its steps and policy, and what became of each message."""
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
        out.print()
        out.print(shown)
    _print_messages(out, messages)
    out.print("Tokens are estimates of what the provider counts. - removed, ~ changed, + added", style="dim")


def _figures(values: Mapping[str, Any]) -> Iterator[str]:
    """Yield the size of the request beside the window and the budget."""
    context, rest = values["context_tokens"], values["remaining_tokens"]
    replaced, source = values["replaced_reserve"], values["window_source"]
    yield f"window     {values['window_tokens']:,} tokens (stated by {SOURCES.get(source, source)})"
    yield f"reserve    {values['reserve_tokens']:,} tokens{f' ({replaced})' if replaced else ''}"
    yield f"budget     {values['budget_tokens']:,} tokens: the threshold of compression"
    if context is None:
        yield "context    not counted: the messages cannot be read"
        return
    yield f"context    {context:,} tokens (counted), {values['usage_percent']:g} % of the window"
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
    done += [f"{name} {change['received']} -> {change['sent']}" for name, change in values["fields"].items()]
    done += [f"still above its budget: {reason}"] * isinstance(found.decision, GaveUp)
    yield f"{outcome}: {'; '.join(done)}."


def _policy(values: Mapping[str, Any]) -> Iterator[str]:
    """Yield each setting that differs from its default, and the ignored ones."""
    for name, entry in values["policy"].items():
        if entry["value"] != DEFAULTS[name]:
            when = name == "tool_results" and entry["value"]["apply"] != "always"
            note = "; applies once a request is compressed" if when else ""
            yield f"{name}: {setting(entry['value'], DEFAULTS[name])} ({entry['set_by']}){note}"
    for line in values["ignored"]:
        yield f"ignored: {line}"


def messages_of(found: Decided) -> list[Changed]:
    """Return what became of each message; nothing if a request contains no conversation."""
    counter = Counter(vocabulary_of(found.target.model))
    try:
        received, sent = found.request.messages.conversation(), found.sent.messages.conversation()
        index = message_stats(found.request.messages, counter)
    except MalformedConversationError:
        return []
    most = found.resolved.policy.max_turns
    newest = set(newest_turns(index, most))
    removed = "removed: a message rule of the provider would be broken"
    if any(step.name == oldest_turns.STEP.name for step in found.decision.steps):
        removed = "removed: low-relevance older exchange"

    def why(i: int) -> str:
        return removed if i in newest else f"older than the newest {most} turns (max_turns)"

    fmt = found.request.format
    return changed(received, sent, lambda m: to_provider(counter.message(m, fmt), found.factor), why)


def _print_messages(out: Console, messages: Sequence[Changed]) -> None:
    """Print one line for consecutive messages with the same outcome and reason."""
    shown = table("", "message", "who", "before", "after", "why", right=(3, 4), folded=(5,))
    for (became, why), exchanges in groupby(_exchanges(messages), key=_outcome):
        alike = [message for exchange in exchanges for message in exchange]
        sign, style = SIGNS[became]
        came, sent = sum(m.tokens_before for m in alike), sum(m.tokens_after for m in alike)
        numbers = [str(m.received) for m in alike if m.received is not None] or ["new"]
        who = {m.who for m in alike if m.kind == "result"} or {m.who for m in alike}
        whose = who.pop() if len(who) == 1 else f"{len(alike)} messages"
        shown.add_row(
            sign, "-".join(dict.fromkeys((numbers[0], numbers[-1]))), whose, f"{came:,}", f"{sent:,}", why, style=style
        )
    out.print()
    out.print(shown)


def _exchanges(messages: Sequence[Changed]) -> Iterator[list[Changed]]:
    """Yield each message with calls and their results together, and any other by itself."""
    exchange: list[Changed] = []
    for message in messages:
        if exchange and (message.kind != "result" or exchange[0].kind == "message"):
            yield exchange
            exchange = []
        exchange.append(message)
    if exchange:
        yield exchange


def _outcome(exchange: Sequence[Changed]) -> tuple[Became, str]:
    most = max(exchange, key=lambda message: list(SIGNS).index(message.became))
    return most.became, most.why
