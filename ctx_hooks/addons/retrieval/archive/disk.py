"""Sealed texts in SQLite: in one file that the workers of a machine share, or in the memory of one worker process.

Each operation opens the file anew, in a thread: a deleted file is made again, and a disk that hangs blocks only its thread.
With the write-ahead log, readers wait for no writer, and half-written data of a dead process is never visible.
"""

import os
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from threading import Lock
from typing import TypeAlias

from ctx_hooks.addons.retrieval.archive import MOST_READ_BYTES, Stored
from ctx_hooks.runtime.deadline import Deadline
from ctx_hooks.runtime.warnings import warn_once
from ctx_hooks.runtime.worker import pool

FILE = "ctx_hooks_archive.sqlite3"
BROKEN = f"{FILE}.broken"
"""Name of the damaged file, which an operator can examine. Nobody can say whose texts it has: it goes with the next erasure
or prune, and when all of them have expired."""
BUSY_SECONDS = 5.0
"""How long a writer waits for another one; a batch takes some 50 ms. No request waits for it."""
OPERATION_SECONDS = 10.0
"""Longer than a writer waits, so that the error names a file that stays locked."""
PAGE_BYTES = 4_096
ROW_BYTES = 2 * PAGE_BYTES
"""A text's last page is half empty on average, and its row and index are in pages of others."""
CHECKPOINT_PAGES = 1_000
"""SQLite's own default: with 4 MB in the log its pages are moved into the file."""

SCHEMA = """
CREATE TABLE IF NOT EXISTS texts (
  tenant TEXT NOT NULL, handle TEXT NOT NULL, sealed BLOB NOT NULL, expires_at REAL NOT NULL, PRIMARY KEY (tenant, handle)
);
CREATE INDEX IF NOT EXISTS texts_by_expiry ON texts (expires_at);
CREATE INDEX IF NOT EXISTS texts_by_size ON texts (tenant, LENGTH(sealed));
"""


class Memory:
    """The in-memory file of one process, for one thread at a time."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.file = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        self.file.executescript(SCHEMA)


Place: TypeAlias = "Path | Memory"
"""A folder, or the memory of this process."""


class Disk:
    """The store of one place."""

    def __init__(self, place: Place) -> None:
        self.place = place

    async def write(self, tenant: str, sealed: Mapping[str, bytes], kept_seconds: float, max_bytes: int) -> None:
        """Store sealed texts in one transaction, all or none; a text replaces one of the same handle.

        Args:
            tenant: the tenant's name.
            sealed: the texts by their handles.
            kept_seconds: how long they are kept, from now.
            max_bytes: the store's limit; above it, the oldest texts of the tenant with the most go first.

        """
        expires_at = time.time() + kept_seconds
        work = partial(write, self.place, tenant, sealed, expires_at, max_bytes)
        await pool.run(tenant, work, Deadline(OPERATION_SECONDS))

    async def read(self, tenant: str, handles: Sequence[str]) -> Mapping[str, bytes]:
        """Return the sealed texts that still exist, by their handles; see `read`."""
        return await pool.run(tenant, partial(read, self.place, tenant, handles), Deadline(OPERATION_SECONDS))


def write(place: Place, tenant: str, sealed: Mapping[str, bytes], expires_at: float, max_bytes: int) -> None:
    """Store sealed texts, all or none; remove expired ones, and above the limit the oldest of the tenant with the most.

    A file that is damaged, or not SQLite's, is renamed to BROKEN, and a new one is begun.

    Raises:
        sqlite3.Error: The disk is full, or the file is locked for longer than BUSY_SECONDS.
        OSError: The folder or the file cannot be made.

    """
    known = _file_number(place)
    if isinstance(place, Path):
        _expire_damaged(place / BROKEN, kept_seconds=expires_at - time.time())
    try:
        _write(place, tenant, sealed, expires_at, max_bytes)
    except sqlite3.DatabaseError as error:
        is_damaged = type(error) is sqlite3.DatabaseError and known is not None and known == _file_number(place)
        if isinstance(place, Path) and _is_full(error):
            prune(place)  # the transaction that removes expired texts has failed with the rest
        if isinstance(place, Memory) or not is_damaged:
            raise  # it is locked, or another process has set it aside
        warn_once(f"ctx_hooks: the archive {place / FILE} is damaged and set aside as {BROKEN}")
        (place / FILE).replace(place / BROKEN)
        for end in ("-wal", "-shm"):
            (place / f"{FILE}{end}").unlink(missing_ok=True)
        _write(place, tenant, sealed, expires_at, max_bytes)


def _expire_damaged(file: Path, kept_seconds: float) -> None:
    with suppress(FileNotFoundError):  # there is none, or another process was first
        if file.stat().st_mtime < time.time() - kept_seconds:
            file.unlink()


def _file_number(place: Place) -> int | None:
    """Return the system's number of the file of a place, 0 for memory, None if there is no file."""
    if isinstance(place, Memory):
        return 0
    return (place / FILE).stat().st_ino if (place / FILE).exists() else None


