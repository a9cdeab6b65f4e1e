"""One file for all workers of a machine: whatever happens to it, requests go on, and what is read is whole."""

import asyncio
import os
import secrets
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing, suppress
from stat import S_IMODE

import pytest
from archived import by_handle, got, handles_in, settled, stored
from waits import until

from ctx_hooks.addons.retrieval.archive import archive as archive_module
from ctx_hooks.addons.retrieval.archive import disk
from ctx_hooks.addons.retrieval.archive.archive import Archive
from ctx_hooks.policy.addon_settings import ArchiveSettings
from ctx_hooks.store.sealing import opened, tenant_key, tenant_name
from ctx_hooks.store.shared_store import SharedStore

TENANT = tenant_key("team", "red", b"")
NAME = tenant_name(TENANT)
LATER = 1e12
MANY_BYTES = 10**9

WRITING = """
import sys
from pathlib import Path
from ctx_hooks.addons.retrieval.archive import disk
from ctx_hooks.store.sealing import sealed, tenant_key, tenant_name
from ctx_hooks.conversation.handles import handle_of
tenant = tenant_key("team", "red", b"")
for n in range(int(sys.argv[2])):
    texts = [f"{n} {part} " + sys.argv[3] * 5_000 for part in range(10)]
    handles = {handle_of(tenant, text): text for text in texts}
    values = {handle: sealed(text, tenant, handle, b"") for handle, text in handles.items()}
    disk.write(Path(sys.argv[1]), tenant_name(tenant), values, 1e12, 10**9)
    print(" ".join(handles), flush=True)
"""


@pytest.fixture
def settings(tmp_path):
    return ArchiveSettings(path=str(tmp_path))


@pytest.fixture
def archive(request):
    request.getfixturevalue("patient")
    return Archive(SharedStore(), b"")


@pytest.fixture
def tenant(archive):
    return archive.tenant("key", "ann")


def writing(folder, batches, letter):
    return subprocess.Popen(
        [sys.executable, "-c", WRITING, str(folder), str(batches), letter], stdout=subprocess.PIPE, text=True
    )


def test_killed_writer_leaves_whole_batches_beside_another(tmp_path):
    killed, other = writing(tmp_path, 10_000, "x"), writing(tmp_path, 30, "y")
    told = [handle for _ in range(5) for handle in killed.stdout.readline().split()]
    killed.send_signal(signal.SIGKILL)
    told += [handle for line in other.stdout for handle in line.split()]
    killed.wait(60)
    assert other.wait(60) == 0
    stored = set(handles_in(tmp_path))
    assert stored >= set(told)
    assert len(stored) % 10 == 0
    assert all(opened(disk.read(tmp_path, NAME, handle), TENANT, handle, b"") for handle in stored)


