"""One request by its events, as the report and the live page show it. All figures are provider tokens."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from ctx_hooks.cli.terminal import counted
from ctx_hooks.telemetry.events import (
    AnswerEvent,
    CallNames,
    DecisionEvent,
    FailureEvent,
    ItemEvent,
    OverflowEvent,
    RequestEvent,
    RetrievalEvent,
    SummaryEvent,
)
from ctx_hooks.tokens.usage import Billed

MARKS = {
    "compaction": "newly compacted",
    "rescue": "refused and retried",
    "failure": "failed",
    "reread": "read again",
    "retrieval": "retrieved",
    "summary": "summary written",
}
"""What happens to a request, in the words of the legend."""


class Happened(NamedTuple):
    """One thing that happened to a request: a key of MARKS or "", and its description."""

    mark: str
    words: str


@dataclass(slots=True)
class Turn:
    """One request; `compacts` is whether it begins with a new compaction."""

    events: list[RequestEvent] = field(default_factory=list)
    compacts: bool = False

    @property
    def call(self) -> CallNames:
        """The names of its owner and target."""
        return self.events[0].call

    @property
    def at_seconds(self) -> float:
        """When its first event was, in epoch seconds."""
        return min(event.time_seconds for event in self.events)

    @property
    def decided(self) -> DecisionEvent | None:
        """The decision for its last attempt."""
        found = [event for event in self.events if isinstance(event, DecisionEvent)]
        return max(found, key=lambda event: event.attempt, default=None)

    @property
    def end(self) -> AnswerEvent | FailureEvent | None:
        """Its answer or failure, None while it runs."""
        return next((event for event in self.events[::-1] if isinstance(event, (AnswerEvent, FailureEvent))), None)

    @property
    def outcome(self) -> str:
        """What it ended in."""
        return self.end.decision if self.end else "running"

    @property
    def mode(self) -> str:
        """The mode of its policy."""
        return next((event.mode for event in (self.decided, self.end) if event), "")

    @property
    def is_observed(self) -> bool:
        """Whether it was sent unchanged, whatever was decided."""
        return self.mode == "observe"

    @property
    def billed(self) -> Billed | None:
        """The usage of its answer."""
        bills = [event.billed for event in self.events if isinstance(event, AnswerEvent) and event.billed]
        return bills[-1] if bills else None

    @property
    def received_tokens(self) -> int | None:
        """What the client sent; as billed if that is known, else estimated."""
        if self.billed is not None and (self.is_observed or not self.is_shorter):
            return self.billed.input_tokens
        return self.decided.provider_tokens_before if self.decided else None

    @property
    def sent_tokens(self) -> int | None:
        """What was sent, or would have been."""
        if self.billed is not None and not (self.is_observed and self.is_shorter):
            return self.billed.input_tokens
        return self.decided.provider_tokens_after if self.decided else None

    @property
    def cached_tokens(self) -> int | None:
        """What the prompt cache served."""
        return self.billed.cached_tokens if self.billed else None

    @property
    def window_tokens(self) -> int | None:
        """The window that the request was fitted to."""
        return self.decided.window_tokens if self.decided else None

    @property
    def is_shorter(self) -> bool:
        """Whether the sent request is, or would have been, smaller than the received one."""
        return self.decided is not None and removed_tokens(self.decided) > 0

    def happened(self) -> Iterator[Happened]:
        """Yield what happened, in order."""
        decided, refused = self.decided, sum(isinstance(event, OverflowEvent) for event in self.events)
        failed = isinstance(self.end, FailureEvent)
        if decided is not None and (self.compacts or (refused and self.is_shorter)):
            for step in decided.steps:
                size = f"{step.tokens_saved:,.0f} tokens of {counted(step.messages_touched, 'message')}"
                yield Happened("compaction" * self.compacts, f"{step.name.replace('_', ' ')}: {size}")
        if decided is not None and decided.decision == "output_lowered":
            yield Happened("", f"requested output lowered to {decided.sent_output_tokens or 0:,} tokens")
        if refused:
            answered = "" if failed or self.end is None else ", then answered"
            is_retried = not failed and not self.is_observed
            yield Happened("rescue" * is_retried, f"{counted(refused, 'attempt')} refused{answered}")
        if failed:
            yield Happened(
                "failure", f"refused in the end: {decided.reason}".rstrip(": ") if decided else "refused in the end"
            )
        rereads: Counter[str] = Counter()
        for event in self.events:
            if isinstance(event, AnswerEvent):
                rereads.update(event.rereads)
        for tool, times in rereads.items():
            yield Happened("reread", f"read again: {tool}{f', {times} times' * (times > 1)}")
        yield from sorted(filter(None, map(_of_addon, self.events)))


def _of_addon(event: RequestEvent) -> Happened | None:
    if isinstance(event, SummaryEvent):
        words = f"summary of {counted(event.messages, 'message')} by {event.summary_model}: {event.outcome}"
        return Happened("summary" if event.outcome == "accepted" else "", words)
    if isinstance(event, RetrievalEvent):
        where = "not available" if event.source == "none" else f"from the {event.source}"
        return Happened("retrieval", f"{event.returned_chars:,} characters retrieved, {where}")
    if isinstance(event, ItemEvent) and event.outcome != "opened":
        return Happened("", f"compaction item {event.outcome}")
    return None


def removed_tokens(event: DecisionEvent) -> int:
    """Return by how many tokens the sent request is smaller than the received one; 0 if not counted."""
    if event.provider_tokens_before is None or event.provider_tokens_after is None:
        return 0
    return max(0, event.provider_tokens_before - event.provider_tokens_after)
