"""One file for all workers of a machine: whatever happens to it, requests go on, and what is read is whole."""

import os
import secrets
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing, suppress
from pathlib import Path
from stat import S_IMODE
from tempfile import TemporaryDirectory

import pytest
from archived import by_handle, handles_in, settled, store_text, stored

from ctx_hooks.addons.retrieval.archive import archive, disk
from ctx_hooks.addons.retrieval.archive.archive import Archives
from ctx_hooks.policy.addon_settings import ArchiveSettings
from ctx_hooks.store.sealing import opened, sealed, tenant_key, tenant_name
from ctx_hooks.store.shared_store import SharedStore

TENANT = tenant_key("team", "red", b"")
NAME = tenant_name(TENANT)
LATER = 1e12
MANY_BYTES = 10**9
LOG_BYTES = 3 * disk.CHECKPOINT_PAGES * disk.PAGE_BYTES
"""What is deleted is overwritten, so the log has both before a checkpoint."""

WRITING = """
import sys
from pathlib import Path
from ctx_hooks.addons.retrieval.archive import archive, disk
from ctx_hooks.store.sealing import sealed
from ctx_hooks.store.sealing import tenant_key, tenant_name
from ctx_hooks.conversation.cut_texts import Handles
tenant = tenant_key("team", "red", b"")
for n in range(int(sys.argv[2])):
    texts = [f"{n} {part} " + sys.argv[3] * 5_000 for part in range(10)]
    handles = {Handles(tenant).of(text): text for text in texts}
    values = {handle: sealed(text, tenant, handle, b"") for handle, text in handles.items()}
    disk.write(Path(sys.argv[1]), tenant_name(tenant), values, 1e12, 10**9)
    print(" ".join(handles), flush=True)
"""
FULL = """
import asyncio, resource, signal, sys
from ctx_hooks.addons.retrieval.archive.archive import Archives
from ctx_hooks.policy.addon_settings import ArchiveSettings
from ctx_hooks.telemetry.listeners import on
from ctx_hooks.store import sealing
from ctx_hooks.store.shared_store import SharedStore
sealing.ZLIB_LEVEL = 0
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))
told = []
on("archive", told.append)
async def main():
    archives, settings = Archives(SharedStore(), b""), ArchiveSettings(backend="disk", path=sys.argv[1])
    tenant = archives.tenant("key", "ann")
    stored = []
    for letter in "bcdefgh":
        batch = archives._at(settings).add(settings, tenant, {letter * 12: letter * 100_000})
        stored.append(batch is not None and await batch.written)
    found = [await archives.get(settings, tenant, letter * 12) for letter in "bcdefgh"]
    assert stored[0] and not stored[-1], stored
    assert [text is not None for text in found] == stored, found
    assert all(text in (None, letter * 100_000) for letter, text in zip("bcdefgh", found))
    print(sum(e.texts for e in told if e.outcome == "failed"))
asyncio.run(main())
"""


@pytest.fixture
def settings(tmp_path):
    return ArchiveSettings(backend="disk", path=str(tmp_path))


@pytest.fixture
def archives(request):
    request.getfixturevalue("patient")
    return Archives(SharedStore(), b"")


@pytest.fixture
def tenant(archives):
    return archives.tenant("key", "ann")


def writing(folder, batches, letter):
    return subprocess.Popen(
        [sys.executable, "-c", WRITING, str(folder), str(batches), letter], stdout=subprocess.PIPE, text=True
    )


def test_two_processes_write_one_file_at_once_and_nothing_is_lost(tmp_path):
    processes = [writing(tmp_path, 30, letter) for letter in "xy"]
    handles = [handle for process in processes for line in process.stdout for handle in line.split()]
    assert [process.wait(60) for process in processes] == [0, 0]
    assert len(handles) == 600
    assert set(handles_in(tmp_path)) == set(handles)


def test_what_a_process_wrote_that_is_killed_is_whole(tmp_path):
    process = writing(tmp_path, 10_000, "x")
    told = [handle for _ in range(5) for handle in process.stdout.readline().split()]
    process.send_signal(signal.SIGKILL)
    process.wait(60)
    stored = set(handles_in(tmp_path))
    assert stored >= set(told)
    assert len(stored) % 10 == 0, "a batch is stored whole or not at all"
    assert all(opened(disk.read(tmp_path, NAME, [handle])[handle], TENANT, handle, b"") for handle in stored)
    with closing(sqlite3.connect(tmp_path / disk.FILE)) as file:
        assert file.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_on_a_full_disk_texts_are_missing_or_whole(tmp_path):
    """In a process that may write no larger file."""
    done = subprocess.run([sys.executable, "-c", FULL, str(tmp_path)], check=True, stdout=subprocess.PIPE, timeout=300)
    assert int(done.stdout) > 0


