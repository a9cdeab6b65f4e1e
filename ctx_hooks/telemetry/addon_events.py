"""Events about models' summaries, removed texts, and retrieval calls: never a text, a handle or a query."""

from dataclasses import dataclass, field
from typing import Literal

from ctx_hooks.policy.addon_settings import ArchiveBackend
from ctx_hooks.telemetry.figures import CALLER, RequestEvent, counter, shown

ArchiveOutcome = Literal["stored", "dropped", "failed"]
SUMMARIES = counter("summaries", "Summaries that a model was asked for", ("outcome", CALLER))
DOLLARS = counter("summary_dollars", "Dollars that summaries have cost", (CALLER,))
RETRIEVALS = counter("retrievals", "Calls of the retrieval tool that were answered", ("source", CALLER))
TEXTS = counter("archive_texts", "Texts that came to the archive", ("outcome", "backend"))


@dataclass(frozen=True, slots=True)
class SummaryEvent(RequestEvent):
    """A summary that a model is about to write, or has written.

    Attributes:
        summary_model: the model group that writes it.
        summary_mode: "background", or "blocking" if the request waits for it.
        messages: how many messages of the history it replaces.
        calls: how many calls were answered: a history that exceeds the model's window goes in parts. 0 before.
        outcome: "accepted", "rejected" (the written text cannot be used), "failed" (nothing was written) or "cancelled"; ""
            before.
        reason: why it is not accepted, or why entries of it are left out, in one clause; "" if neither.
        left_out: how many entries of an accepted summary are left out.
        input_tokens: of all calls, as billed; None if no answer states it.
        output_tokens: of all calls, as billed; None if no answer states it.
        dollars: the cost of all calls; None if a price is unknown.
        milliseconds: its duration; None before.
    """

    name: Literal["before_summary", "after_summary"]
    summary_model: str = field(metadata=shown("log"))
    summary_mode: Literal["background", "blocking"] = field(metadata=shown("log"))
    messages: int = field(metadata=shown("log"))
    calls: int = field(default=0, metadata=shown("log"))
    outcome: Literal["", "accepted", "rejected", "failed", "cancelled"] = field(default="", metadata=shown("log", SUMMARIES))
    reason: str = field(default="", metadata=shown("log"))
    left_out: int = 0
    input_tokens: int | None = field(default=None, metadata=shown("log"))
    output_tokens: int | None = field(default=None, metadata=shown("log"))
    dollars: float | None = field(default=None, metadata=shown("log", DOLLARS))
    milliseconds: float | None = field(default=None, metadata=shown("log"))


@dataclass(frozen=True, slots=True)
class RetrievalEvent(RequestEvent):
    """A call of the retrieval tool that was answered.

    Attributes:
        call: the request whose model called, and its target; only its id if the request is forgotten.
        source: "archive", or "none" (not available).
        returned_chars: of the result that the model got; 0 if the text is not available.
        milliseconds: its duration.
    """

    name: Literal["retrieval"]
    source: Literal["archive", "none"] = field(metadata=shown(RETRIEVALS))
    returned_chars: int
    milliseconds: float


@dataclass(frozen=True, slots=True)
class ArchiveEvent:
    """The outcome for texts that reached the archive together.

    Attributes:
        name: "archive".
        time_seconds: when, in epoch seconds.
        outcome: "stored", "dropped" (too large, or the queue was full) or "failed" (the store could not be written to).
        texts: how many.
        backend: the store for them.
    """

    name: Literal["archive"]
    time_seconds: float
    outcome: ArchiveOutcome
    texts: int = field(metadata=shown(TEXTS))
    backend: ArchiveBackend
