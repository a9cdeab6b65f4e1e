"""Sealed texts in one file of SQLite, which the workers of a machine share.

Each operation opens the file anew, in a thread: a deleted file is made again, and a disk that hangs blocks only its thread.
"""

import os
import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from ctx_hooks.runtime.deadline import Deadline
from ctx_hooks.runtime.warnings import warn_once
from ctx_hooks.runtime.worker import pool

FILE = "ctx_hooks_archive.sqlite3"
BUSY_SECONDS = 5.0
"""How long a writer waits for another one; a batch takes some 50 ms. No request waits for it."""
OPERATION_SECONDS = 2 * BUSY_SECONDS
ROW_BYTES = 8_192
"""Two pages: a text's last page is half empty on average, and its row and index are in pages of others."""
MOST_DROPPED = 20
"""Texts of a tenant that make room at once: then the largest tenant may be another one."""

SCHEMA = (
    """CREATE TABLE IF NOT EXISTS texts (
    tenant TEXT NOT NULL, handle TEXT NOT NULL, sealed BLOB NOT NULL, expires_at REAL NOT NULL, PRIMARY KEY (tenant, handle)
    )""",
    "CREATE INDEX IF NOT EXISTS texts_by_expiry ON texts (expires_at)",
    "CREATE INDEX IF NOT EXISTS texts_by_size ON texts (tenant, LENGTH(sealed))",
)


class Stored(NamedTuple):
    """What a store has of a tenant: its name, and the number and size of its texts."""

    name: str
    texts: int
    size_bytes: int


class Disk:
    """The store in one folder, whose functions run in a thread."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def write(self, tenant: str, sealed: Mapping[str, bytes], kept_seconds: float, max_bytes: int) -> None:
        """Store sealed texts as `write` does."""
        work = partial(write, self._folder, tenant, sealed, time.time() + kept_seconds, max_bytes)
        await pool.run(tenant, work, Deadline(OPERATION_SECONDS))

    async def read(self, tenant: str, handle: str) -> bytes | None:
        """Return a sealed text as `read` does."""
        return await pool.run(tenant, partial(read, self._folder, tenant, handle), Deadline(OPERATION_SECONDS))


def write(folder: Path, tenant: str, sealed: Mapping[str, bytes], expires_at: float, max_bytes: int) -> None:
    """Store sealed texts, all or none; remove expired ones, and above the limit the oldest of the tenant with the most.

    A damaged file is deleted. Raises sqlite3.Error for a full disk or a locked file, OSError for an impossible folder.
    """
    try:
        _write(folder, tenant, sealed, expires_at, max_bytes)
    except sqlite3.OperationalError as error:
        if "locked" not in str(error):  # a full disk: the transaction that removes expired texts has failed with the rest
            prune(folder)
        raise
    except sqlite3.DatabaseError:
        warn_once(f"ctx_hooks: the archive {folder / FILE} is damaged: its texts are lost")
        for name in (FILE, f"{FILE}-journal"):
            (folder / name).unlink(missing_ok=True)
        _write(folder, tenant, sealed, expires_at, max_bytes)


def _write(folder: Path, tenant: str, sealed: Mapping[str, bytes], expires_at: float, max_bytes: int) -> None:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.close(os.open(folder / FILE, os.O_CREAT | os.O_RDWR, 0o600))  # for this user only; the journal has the same rights
    with _opened(folder) as file:
        with _transaction(file):
            for statement in SCHEMA:
                file.execute(statement)
            file.execute("DELETE FROM texts WHERE expires_at <= ?", (time.time(),))
        with _transaction(file):
            needed_bytes = sum(len(value) + ROW_BYTES for value in sealed.values())
            while _used_bytes(file) + needed_bytes > max_bytes and _dropped_oldest(file):
                pass
            rows = [(tenant, handle, value, expires_at) for handle, value in sealed.items()]
            file.executemany("INSERT OR REPLACE INTO texts VALUES (?, ?, ?, ?)", rows)


def read(folder: Path, tenant: str, handle: str) -> bytes | None:
    """Return a sealed text, None if it is absent or expired; a damaged file raises sqlite3.Error."""
    query = "SELECT sealed FROM texts WHERE tenant = ? AND handle = ? AND expires_at > ?"
    if not (folder / FILE).exists():
        return None  # reading creates no file
    with _opened(folder) as file:
        row = file.execute(query, (tenant, handle, time.time())).fetchone()
    return row[0] if row and isinstance(row[0], bytes) else None


def tenants(folder: Path) -> list[Stored]:
    """Return how much is kept of each tenant; raises as `read` does."""
    if not (folder / FILE).exists():
        return []
    with _opened(folder) as file:
        rows = file.execute("SELECT tenant, COUNT(*), SUM(LENGTH(sealed)) FROM texts GROUP BY 1 ORDER BY 1")
        return [Stored(*row) for row in rows]


def delete(folder: Path, tenant: str) -> int:
    """Delete every text of a tenant without a trace, and return their number; a locked file raises sqlite3.Error."""
    return _deleted(folder, "DELETE FROM texts WHERE tenant = ?", tenant)


def prune(folder: Path) -> int:
    """Delete the expired texts, and return their number; raises as `delete` does."""
    return _deleted(folder, "DELETE FROM texts WHERE expires_at <= ?", time.time())


def _deleted(folder: Path, statement: str, value: str | float) -> int:
    if not (folder / FILE).exists():
        return 0
    with _opened(folder) as file:
        # Needs no room on a full disk; a power failure meanwhile would damage the file.
        file.execute("PRAGMA journal_mode = MEMORY")
        with _transaction(file):
            return file.execute(statement, (value,)).rowcount


def _dropped_oldest(file: sqlite3.Connection) -> bool:
    """Delete the oldest texts of the tenant with the most; return whether there were any."""
    largest = "SELECT tenant FROM texts GROUP BY 1 ORDER BY SUM(LENGTH(sealed)) DESC LIMIT 1"
    oldest = f"SELECT rowid FROM texts WHERE tenant = ({largest}) ORDER BY 1 LIMIT {MOST_DROPPED}"  # noqa: S608 - constants
    return file.execute(f"DELETE FROM texts WHERE rowid IN ({oldest})").rowcount > 0  # noqa: S608


def _used_bytes(file: sqlite3.Connection) -> int:
    pages, free, size_bytes = (
        file.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size")
    )
    return int(pages - free) * int(size_bytes)


@contextmanager
def _opened(folder: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(folder / FILE, timeout=BUSY_SECONDS, isolation_level=None)) as file:
        file.execute("PRAGMA secure_delete = ON")  # overwrites deleted texts
        yield file


@contextmanager
def _transaction(file: sqlite3.Connection) -> Iterator[None]:
    file.execute("BEGIN IMMEDIATE")  # take the lock at once: SQLite cannot wait for a later one
    with file:
        yield