def _write(place: Place, tenant: str, sealed: Mapping[str, bytes], expires_at: float, max_bytes: int) -> None:
    with _opened(place) as file, _transaction(file):
        file.execute("DELETE FROM texts WHERE expires_at <= ?", (time.time(),))
        _make_room(file, tenant, sum(len(value) + ROW_BYTES for value in sealed.values()), max_bytes)
        rows = [(tenant, handle, value, expires_at) for handle, value in sealed.items()]
        file.executemany("INSERT OR REPLACE INTO texts VALUES (?, ?, ?, ?)", rows)


def read(place: Place, tenant: str, handles: Sequence[str]) -> dict[str, bytes]:
    """Return the sealed texts that still exist, by their handles; a damaged file raises sqlite3.Error."""
    query = "SELECT sealed FROM texts WHERE tenant = ? AND handle = ? AND expires_at > ? AND LENGTH(sealed) <= ?"
    found: dict[str, bytes] = {}
    if _file_number(place) is None:
        return found  # reading creates no file
    with _opened(place, reads=True) as file:
        left_bytes = MOST_READ_BYTES
        for handle in handles:
            row = file.execute(query, (tenant, handle, time.time(), left_bytes)).fetchone()
            if row and isinstance(row[0], bytes):
                found[handle] = row[0]
                left_bytes -= len(row[0])
    return found


def tenants(folder: Path) -> list[Stored]:
    """Return a summary of each tenant's texts; raises as `read` does."""
    query = "SELECT tenant, COUNT(*), SUM(LENGTH(sealed)), MIN(expires_at), MAX(expires_at) FROM texts GROUP BY 1 ORDER BY 1"
    if _file_number(folder) is None:
        return []
    with _opened(folder, reads=True) as file:
        return [Stored(*row) for row in file.execute(query)]


def delete(folder: Path, tenant: str) -> int:
    """Delete every text of a tenant from the file and its log, without a trace; return how many there were.

    Raises:
        sqlite3.Error: The file is locked or being read for longer than BUSY_SECONDS. The texts are deleted by the next call.
    """
    return _deleted(folder, "DELETE FROM texts WHERE tenant = ?", tenant)


def prune(folder: Path) -> int:
    """Delete the expired texts and the damaged file, and return the number of texts; raises as `delete` does."""
    (folder / BROKEN).unlink(missing_ok=True)
    return _deleted(folder, "DELETE FROM texts WHERE expires_at <= ?", time.time())


def _deleted(folder: Path, statement: str, value: str | float) -> int:
    if _file_number(folder) is None:
        return 0
    try:
        return _deleted_by(folder, statement, value)
    except sqlite3.OperationalError as error:
        if not _is_full(error):
            raise
    return _deleted_by(folder, statement, value, in_place=True)


