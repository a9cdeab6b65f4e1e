"""What the event file says of one request: each attempt, refusal and answer. The file has figures and names, never text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import datetime, timezone
from pathlib import Path

from ctx_hooks.cli.configuration import read_configuration
from ctx_hooks.cli.report import files_of, read_events
from ctx_hooks.cli.terminal import CommandError, console, print_json, working
from ctx_hooks.telemetry.call import Call
from ctx_hooks.telemetry.event_json import Recorded
from ctx_hooks.telemetry.events import AnswerEvent, DecisionEvent, FailureEvent, OverflowEvent
from ctx_hooks.telemetry.outcome import Outcome

NO_FILE = (
    "No event file is known. The proxy writes one with `events: {path: FOLDER}` under callback_settings.ctx_hooks: name the "
    "folder with --events, or the configuration with --config."
)
DONE: dict[Outcome, str] = {
    "fits": "sent unchanged",
    "output_lowered": "sent with a lower requested output",
    "compressed": "compressed before it was sent",
    "retried": "made smaller after the refusal, and sent again",
    "failed": "not sent again",
}


def explain_last(config: Path | None, events: str | None, wanted: str | None, *, as_json: bool) -> None:
    """Print what was done with the last request, or with the one of an id.

    Raises:
        CommandError: no event file is known, or it does not have the request.
    """
    paths = sorted(_files(config, events))
    with working("Reading events"):
        request_id = _id_of(paths, wanted)
        found = [event for event in read_events(paths) if event is not None and _request_id(event) == request_id]
    if as_json:
        print_json([_plain(event) for event in found])
        return
    out = console()
    for line in _lines(found):
        out.print(line)


def _files(config: Path | None, events: str | None) -> set[Path]:
    folder = events
    if folder is None and config is not None:
        settings = read_configuration(config).settings
        folder = settings.events.path if settings.events else None
    if folder is None:
        raise CommandError(NO_FILE)
    found = files_of(folder)
    if not found:
        raise CommandError(f"{folder}: there is no event file")
    return found


def _id_of(paths: Sequence[Path], wanted: str | None) -> str:
    """Return the id that a process has given the request."""
    newest: tuple[float, str] | None = None
    for event in read_events(paths):
        if not isinstance(event, (DecisionEvent, AnswerEvent, OverflowEvent)):
            continue
        if wanted and wanted not in (event.call.call_id, event.call.request_id):
            continue
        if newest is None or event.time_seconds >= newest[0]:
            newest = (event.time_seconds, event.call.request_id)
    if newest is None:
        of_id = f" of {wanted}" if wanted else ""
        raise CommandError(f"No event{of_id} is in {', '.join(str(path) for path in paths)}")
    return newest[1]


def _request_id(event: Recorded) -> str:
    call = getattr(event, "call", None)
    return call.request_id if isinstance(call, Call) else str(getattr(event, "request_id", ""))


def _plain(event: Recorded) -> dict[str, object]:
    fields = asdict(event)
    billed = getattr(event, "billed", None)
    return {**fields, "billed": billed._asdict()} if billed is not None else fields


def _lines(events: Sequence[Recorded]) -> Iterator[str]:
    """Yield the story of a request."""
    first = next(event for event in events if isinstance(event, (DecisionEvent, AnswerEvent, OverflowEvent)))
    yield from _heading(first.call, first.time_seconds)
    for event in events:
        if isinstance(event, DecisionEvent):
            yield from _decision(event)
        elif isinstance(event, OverflowEvent):
            limit = f"; its limit is {event.limit_tokens:,}" if event.limit_tokens is not None else ""
            counted = f"{event.refused_tokens:,} tokens" if event.refused_tokens is not None else "it"
            yield f"attempt {event.attempt + 1}: the provider refused {counted} as too long ({event.kind}){limit}"
        elif isinstance(event, AnswerEvent):
            yield from _answer(event)
        elif isinstance(event, FailureEvent):
            yield f"refused in the end, after {event.attempts} attempt{'s' * (event.attempts != 1)}"
        else:
            yield event.name.replace("_", " ")


def _heading(call: Call, at: float) -> Iterator[str]:
    when = datetime.fromtimestamp(at, timezone.utc)
    yield f"request {call.call_id or call.request_id}, {when:%Y-%m-%d %H:%M:%S} UTC"
    names = {
        "team": call.team_alias or call.team_id,
        "key": call.key_alias,
        "client": call.client,
    }
    who = "".join(f", {name} {value}" for name, value in names.items() if value)
    yield f"{call.model_group} ({call.model}) by {call.route}{who}"


def _decision(event: DecisionEvent) -> Iterator[str]:
    done = DONE[event.decision]
    would = "observed, it would be " if event.mode == "observe" and event.decision != "fits" else ""
    reason = f": {event.reason}" if event.reason else ""
    yield f"attempt {event.attempt + 1}: {would}{done}{reason}"
    before, after = event.provider_tokens_before, event.provider_tokens_after
    budget = f", the budget {event.budget_tokens:,}" if event.budget_tokens is not None else ""
    if before is not None and after is not None:
        yield f"  {before:,} tokens came, {after:,} were left{budget}"
    yield f"  window {event.window_tokens:,} ({event.window_source}), trigger {event.trigger}"
    for step in event.steps:
        yield f"  {step.name}: {step.tokens_saved:,} tokens less, {step.messages_touched:,} messages"
    if event.policy:
        yield f"  policy: {', '.join(f'{name} ({scope})' for name, scope in sorted(event.policy.items()))}"


def _answer(event: AnswerEvent) -> Iterator[str]:
    billed = event.billed
    usage = f": {billed.input_tokens:,} input tokens billed, {billed.cached_tokens:,} of them cached" if billed else ""
    yield f"answered after {event.attempts} attempt{'s' * (event.attempts != 1)}{usage}"
    if event.beyond_window:
        yield "  as received it exceeds the window: without ctx_hooks it would have had no answer"
    elif event.provider_tokens_saved:
        dollars = f", {event.dollars_saved:+.4f} dollars" if event.dollars_saved is not None else ""
        would = "would have been saved" if event.mode == "observe" else "saved"
        yield f"  {event.provider_tokens_saved:,} input tokens {would}{dollars}"
