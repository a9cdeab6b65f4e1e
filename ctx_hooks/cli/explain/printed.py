"""Print a decision: first the action and its figures, then every message like a diff."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import groupby
from typing import TYPE_CHECKING, Any

from ctx_hooks.cli.check import DEFAULTS
from ctx_hooks.cli.explain.decided import Decided, decided
from ctx_hooks.cli.explain.messages import Became, Changed, changed
from ctx_hooks.cli.rendering import render
from ctx_hooks.cli.terminal import as_json, console, counted, print_json, print_text, setting, table
from ctx_hooks.compaction.message_index import message_stats, newest_turns
from ctx_hooks.compaction.steps import oldest_turns
from ctx_hooks.engine.decision import GaveUp, LeftToFallback, NotRetried, Untouched, outcome_of
from ctx_hooks.errors import MalformedConversationError
from ctx_hooks.tokens.budget import budget_tokens_of, replaced_reserve
from ctx_hooks.tokens.counter import Counter, vocabulary_of
from ctx_hooks.tokens.units import to_provider

if TYPE_CHECKING:
    from rich.console import Console


SIGNS: dict[Became, tuple[str, str]] = {
    "kept": (" ", "dim"),
    "changed": ("~", "yellow"),
    "removed": ("-", "red"),
    "added": ("+", "green"),
}
RANKS: tuple[Became, ...] = ("kept", "removed", "changed", "added")
"""For an exchange, the last one of these is reported."""
UNDECIDED = (Untouched, LeftToFallback, NotRetried)
REMOVED_BY_RULE = "a message rule of the provider would be broken"
GAVE_WAY = "one of the least useful older exchanges: it gave way"


def run(*, sent: bool, **asked: Any) -> None:
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


def document(found: Decided) -> dict[str, Any]:
    """Return the decision without its messages as a JSON document; as for `mode: enforce`, whatever the mode is."""
    figures, policy, window = found.decision.figures, found.resolved.policy, found.target.window
    budget = budget_tokens_of(window, policy, 0.0, found.request.least_output_tokens, found.request.max_output_tokens or 0)
    origins, values = found.resolved.origins, policy.model_dump(mode="json")
    return {
        "model_group": found.group,
        "model": found.target.model,
        "format": found.request.format,
        "mode": policy.mode,
        "enforced_share": found.resolved.enforced_share,
        "decision": outcome_of(found.decision, 0, found.request.wire),
        "reason": found.decision.reason,
        "window_tokens": window.tokens,
        "window_source": window.source,
        "budget_tokens": budget,
        "replaced_reserve": replaced_reserve(window, policy),
        "factor": found.factor,
        "tokens_before": figures.tokens_before if figures else None,
        "tokens_after": figures.tokens_after if figures else None,
        "fields": _fields(found),
        "steps": [asdict(step) for step in found.decision.steps],
        "policy": {n: {"value": v, "set_by": origins.get(n, "default")} for n, v in values.items()},
        "ignored": list(found.resolved.ignored),
    }


def _print_decided(out: Console, found: Decided, messages: Sequence[Changed]) -> None:
    """Print the decision, its figures, steps and policy, and what became of each message."""
    asked = f"{found.group} ({found.target.model})" if found.group != found.target.model else found.group
    out.print(
        f"{asked}: {found.request.format}, {counted(sum(m.received is not None for m in messages), 'message')}", style="bold"
    )
    told = document(found)
    text = render(
        "explain.txt",
        found=found,
        told=told,
        is_decided=not isinstance(found.decision, UNDECIDED),
        gave_up=found.decision.reason if isinstance(found.decision, GaveUp) else "",
        policy={
            n: {**of, "value": setting(of["value"], DEFAULTS[n])}
            for n, of in told["policy"].items()
            if of["value"] != DEFAULTS[n]
        },
    )
    out.print(text.rstrip("\n"))
    if isinstance(found.decision, UNDECIDED):
        return
    if found.decision.steps:
        shown = table("step", "tokens", "messages", "why", right=(1, 2), folded=(3,))
        for step in found.decision.steps:
            saved = int(step.tokens_saved * found.factor)
            shown.add_row(step.name, f"{-saved:,}", f"{step.messages_touched:,}", step.why)
        out.print()
        out.print(shown)
        out.print("These are the steps of the newest compaction; below are all changes.", style="dim")
    _print_messages(out, messages)
    out.print("Tokens are estimates of what the provider counts. - removed, ~ changed, + added", style="dim")


def messages_of(found: Decided) -> list[Changed]:
    """Return what became of each message; nothing if a request contains no conversation."""
    counter = Counter(vocabulary_of(found.target.model))
    try:
        received, sent = found.request.messages.conversation(), found.sent.messages.conversation()
        index = message_stats(found.request.messages, counter)
    except MalformedConversationError:
        return []
    newest = set(newest_turns(index, found.resolved.policy.max_turns))
    gave_way = any(step.name == oldest_turns.STEP.name for step in found.decision.steps)

    def why(i: int) -> str:
        if i not in newest:
            return f"older than the newest {found.resolved.policy.max_turns} turns (max_turns)"
        return GAVE_WAY if gave_way else REMOVED_BY_RULE

    fmt = found.request.format
    return changed(received, sent, lambda m: to_provider(counter.message(m, fmt), found.factor), why)


def _fields(found: Decided) -> dict[str, dict[str, Any]]:
    """Return each changed figure among the fields, such as `max_tokens`, with its received and its sent value."""
    came, sent = _flat(found.request.fields), _flat(found.decision.changes)
    return {n: {"received": came.get(n), "sent": v} for n, v in sent.items() if isinstance(v, int) and v != came.get(n)}


def _flat(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return fields, with the fields of Google's `generationConfig` beside them."""
    inner = [(f"{n}.{k}", v) for n, found in fields.items() if isinstance(found, Mapping) for k, v in found.items()]
    return {**fields, **dict(inner)}


def _print_messages(out: Console, messages: Sequence[Changed]) -> None:
    """Print one line for consecutive messages with the same outcome and reason."""
    shown = table("", "message", "who", "before", "after", "why", right=(3, 4), folded=(5,))
    for (became, why), exchanges in groupby(_exchanges(messages), key=_became):
        alike = [message for exchange in exchanges for message in exchange]
        sign, style = SIGNS[became]
        came, sent = sum(m.tokens_before for m in alike), sum(m.tokens_after for m in alike)
        shown.add_row(sign, _numbers(alike), _whose(alike), f"{came:,}", f"{sent:,}", why, style=style)
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


def _became(exchange: Sequence[Changed]) -> tuple[Became, str]:
    told = max(exchange, key=lambda message: RANKS.index(message.became))
    return told.became, told.why


def _whose(messages: Sequence[Changed]) -> str:
    """Return whose messages these are, by their results if they have any; the number if they are of several."""
    names = dict.fromkeys(m.who for m in messages if m.kind == "result") or dict.fromkeys(m.who for m in messages)
    return next(iter(names)) if len(names) == 1 else f"{len(messages)} messages"


def _numbers(messages: Sequence[Changed]) -> str:
    known = [m.received for m in messages if m.received is not None]
    if not known:
        return "new"
    return str(known[0]) if len(known) == 1 else f"{known[0]}-{known[-1]}"
