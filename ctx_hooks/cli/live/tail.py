"""`ctx-hooks tail FOLDER`: a coloured line for each decision, refusal, failure, fault and learned limit."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click

from ctx_hooks.cli.files import files_of
from ctx_hooks.cli.live.watching import POLL_SECONDS, Watched
from ctx_hooks.cli.terminal import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

LINES = {"decision": "cyan", "overflow": "yellow", "failure": "red", "fault": "red", "limit_learned": "magenta"}
COLOURS = {"fits": "green", "failed": "red", "failed_open": "red", "fallback": "blue"}


def run(*, events: Sequence[str], follow: bool) -> None:
    """Print a coloured line for each decision, and go on with `follow`."""
    watched = Watched(lambda: files_of(events, "events.*.jsonl*"))
    while True:
        for event in watched.new_events():
            if event.name in LINES:
                click.echo(line_of(event))
        if not follow:
            return
        time.sleep(POLL_SECONDS)


def line_of(event: Any) -> str:
    """Return a line for an event: its time, its outcome, sizes in tokens, who asked, and why."""
    call = getattr(event, "call", None)
    seconds = getattr(event, "time_seconds", None)
    at = time.strftime("%H:%M:%S", time.localtime(seconds)) if seconds else "--:--:--"
    outcome = getattr(event, "decision", event.name) if event.name == "decision" else event.name
    sizes = ""
    if event.name == "decision" and event.provider_tokens_before is not None:
        after = event.provider_tokens_after
        sizes = (
            f"{event.provider_tokens_before:>9,} → {after:>9,}"
            if after is not None
            else f"{event.provider_tokens_before:>9,}"
        )
    who = " ".join(filter(None, (call.model_group, call.team_alias or call.team_id))) if call else ""
    why = getattr(event, "reason", "") or getattr(event, "consequence", "") or getattr(event, "kind", "")
    mode = " (observed)" if getattr(event, "mode", "") == "observe" else ""
    word = click.style(f"{outcome:<14}", fg=COLOURS.get(outcome, LINES[event.name]))
    return f"{at}  {word} {sizes:<21}  {printable(who)}  {printable(why)}{mode}".rstrip()
