"""What is noted of a request whose conversation has something to retrieve."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, cast

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ctx_hooks.addons.retrieval.conversation_digest import Said
    from ctx_hooks.learning.known import Known
    from ctx_hooks.policy.archive_settings import ArchiveSettings
    from ctx_hooks.request.request import Request
    from ctx_hooks.request.target import Target
    from ctx_hooks.serving.running import RequestState
    from ctx_hooks.telemetry.call import CallNames

NAME = "retrieval"


class View(NamedTuple):
    """A conversation as its client sent it.

    Attributes:
        said: what was said.
        settings: of the archive that has what is hidden of it.
        is_open: whether it ends with words or items of the assistant.
        shows_calls: whether the model sees calls of the tool in it, and may make others where it is not offered.
    """

    said: Said
    settings: ArchiveSettings
    is_open: bool
    shows_calls: bool = False


class Offer(NamedTuple):
    """A request whose model is offered the tool, until it is answered.

    Attributes:
        settings: of the archive that has what was cut from it.
        tenant: whose texts these are.
        call: what is told of it.
        most_bytes: of the texts that one turn of the model gets.
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


@dataclass(slots=True)
class RetrievalNotes:
    """What is noted of one request.

    Attributes:
        view: the conversation as its client sent it, where a model may retrieve.
        offer: of the tool; None where its model is offered none.
        kept: how what was cut from it is cut again.
    """

    view: View | None = None
    offer: Offer | None = None
    kept: KeptRequest | None = None

    @property
    def held_bytes(self) -> int:
        """About how much memory the request and its cut texts take; 0 where these are not kept."""
        return 0 if self.kept is None else self.kept.size_bytes

    @property
    def is_awaited(self) -> bool:
        """Whether the model may still call the tool."""
        return self.offer is not None

    def let_go(self) -> None:
        """Keep the request no longer: what the archive has lost is then not available."""
        self.kept = None


def notes_of(state: RequestState) -> RetrievalNotes:
    """Return what is noted of a request, empty notes where nothing is."""
    return cast("RetrievalNotes", state.notes.get(NAME)) or RetrievalNotes()


def notes_in(state: RequestState) -> RetrievalNotes:
    """Return the notes of a request, to which more is added."""
    return cast("RetrievalNotes", state.notes.setdefault(NAME, RetrievalNotes()))
