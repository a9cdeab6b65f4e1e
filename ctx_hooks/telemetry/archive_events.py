"""What became of the texts that are cut, and of the calls that ask for one: figures, never a text, a handle or a query."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ctx_hooks.policy.archive_settings import ArchiveBackend
from ctx_hooks.telemetry.call import RequestEvent

RetrievalSource = Literal["archive", "request", "none"]


@dataclass(frozen=True, slots=True)
class RetrievalEvent(RequestEvent):
    """A call of the retrieval tool that was answered.

    Attributes:
        call: the request whose model called, and where it went; only its id if the request is forgotten.
        source: "archive", "request" (cut again from it), or "none" (not available).
        returned_chars: of the result that the model was given; 0 where the text is not available.
        milliseconds: what it took.
    """

    name: Literal["retrieval"]
    source: RetrievalSource
    returned_chars: int
    milliseconds: float


@dataclass(frozen=True, slots=True)
class ArchiveEvent:
    """What became of texts that came to the archive together; the records of what is hidden of a conversation are texts too.

    Attributes:
        name: "archive".
        time_seconds: when, in epoch seconds.
        outcome: "stored", "dropped" (too large, or the queue was full) or "failed" (the store could not be written to).
        texts: how many.
        backend: where they were to be stored.
    """

    name: Literal["archive"]
    time_seconds: float
    outcome: Literal["stored", "dropped", "failed"]
    texts: int
    backend: ArchiveBackend
