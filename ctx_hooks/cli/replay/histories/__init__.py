"""The readers of histories: one module for each kind, from rows to recorded requests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol

from ctx_hooks.cli.replay.histories import claude_code, codex, request_log, sessions, spend_log
from ctx_hooks.cli.replay.recorded import LeftOut, Recorded, Row


class Reader(Protocol):
    """What each module has."""

    NAME: str
    """What the kind is called."""

    def recognises(self, fields: Mapping[str, Any]) -> bool:
        """Whether a file that has this row is of the kind."""

    def requests(self, rows: Iterable[Row]) -> Iterator[Recorded | LeftOut]:
        """Yield the requests of a file, and for each row that holds none, where it should, why it is left out."""


READERS: tuple[Reader, ...] = (spend_log, claude_code, codex, sessions, request_log)
"""In the order in which a row is offered to them: the plainest kind is the last."""


def reader_of(fields: Mapping[str, Any]) -> Reader | None:
    """Return the reader of a file that has this row, None where it says nothing."""
    return next((reader for reader in READERS if reader.recognises(fields)), None)
