"""The recorded requests of files and folders: each file is recognised by its content, and unreadable places are noted."""

from collections import Counter as Occurrences
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, Protocol

from ctx_hooks.cli.replay.histories import request_log, sessions, spend_log
from ctx_hooks.cli.replay.recorded import LeftOut, Recorded, Row, loads
from ctx_hooks.cli.terminal import working

ENDINGS = ("**/*.jsonl", "**/*.json", "**/*.ndjson")
"""Patterns of the files that are read in a folder and its subfolders."""
MOST_NAMED = 10
"""Broken places that are named one by one; all are counted."""
UNKNOWN = "no history of a known kind"
_BOM = b"\xef\xbb\xbf"


class Broken(NamedTuple):
    """A place in a file that could not be read, and why."""

    line: int
    reason: str


class Reader(Protocol):
    """The names that each reader module has."""

    NAME: str
    """The name of the kind."""

    def recognises(self, fields: Mapping[str, Any]) -> bool:
        """Whether a file that has this row is of the kind."""

    def requests(self, rows: Iterable[Row]) -> Iterator[Recorded | LeftOut]:
        """Yield the requests of a file; for each row that should contain one but does not, the reason."""


READERS: tuple[Reader, ...] = (spend_log, sessions, request_log)
"""In the order in which a row is offered to them: the plainest kind is the last."""


def reader_of(fields: Mapping[str, Any]) -> Reader | None:
    """Return the reader of a file that has this row, None if no reader recognises it."""
    return next((reader for reader in READERS if reader.recognises(fields)), None)


@dataclass(slots=True)
class Reading:
    """The files read: how many there are of each kind, and which files and places were unreadable.

    Attributes:
        not_read: the files that could not be read, and why.
        broken: how many places could not be read in the others.
        named: the first of them, by file and line.
    """

    kinds: Occurrences[str] = field(default_factory=Occurrences)
    not_read: list[str] = field(default_factory=list)
    broken: int = 0
    named: list[str] = field(default_factory=list)

    def of(self, path: Path) -> Iterator[Recorded | LeftOut]:
        """Yield the requests of a file."""
        broken: list[Broken] = []
        try:
            with working("Reading histories"), path.open("rb") as file:
                rows = _rows(file, broken)
                first = next(((reader, row) for row in rows if (reader := reader_of(row.fields)) is not None), None)
                if first is None:
                    self.not_read.append(f"{path}: {UNKNOWN}")
                    return
                reader, row = first
                self.kinds[reader.NAME] += 1
                yield from reader.requests(chain([row], rows))
        except OSError as error:
            self.not_read.append(f"{path}: {(error.strerror or str(error)).lower()}")
        self.broken += len(broken)
        self.named += [f"{path}:{b.line}: {b.reason}" for b in broken[: MOST_NAMED - len(self.named)]]


def rows_of(file: BinaryIO) -> Iterator[Row | Broken]:
    """Yield each object of a file, and each unreadable place; raises OSError if the file cannot be read.

    JSON lines are read one by one. An array, and a document of several lines, is read whole: its objects are numbered.
    """
    begin = file.readline().removeprefix(_BOM).strip()
    file.seek(0)
    if begin != b"{" and not begin.startswith(b"["):
        for number, line in enumerate(file, 1):
            if line.strip():
                yield from _rows_in(line, number)
    else:
        yield from _rows_in(file.read())


def _rows_in(text: bytes, first: int = 1) -> Iterator[Row | Broken]:
    """Yield the objects of a JSON text, numbered from `first` on."""
    try:
        value = loads(text.removeprefix(_BOM))
    except (ValueError, RecursionError):
        yield Broken(first, "no JSON")
        return
    for number, each in enumerate(value if isinstance(value, list) else [value], first):
        yield Row(number, each) if isinstance(each, dict) else Broken(number, "no JSON object")


def _rows(file: BinaryIO, broken: list[Broken]) -> Iterator[Row]:
    """Yield the rows of a file; unreadable places are appended to `broken`."""
    for row in rows_of(file):
        if isinstance(row, Broken):
            broken.append(row)
        else:
            yield row
