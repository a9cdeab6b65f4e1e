"""What is noted of a request whose conversation has something to retrieve."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from ctx_hooks.addons.retrieval.conversation_digest import Heard
from ctx_hooks.learning.known import Known
from ctx_hooks.policy.addon_settings import ArchiveSettings
from ctx_hooks.request.request import Request
from ctx_hooks.request.target import Target
from ctx_hooks.serving.running import RequestState
from ctx_hooks.telemetry.figures import CallNames

NAME = "retrieval"


class View(NamedTuple):
    """A conversation as its client sent it, and the archive that has what is hidden of it.

    `shows_calls`: whether the model sees calls of the tool in it, and may make others where it is not offered.
    """

    heard: Heard
    settings: ArchiveSettings
    shows_calls: bool = False


class Offer(NamedTuple):
    """A request whose model is offered the tool, until it is answered.

    `most_bytes`: of the texts that one turn of the model gets.
    """

    settings: ArchiveSettings
    tenant: bytes
    call: CallNames
    most_bytes: int


@dataclass
class KeptRequest:
    """A request that is kept to be cut again.

    Attributes:
        decided_by: request, target, and what was known, by which it is decided about again.
        timeout_seconds: how long that may take.
        size_bytes: about how much memory its messages take, and what is cut from them.
        texts: what was cut from it, once that had to be found out again.
    """

    decided_by: tuple[Request, Target, Known] = field(repr=False)
    timeout_seconds: float
    size_bytes: int
    texts: Mapping[str, str] | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class RetrievalNotes:
    """What is noted of one request: its conversation where a model may retrieve, and the offer of the tool to its model."""

    view: View | None = None
    offer: Offer | None = None


def notes_of(state: RequestState) -> RetrievalNotes:
    """Return what is noted of a request, empty notes where nothing is."""
    return state.notes.get(NAME) or RetrievalNotes()


def kept_of(state: RequestState) -> KeptRequest | None:
    """Return how what was cut from a request is cut again, None where that is not kept."""
    kept = state.held.get(NAME)
    return kept if isinstance(kept, KeptRequest) else None