async def test_locked_file_delays_no_request(archive, tenant, settings, tmp_path, monkeypatch):
    texts = by_handle(tenant)
    await stored(archive, settings, tenant, {"c" * 12: ""})
    with closing(sqlite3.connect(tmp_path / disk.FILE, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        archive.store(asyncio.get_running_loop(), settings, tenant, texts)
        await until(lambda: archive.writing)
        assert await got(archive, settings, tenant, texts) == texts, "they wait to be written"
        monkeypatch.setattr(archive_module, "GET_SECONDS", 0.01)
        assert await archive.get(settings, tenant, "c" * 12) is None
        other.execute("ROLLBACK")
    await settled(archive)
    assert set(handles_in(tmp_path)) == {*texts, "c" * 12}
    monkeypatch.setattr(disk, "BUSY_SECONDS", 0.01)
    with closing(sqlite3.connect(tmp_path / disk.FILE, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        assert await stored(archive, settings, tenant, {"d" * 12: "a text"}) == {"failed": 1}


async def test_lost_or_impossible_folder_fails_no_request(archive, tenant, settings, tmp_path):
    for n in range(3):
        handle = "bcd"[n] * 12
        await stored(archive, settings, tenant, {handle: "a text"})
        assert await archive.get(settings, tenant, handle) == "a text"
        shutil.rmtree(tmp_path)
        assert await archive.get(settings, tenant, handle) is None
        assert not tmp_path.exists(), "reading makes no file"
    tmp_path.write_text("no folder")
    assert await stored(archive, settings, tenant, {"e" * 12: "a text"}) == {"failed": 1}
    assert await archive.get(settings, tenant, "e" * 12) is None


@pytest.mark.parametrize("held", [b"no file of SQLite's" * 1_000, b"SQLite format 3\0" + b"\xff" * 8_000, "damaged pages"])
async def test_damaged_file_begins_anew(archive, settings, tmp_path, held, caplog):
    path, tenant = tmp_path / disk.FILE, archive.tenant("key", "ann-of-accounts")
    if held == "damaged pages":
        disk.write(tmp_path, NAME, {"b" * 12: b"x" * 20_000}, LATER, MANY_BYTES)
        whole = path.read_bytes()
        held = whole[:4_096] + b"\xff" * (len(whole) - 4_096)
    path.write_bytes(held)
    texts = by_handle(tenant, ["the piano is tuned", "a text"])
    with caplog.at_level(0):
        assert await stored(archive, settings, tenant, texts) == {"stored": len(texts)}
    assert await got(archive, settings, tenant, texts) == texts
    assert handles_in(tmp_path)
    said = [tenant.hex(), tenant_name(tenant), "ann-of-accounts", *texts, *texts.values()]
    assert not [word for word in said if word in caplog.text]


async def test_changed_value_is_not_available(archive, tenant, settings, tmp_path):
    await stored(archive, settings, tenant, {"b" * 12: "a text"})
    for value in (b"", b"\x01", secrets.token_bytes(100), "a text", 7, 1.5):
        with closing(sqlite3.connect(tmp_path / disk.FILE)) as file, file:
            file.execute("UPDATE texts SET sealed = ?", (value,))
        assert await archive.get(settings, tenant, "b" * 12) is None
    assert await stored(archive, settings, tenant, {"b" * 12: "a text"}) == {"stored": 1}, "what is lost is written again"
    assert await archive.get(settings, tenant, "b" * 12) == "a text", "a wrong value is no failure of the store"


@pytest.mark.parametrize(("texts", "size_bytes", "max_bytes"), [(150, 200_000, 8_000_000), (450, 1_900, 600_000)])
def test_file_stays_within_its_bound(tmp_path, texts, size_bytes, max_bytes):
    """Of two small texts on a page one lives longer: the page is not free when the other goes."""
    block = secrets.token_bytes(1_000_000)
    for n in range(texts):
        disk.write(tmp_path, NAME, {f"{n:012}": block[n : n + size_bytes]}, LATER + n + 10_000 * (n % 2), max_bytes)
        assert (tmp_path / disk.FILE).stat().st_size <= max_bytes
    assert disk.read(tmp_path, NAME, f"{texts - 1:012}")
    (kept,) = disk.tenants(tmp_path)
    assert kept.size_bytes >= 0.2 * max_bytes


def test_deleted_and_expired_texts_leave_no_trace(tmp_path, monkeypatch):
    monkeypatch.setattr(disk, "BUSY_SECONDS", 0.01)
    other = tenant_name(tenant_key("team", "blue", b""))
    values = {f"{n:012}": b"the piano is tuned" * 1_000 for n in range(20)}
    disk.write(tmp_path, NAME, values, LATER, MANY_BYTES)
    disk.write(tmp_path, other, {"a" * 12: b"the violin is not"}, LATER, MANY_BYTES)
    disk.write(tmp_path, other, {"old": b"the harp" * 100}, time.time() - 1, MANY_BYTES)
    assert (disk.prune(tmp_path), disk.prune(tmp_path)) == (1, 0)
    with closing(sqlite3.connect(tmp_path / disk.FILE, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM texts").fetchone()
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            disk.delete(tmp_path, NAME)
    assert disk.delete(tmp_path, NAME) == 20
    held = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert [word in held for word in (b"piano", b"harp", NAME.encode(), b"violin")] == [False, False, False, True]
    assert [stored.name for stored in disk.tenants(tmp_path)] == [other]
    assert disk.delete(tmp_path, NAME) == 0


def test_files_belong_to_their_user(tmp_path):
    mask = os.umask(0)
    try:
        disk.write(tmp_path / "made" / "here", NAME, {"a": b"x"}, LATER, MANY_BYTES)
    finally:
        os.umask(mask)
    folder = tmp_path / "made" / "here"
    assert S_IMODE(folder.stat().st_mode) == 0o700
    assert {S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}


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


def test_full_disk_keeps_whole_texts_until_they_expire(small_disk):
    disk.write(small_disk, NAME, {"e" * 12: b"kept"}, LATER, MANY_BYTES)
    disk.write(small_disk, NAME, {letter * 12: b"old" * 30_000 for letter in "abcd"}, time.time() - 1, MANY_BYTES)
    filled(small_disk)
    with pytest.raises(sqlite3.OperationalError):
        disk.write(small_disk, NAME, {"f" * 12: b"new" * 200_000}, LATER, MANY_BYTES)
    assert [stored.texts for stored in disk.tenants(small_disk)] == [1]
    assert disk.read(small_disk, NAME, "e" * 12) == b"kept"