def _is_full(error: sqlite3.Error) -> bool:
    """Whether the disk may be full: there may be no room for the log, or for the index of the log, an "I/O error"."""
    return isinstance(error, sqlite3.OperationalError) and "locked" not in str(error)


def _deleted_by(folder: Path, statement: str, value: str | float, *, in_place: bool = False) -> int:
    """Delete rows; `in_place` needs no room on the disk, and a power failure meanwhile damages the file."""
    with _opened(folder, in_place=in_place) as file:
        with _transaction(file):
            gone = file.execute(statement, (value,)).rowcount
        if not in_place and file.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
            raise sqlite3.OperationalError("database is locked by a reader: deleted texts are still in its file")
    return gone


def _make_room(file: sqlite3.Connection, tenant: str, needed_bytes: int, max_bytes: int) -> None:
    """Delete the oldest texts of the tenant with the most, its new texts included, until there is room.

    No tenant falls below an equal share while others have more. A shared page is not free, so more texts may have to go.
    """
    while (excess_bytes := _used_bytes(file) + needed_bytes - max_bytes) > 0:
        rows = file.execute("SELECT tenant, SUM(LENGTH(sealed)), COUNT(*) FROM texts GROUP BY 1")
        sizes = {name: size_bytes + count * ROW_BYTES for name, size_bytes, count in rows}
        if not sizes:
            return
        largest = max(sizes, key=lambda name: sizes[name] + needed_bytes * (name == tenant))
        above_bytes = sizes[largest] - max_bytes / len({*sizes, tenant})
        doomed = []
        for row, size_bytes in file.execute(
            "SELECT rowid, LENGTH(sealed) FROM texts WHERE tenant = ? ORDER BY 1", (largest,)
        ):
            doomed.append((row,))
            excess_bytes -= size_bytes
            above_bytes -= size_bytes + ROW_BYTES
            if excess_bytes <= 0 or above_bytes <= 0:
                break
        file.executemany("DELETE FROM texts WHERE rowid = ?", doomed)


def _used_bytes(file: sqlite3.Connection) -> int:
    pages, free = (file.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count"))
    return int(pages - free) * PAGE_BYTES


def _reader(path: Path) -> sqlite3.Connection:
    """Return a connection that changes nothing, also on a full disk and in a folder without the right to write."""
    file = sqlite3.connect(path, timeout=BUSY_SECONDS)
    try:
        file.execute("SELECT 1 FROM texts LIMIT 1")
    except sqlite3.OperationalError as error:
        file.close()
        if not _is_full(error):
            raise
        file = sqlite3.connect(f"{path.absolute().as_uri()}?immutable=1", uri=True)  # without an index of the log
    return file


@contextmanager
def _opened(place: Place, *, reads: bool = False, in_place: bool = False) -> Iterator[sqlite3.Connection]:
    if isinstance(place, Memory):
        with place.lock:
            yield place.file
        return
    path = place / FILE
    if reads:
        with closing(_reader(path)) as file:
            yield file
        return
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))  # for this user only; SQLite gives the log the same rights
    with closing(sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)) as file:
        if in_place:
            file.execute("PRAGMA locking_mode = EXCLUSIVE")  # without an index of the log in a file
        file.execute(f"PRAGMA page_size = {PAGE_BYTES}")  # of a new file
        file.execute(f"PRAGMA journal_mode = {'MEMORY' if in_place else 'WAL'}")
        file.execute("PRAGMA synchronous = NORMAL")  # a power failure may lose the newest texts; the file is sound
        file.execute("PRAGMA secure_delete = ON")  # overwrites deleted texts
        file.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
        file.executescript(SCHEMA)
        yield file


@contextmanager
def _transaction(file: sqlite3.Connection) -> Iterator[None]:
    file.execute("BEGIN IMMEDIATE")  # take the lock at once: SQLite cannot wait for a later one
    with file:
        yield