async def test_a_file_that_somebody_has_locked_delays_no_request_and_is_written_once_it_is_free(
    archives, tenant, settings, tmp_path, monkeypatch, texts_told
):
    texts = by_handle(tenant)
    assert await settled(archives, settings, tenant)
    with closing(sqlite3.connect(tmp_path / disk.FILE, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        archives.put(settings, tenant, texts)
        assert {handle: await archives.get(settings, tenant, handle) for handle in texts} == texts, "they wait to be written"
        other.execute("ROLLBACK")
    assert await settled(archives, settings, tenant)
    assert texts_told["failed"] == 0
    monkeypatch.setattr(disk, "BUSY_SECONDS", 0.01)
    with closing(sqlite3.connect(tmp_path / disk.FILE, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        assert not await store_text(archives, settings, tenant, "b" * 12, "a text")
    assert texts_told["failed"] == 1
    assert {handle: await archives.get(settings, tenant, handle) for handle in texts} == texts


async def test_a_file_or_folder_that_is_deleted_is_made_again(archives, tenant, settings, tmp_path):
    for _ in range(3):
        assert await store_text(archives, settings, tenant, "b" * 12, "a text")
        assert await archives.get(settings, tenant, "b" * 12) == "a text"
        for file in tmp_path.iterdir():
            file.unlink()
        tmp_path.rmdir()
        assert await archives.get(settings, tenant, "b" * 12) is None


@pytest.mark.parametrize(
    "held", [b"no file of SQLite's" * 1_000, b"SQLite format 3\0" + b"\xff" * 8_000], ids=["text", "broken"]
)
async def test_a_file_that_is_none_of_sqlites_is_set_aside_and_costs_no_text(
    archives, tenant, settings, tmp_path, held, texts_told
):
    (tmp_path / disk.FILE).write_bytes(held)
    texts = by_handle(tenant)
    await stored(archives, settings, tenant, texts)
    assert {handle: await archives.get(settings, tenant, handle) for handle in texts} == texts
    assert texts_told["stored"] == len(texts) + 1
    assert texts_told["failed"] == 0
    assert (tmp_path / disk.BROKEN).read_bytes() == held


async def test_a_value_that_somebody_has_changed_is_not_available(archives, tenant, settings, tmp_path):
    assert await store_text(archives, settings, tenant, "b" * 12, "a text")
    for value in (b"", b"\x01", secrets.token_bytes(100), "a text", 7, 1.5):
        with closing(sqlite3.connect(tmp_path / disk.FILE)) as file, file:
            file.execute("UPDATE texts SET sealed = ?", (value,))
        assert await archives.get(settings, tenant, "b" * 12) is None
    assert await store_text(archives, settings, tenant, "b" * 12, "a text")
    assert await archives.get(settings, tenant, "b" * 12) == "a text", "a wrong value is no failure of the store"


def test_a_batch_is_stored_whole_or_not_at_all(tmp_path):
    with pytest.raises(sqlite3.Error):
        disk.write(tmp_path, NAME, {"b" * 12: b"a text", "c" * 12: ["no bytes"]}, LATER, MANY_BYTES)
    assert handles_in(tmp_path) == []


async def test_after_a_failure_no_request_reads_for_some_seconds(archives, tenant, settings, tmp_path, monkeypatch):
    assert await store_text(archives, settings, tenant, "b" * 12, "a text")
    kept = (tmp_path / disk.FILE).read_bytes()
    for seconds, found in ((600.0, None), (0.0, "a text")):
        monkeypatch.setattr(archive, "READ_AGAIN_SECONDS", seconds)
        one = Archives(SharedStore(), b"")
        (tmp_path / disk.FILE).write_bytes(b"no file of SQLite's" * 1_000)
        assert await one.get(settings, tenant, "b" * 12) is None
        (tmp_path / disk.FILE).write_bytes(kept)
        assert await one.get(settings, tenant, "b" * 12) == found


async def test_where_no_folder_can_be_made_no_request_fails(archives, tenant, tmp_path):
    (tmp_path / "file").write_text("no folder")
    settings = ArchiveSettings(backend="disk", path=str(tmp_path / "file" / "folder"))
    archives.put(settings, tenant, by_handle(tenant))
    assert not await settled(archives, settings, tenant)
    assert await archives.get(settings, tenant, "b" * 12) is None


async def test_neither_a_text_nor_a_handle_nor_a_tenant_is_logged(archives, settings, tmp_path, caplog):
    (tmp_path / disk.FILE).write_bytes(b"no file of SQLite's" * 1_000)
    tenant = archives.tenant("key", "ann-of-accounts")
    texts = by_handle(tenant, ["the piano is tuned"])
    with caplog.at_level(0):
        archives.put(settings, tenant, texts)
        await settled(archives, settings, tenant)
        for handle in texts:
            await archives.get(settings, tenant, handle)
    said = [tenant.hex(), tenant_name(tenant), "ann-of-accounts", *texts, *texts.values()]
    assert not [word for word in said if word in caplog.text]


def test_the_file_never_exceeds_its_bound_whatever_is_written(tmp_path):
    """30 MB into 8 MB. The newest are there, and what is over the bound is the log, which has a bound of its own."""
    max_bytes, block = 8_000_000, secrets.token_bytes(1_000_000)
    for n in range(150):
        value = sealed("x", TENANT, "b" * 12, b"") + block[n : n + 200_000]
        disk.write(tmp_path, NAME, {f"{n:012}": value}, LATER + n, max_bytes)
        sizes = {path.name: path.stat().st_size for path in tmp_path.iterdir()}
        assert sizes[disk.FILE] <= max_bytes
        assert sum(sizes.values()) <= max_bytes + LOG_BYTES
    kept = handles_in(tmp_path)
    assert kept == [f"{n:012}" for n in range(150 - len(kept), 150)]
    assert len(kept) >= 0.9 * max_bytes / 200_000


def test_small_texts_that_leave_holes_do_not_exceed_the_bound_either(tmp_path):
    """Of the two texts of a page one lives longer: the page is not free when the other goes, and new texts go behind it."""
    max_bytes = 600_000
    for n in range(700):
        disk.write(tmp_path, NAME, {f"{n:012}": b"x" * 1_900}, LATER + n + 10_000 * (n % 2), max_bytes)
        assert (tmp_path / disk.FILE).stat().st_size <= max_bytes
    assert disk.read(tmp_path, NAME, [f"{699:012}"])


def test_of_a_deleted_tenant_nothing_stays_in_file_or_log_and_others_keep_theirs(tmp_path):
    other = tenant_name(tenant_key("team", "blue", b""))
    values = {f"{n:012}": b"the piano is tuned" * 1_000 for n in range(20)}
    disk.write(tmp_path, NAME, values, LATER, MANY_BYTES)
    disk.write(tmp_path, other, {"a" * 12: b"the violin is not"}, LATER, MANY_BYTES)
    with closing(sqlite3.connect(tmp_path / disk.FILE)) as reading:  # as another worker that has the file open
        reading.execute("SELECT COUNT(*) FROM texts").fetchone()
        assert disk.delete(tmp_path, NAME) == 20
        held = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"piano" not in held
    assert NAME.encode() not in held
    assert b"violin" in held
    assert [stored.name for stored in disk.tenants(tmp_path)] == [other]
    assert disk.delete(tmp_path, NAME) == 0


def test_what_has_expired_is_pruned_and_nothing_else(tmp_path):
    disk.write(tmp_path, NAME, {"new": b"the violin"}, LATER, MANY_BYTES)
    disk.write(tmp_path, NAME, {"old": b"the piano" * 100}, time.time() - 1, MANY_BYTES)
    assert (disk.prune(tmp_path), disk.prune(tmp_path)) == (1, 0)
    assert b"piano" not in b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert disk.read(tmp_path, NAME, ["new"]) == {"new": b"the violin"}


def test_file_and_folder_are_for_their_user_alone(tmp_path):
    mask = os.umask(0)
    try:
        disk.write(tmp_path / "made" / "here", NAME, {"a": b"x"}, LATER, MANY_BYTES)
    finally:
        os.umask(mask)
    folder = tmp_path / "made" / "here"
    assert S_IMODE(folder.stat().st_mode) == 0o700
    assert {S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}


async def test_a_file_that_cannot_be_read_for_minutes_delays_no_request(settings, tmp_path, monkeypatch, texts_told):
    """The reading thread waits as long as the file is held; the request does not."""
    monkeypatch.setattr(disk, "BUSY_SECONDS", 600.0)
    monkeypatch.setattr(disk, "OPERATION_SECONDS", 600.0)
    archives = Archives(SharedStore(), b"")
    tenant = archives.tenant("key", "ann")
    disk.write(tmp_path, tenant_name(tenant), {"c" * 12: b""}, LATER, MANY_BYTES)
    with closing(sqlite3.connect(tmp_path / disk.FILE)) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        with other:
            other.execute("DELETE FROM texts")
        archives.put(settings, tenant, texts := by_handle(tenant))
        assert {await archives.get(settings, tenant, "c" * 12) for _ in range(50)} == {None}
        assert {handle: await archives.get(settings, tenant, handle) for handle in texts} == texts
        assert texts_told["stored"] == 0
    while not await settled(archives, settings, tenant):
        pass
    assert texts_told["stored"] > len(texts)


async def test_a_file_with_damaged_pages_is_set_aside_and_the_next_text_is_stored(archives, tenant, settings, tmp_path):
    assert await settled(archives, settings, tenant)
    path = tmp_path / disk.FILE
    with closing(sqlite3.connect(path)) as file:
        file.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    whole = path.read_bytes()
    path.write_bytes(whole[: disk.PAGE_BYTES] + b"\xff" * (len(whole) - disk.PAGE_BYTES))
    assert await store_text(archives, settings, tenant, "b" * 12, "b text")
    assert await archives.get(settings, tenant, "b" * 12) == "b text"
    assert (tmp_path / disk.BROKEN).exists()


def test_reading_makes_no_file(tmp_path):
    folder = tmp_path / "none"
    assert disk.read(folder, NAME, ["b" * 12]) == {}
    assert disk.tenants(folder) == []
    assert not folder.exists()


@pytest.fixture
def small_disk(tmp_path):
    """Return a folder on a file system of two megabytes."""
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", tmp_path], check=False).returncode:
        pytest.skip("no file system can be mounted here")
    yield tmp_path
    subprocess.run(["umount", "-l", tmp_path], check=True)


def filled(folder):
    """Fill the file system to its last byte."""
    with (folder / "others").open("wb", buffering=0) as file, suppress(OSError):
        while file.write(b"x" * 1_000):
            pass


@pytest.mark.parametrize(("removed", "expires_at"), [(lambda folder: disk.delete(folder, NAME), LATER), (disk.prune, 1.0)])
def test_full_disk_lets_texts_be_removed(small_disk, removed, expires_at):
    disk.write(small_disk, NAME, {"a" * 12: b"secret" * 50_000}, expires_at, MANY_BYTES)
    filled(small_disk)
    assert removed(small_disk) == 1
    assert b"secret" not in b"".join(path.read_bytes() for path in small_disk.glob(f"{disk.FILE}*"))


def test_full_disk_lets_texts_expire(small_disk):
    disk.write(small_disk, NAME, {letter * 12: b"old" * 30_000 for letter in "abcd"}, time.time() - 1, MANY_BYTES)
    filled(small_disk)
    with pytest.raises(sqlite3.OperationalError):
        disk.write(small_disk, NAME, {"e" * 12: b"new" * 10_000}, LATER, MANY_BYTES)
    assert disk.tenants(small_disk) == []


def test_reader_is_named_if_it_keeps_deleted_texts(tmp_path, monkeypatch):
    monkeypatch.setattr(disk, "BUSY_SECONDS", 0.01)
    disk.write(tmp_path, NAME, {"a" * 12: b"secret" * 1_000}, time.time() + 99, 10**9)
    with closing(sqlite3.connect(tmp_path / disk.FILE, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM texts").fetchone()
        with pytest.raises(sqlite3.OperationalError, match="reader"):
            disk.delete(tmp_path, NAME)
    assert disk.delete(tmp_path, NAME) == 0
    assert b"secret" not in b"".join(path.read_bytes() for path in tmp_path.glob(f"{disk.FILE}*"))


def test_folder_that_is_only_readable_is_read():
    """Checked as a user without rights to write there: root may write everywhere."""
    with TemporaryDirectory(prefix="ctx_hooks_readable_") as name:  # everybody may pass through its parents
        folder = Path(name)
        disk.write(folder, NAME, {"a" * 12: b"text"}, time.time() + 99, 10**9)
        folder.chmod(0o755)
        (folder / disk.FILE).chmod(0o644)
        child = os.fork()
        if not child:
            try:
                os.setuid(65_534)
                is_read = disk.read(folder, NAME, ["a" * 12]) == {"a" * 12: b"text"}
                os._exit(0 if is_read and [stored.name for stored in disk.tenants(folder)] == [NAME] else 1)
            finally:
                os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_damaged_file_goes_with_what_was_in_it(tmp_path):
    (tmp_path / disk.BROKEN).write_bytes(b"secret")
    os.utime(tmp_path / disk.BROKEN, (0, time.time() - 50))
    disk.write(tmp_path, NAME, {"a" * 12: b"text"}, time.time() + 99, 10**9)
    assert (tmp_path / disk.BROKEN).exists(), "its texts may be kept for another while"
    disk.write(tmp_path, NAME, {"a" * 12: b"text"}, time.time() + 40, 10**9)
    assert not (tmp_path / disk.BROKEN).exists()
    (tmp_path / disk.BROKEN).write_bytes(b"secret")
    disk.prune(tmp_path)
    assert not (tmp_path / disk.BROKEN).exists()
