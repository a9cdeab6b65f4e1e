"""The owner gets a stored text, from any worker that shares the store, and nobody else gets it, whatever the store."""

import asyncio
import gc
import random
import tempfile
from base64 import b32encode
from stat import S_IMODE

import pytest
from archived import TEXTS, by_handle, got, settled, stored

from ctx_hooks.addons.retrieval.archive import archive, disk
from ctx_hooks.addons.retrieval.archive.archive import Archive
from ctx_hooks.policy.addon_settings import ArchiveSettings
from ctx_hooks.store import sealing
from ctx_hooks.store.sealing import LARGEST_TEXT_BYTES
from ctx_hooks.store.shared_store import SharedStore


async def test_owner_gets_a_text_from_any_worker(worker, settings, backend):
    one, other = worker(), worker()
    tenant = one.tenant("key", "ann")
    texts = by_handle(tenant)
    await asyncio.to_thread(one.store, asyncio.get_running_loop(), settings, tenant, texts)
    assert await got(one, settings, tenant, texts) == texts, "before it is written"
    await settled(one)
    assert await got(one, settings, tenant, texts) == texts
    assert await got(other, settings, tenant, texts) == ({} if backend == "process" else texts)


@pytest.mark.parametrize("secret", [b"a secret of the operator"], indirect=True)
async def test_nobody_else_gets_a_text(worker, settings):
    one, other, draw = worker(), worker(b"another secret"), random.Random(7)
    ann = one.tenant("key", "ann")
    await stored(one, settings, ann, texts := by_handle(ann))
    guessed = [b32encode(draw.randbytes(8))[:12].decode().lower() for _ in range(100)]
    assert await got(one, settings, ann, guessed) == {}
    for kind, identifier in (("key", "bob"), ("team", "ann"), ("organization", "ann"), ("user", "ann"), ("nobody", "")):
        assert await got(one, settings, one.tenant(kind, identifier), texts) == {}
    for asked in (ann, other.tenant("key", "ann")):
        assert await got(other, settings, asked, texts) == {}


async def test_lost_or_half_expired_text_is_written_again(one, tenant, settings, monkeypatch):
    texts = by_handle(tenant)
    assert await stored(one, settings, tenant, texts) == {"stored": len(texts)}
    assert await stored(one, settings, tenant, texts) == {}
    monkeypatch.setattr(sealing, "LARGEST_TEXT_BYTES", -1)  # no text opens
    assert await got(one, settings, tenant, texts) == {}
    monkeypatch.undo()
    monkeypatch.setattr(archive, "WRITTEN_FRACTION", 0.0)
    for _ in range(2):
        assert await stored(one, settings, tenant, texts) == {"stored": len(texts)}


async def test_text_that_is_too_large_is_dropped(one, tenant, settings):
    too_large = ["x" * (LARGEST_TEXT_BYTES + 1), "琴" * (LARGEST_TEXT_BYTES // 3)]
    texts = by_handle(tenant, [*too_large, "a text"])
    assert await stored(one, settings, tenant, texts) == {"dropped": 2, "stored": 1}
    assert list((await got(one, settings, tenant, texts)).values()) == ["a text"]


@pytest.mark.parametrize("backend", ["disk"], indirect=True)
async def test_queue_is_bounded(one, tenant, settings, monkeypatch):
    monkeypatch.setattr(archive, "QUEUE_BYTES", 100_000)
    texts = by_handle(tenant, [f"{n:4}" + "x" * 10_000 for n in range(50)])
    assert await stored(one, settings, tenant, texts) == {"dropped": 41, "stored": 9}
    assert await stored(one, settings, tenant, dict(list(texts.items())[9:18])) == {"stored": 9}, "written texts make room"


@pytest.mark.usefixtures("patient")
async def test_folder_of_the_process_ends_with_it(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    one, settings = Archive(SharedStore(), b""), ArchiveSettings(path=None)
    tenant = one.tenant("key", "ann")
    await stored(one, settings, tenant, texts := by_handle(tenant))
    (folder,) = list(tmp_path.iterdir())
    assert S_IMODE(folder.stat().st_mode) == 0o700
    as_in_a_shared_folder = ArchiveSettings(path=str(folder))
    assert await got(Archive(SharedStore(), b""), as_in_a_shared_folder, tenant, texts) == {}, "its key is random"
    del one
    gc.collect()
    assert not folder.exists()


async def test_expired_text_is_not_available(worker, settings, backend):
    if backend == "redis":
        pytest.skip("a retention is at least a second there")
    one, settings = worker(), settings.model_copy(update={"retention_days": 1e-11})
    tenant = one.tenant("key", "ann")
    await stored(one, settings, tenant, texts := by_handle(tenant))
    assert await got(one, settings, tenant, texts) == {}


@pytest.mark.usefixtures("patient")
async def test_tenant_that_keeps_much_costs_others_no_text(tmp_path, monkeypatch):
    monkeypatch.setattr(sealing, "ZLIB_LEVEL", 0)
    one = Archive(SharedStore(), b"")
    settings = ArchiveSettings(path=str(tmp_path), max_bytes=8_000_000)
    ann, bob = (one.tenant("key", name) for name in ("ann", "bob"))
    kept = by_handle(ann, [f"ann {n} " * 10_000 for n in range(30)])  # 2.3 MB
    await stored(one, settings, ann, kept)
    for batch in range(12):
        flood = by_handle(bob, [f"bob {batch} {n} " * 20_000 for n in range(5)])
        await stored(one, settings.model_copy(update={"retention_days": 365.0}), bob, flood)
    assert await got(one, settings, ann, kept) == kept
    assert await got(one, settings, bob, flood) == flood


async def test_cancelled_writer_releases_its_texts(monkeypatch):
    one, settings = Archive(SharedStore(), b""), ArchiveSettings(path=None)
    tenant, begun = one.tenant("key", "ann"), asyncio.Event()

    async def hang(*_):
        begun.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(disk.Disk, "write", hang)
    for _ in range(2):
        begun.clear()
        one.store(asyncio.get_running_loop(), settings, tenant, {"b" * 12: TEXTS[0]})
        await begun.wait()
        assert await one.get(settings, tenant, "b" * 12) == TEXTS[0]
        (task,) = one.writing
        task.cancel()
        await settled(one)
        assert await one.get(settings, tenant, "b" * 12) is None
