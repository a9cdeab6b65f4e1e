"""`ctx-hooks tail FOLDER`: a coloured line for each decision, refusal, failure, fault and learned limit."""

import time
from collections.abc import Sequence
from typing import Any

import click

from ctx_hooks.cli.report.watching import POLL_SECONDS, Watched
from ctx_hooks.cli.terminal import printable

LINES = {"decision": "cyan", "overflow": "yellow", "failure": "red", "fault": "red", "limit_learned": "magenta"}
COLOURS = {"fits": "green", "failed": "red", "failed_open": "red", "fallback": "blue"}


def run(*, events: Sequence[str], follow: bool) -> None:
    """Print a coloured line for each decision, and go on with `follow`."""
    watched = Watched(events)
    while True:
        for event in watched.new_events():
            if event.name in LINES:
                click.echo(line_of(event))
        if not follow:
            return
        time.sleep(POLL_SECONDS)


def line_of(event: Any) -> str:
    """Return a line for an event: its time, its outcome, sizes in tokens, who asked, and why."""
    seconds, call = getattr(event, "time_seconds", None), getattr(event, "call", None)
    at = time.strftime("%H:%M:%S", time.localtime(seconds)) if seconds else "--:--:--"
    outcome, sizes = event.name, ""
    if event.name == "decision":
        outcome = event.decision
        counts = (event.provider_tokens_before, event.provider_tokens_after)
        sizes = " → ".join(f"{tokens:>9,}" for tokens in counts if tokens is not None)
    elif event.name == "limit_learned":
        sizes = f"{event.limit_tokens:>9,}"
    who = f"{call.model_group} {call.team_alias or call.team_id}" if call else getattr(event, "deployment", "")
    why = next(filter(None, (getattr(event, name, "") for name in ("reason", "consequence", "kind"))), "")
    mode = " (observed)" if getattr(event, "mode", "") == "observe" else ""
    word = click.style(f"{outcome:<14}", fg=COLOURS.get(outcome, LINES[event.name]))
    return f"{at}  {word} {sizes:<21}  {printable(who)}  {printable(why)}{mode}".rstrip()
