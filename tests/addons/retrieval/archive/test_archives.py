"""What was put is got by the same tenant, from any worker that shares the store, and by nobody else, whatever the store."""

import asyncio
import random
from base64 import b32encode

import pytest
from archived import by_handle, settled, store_text, stored

from ctx_hooks.addons.retrieval.archive import MOST_READ_BYTES, disk, writer
from ctx_hooks.addons.retrieval.archive.archive import Archives
from ctx_hooks.conversation.cut_texts import Handles
from ctx_hooks.policy.addon_settings import ArchiveSettings
from ctx_hooks.store import sealing
from ctx_hooks.store.sealing import LARGEST_TEXT_BYTES, tenant_key
from ctx_hooks.store.shared_store import SharedStore
from ctx_hooks.telemetry.listeners import on

AT_ONCE = 20
PATIENT_SECONDS = 30.0


async def test_what_was_put_is_got_at_once_and_once_it_is_stored(one, tenant, settings, texts_told):
    texts = by_handle(tenant)
    one.put(settings, tenant, texts)
    assert {handle: await one.get(settings, tenant, handle) for handle in texts} == texts
    assert await settled(one, settings, tenant)
    assert {handle: await one.get(settings, tenant, handle) for handle in texts} == texts
    assert texts_told["stored"] == len(texts) + 1


async def test_another_worker_and_a_restarted_one_get_it(worker, settings, backend):
    one, other = worker(), worker()
    tenant = one.tenant("key", "ann")
    texts = by_handle(tenant)
    await stored(one, settings, tenant, texts)
    shared = {} if backend == "memory" else texts  # what is in memory is one process's own
    found = {handle: await other.get(settings, tenant, handle) for handle in texts}
    assert {handle: text for handle, text in found.items() if text is not None} == shared


async def got(archives, settings, tenant, handles):
    """Return what is got of many handles, as many requests at once ask for them."""
    found = set()
    for start in range(0, len(handles), AT_ONCE):
        found |= set(await asyncio.gather(*(archives.get(settings, tenant, h) for h in handles[start : start + AT_ONCE])))
    return found


@pytest.mark.parametrize("secret", [b"a secret of the operator"], indirect=True)
async def test_foreign_and_guessed_handles_are_not_available(worker, settings):
    one, draw = worker(), random.Random(7)
    ann, bob = one.tenant("key", "ann"), one.tenant("key", "bob")
    texts = by_handle(ann, [f"text {n}" for n in range(200)])
    await stored(one, settings, ann, texts)
    foreign = list(texts)
    guessed = [b32encode(draw.randbytes(8))[:12].decode().lower() for _ in range(1_000)]
    malformed = ["", "x", foreign[0].upper(), "*", "a" * 10_000, "../../../etc", "%", None, 7, b"a" * 12]
    assert await got(one, settings, bob, foreign) == {None}
    assert await got(one, settings, ann, guessed + malformed) == {None}
    assert await one.get(settings, ann, foreign[0]) == texts[foreign[0]]


async def test_of_another_scope_or_kind_the_same_id_is_another_tenant(worker, settings):
    one = worker()
    team = one.tenant("team", "red")
    one.put(settings, team, texts := by_handle(team))
    for kind in ("key", "organization", "user", "nobody"):
        assert one.tenant(kind, "red") != team
        assert {await one.get(settings, one.tenant(kind, "red"), handle) for handle in texts} == {None}


async def test_another_secret_gets_nothing(one, tenant, settings, backend, request):
    if backend == "memory":
        pytest.skip("its secret ends with its process")
    await stored(one, settings, tenant, texts := by_handle(tenant))
    cache = request.getfixturevalue("redis_cache") if backend == "redis" else None
    other = Archives(SharedStore(lambda: cache), b"another secret")
    for asked in (tenant, other.tenant("key", "ann")):
        assert {await other.get(settings, asked, handle) for handle in texts} == {None}


async def test_a_record_is_replaced_by_what_is_stored_in_its_place(one, tenant, settings):
    handle = Handles(tenant).of("the record of a conversation")
    for text in ("first", "second", "third, which is longer"):
        assert await store_text(one, settings, tenant, handle, text)
        assert await one.get(settings, tenant, handle) == text


async def test_of_two_records_that_wait_the_newer_is_got(worker, settings):
    one = worker()
    tenant, longer = one.tenant("key", "ann"), settings.model_copy(update={"retention_days": 30})
    first = asyncio.ensure_future(store_text(one, settings, tenant, "b" * 12, "first"))
    second = asyncio.ensure_future(store_text(one, longer, tenant, "b" * 12, "second"))
    assert await first
    assert await one.get(settings, tenant, "b" * 12) == "second"
    assert await second
    assert await one.get(settings, tenant, "b" * 12) == "second"


async def test_what_was_stored_lately_is_not_stored_again_until_it_is_lost_or_half_its_time_is_over(
    one, tenant, settings, monkeypatch, texts_told
):
    texts = by_handle(tenant)
    one.put(settings, tenant, texts)
    await stored(one, settings, tenant, texts)
    await stored(one, settings, tenant, texts)
    assert texts_told == {"stored": len(texts) + 2}
    monkeypatch.setattr(writer, "KNOWN_FRACTION", 0.0)
    await stored(one, settings, tenant, texts)
    assert texts_told == {"stored": 2 * len(texts) + 3}


@pytest.mark.parametrize("backend", ["disk"], indirect=True)
async def test_a_text_that_the_store_has_lost_is_stored_again(one, tenant, settings, tmp_path):
    ((handle, text),) = by_handle(tenant, ["a text"]).items()
    await stored(one, settings, tenant, {handle: text})
    for file in tmp_path.iterdir():
        file.unlink()
    assert await one.get(settings, tenant, handle) is None
    await stored(one, settings, tenant, {handle: text})
    assert await one.get(settings, tenant, handle) == text


async def test_what_is_too_large_is_dropped_and_the_rest_is_stored(one, tenant, settings, texts_told):
    too_large = ["x" * (LARGEST_TEXT_BYTES + 1), "琴" * (LARGEST_TEXT_BYTES // 3)]
    texts = by_handle(tenant, [*too_large, "a text"])
    await stored(one, settings, tenant, texts)
    assert (texts_told["dropped"], texts_told["stored"]) == (2, 2)
    assert [await one.get(settings, tenant, handle) for handle in texts] == [None, None, "a text"]
    assert not await store_text(one, settings, tenant, "b" * 12, too_large[0])


async def test_more_than_the_queue_holds_is_dropped_and_told_by_one_event(worker, settings, monkeypatch):
    one = worker()
    monkeypatch.setattr(writer, "QUEUE_BYTES", 100_000)
    tenant = one.tenant("key", "ann")
    texts = by_handle(tenant, [f"{n:4}" + "x" * 10_000 for n in range(50)])
    told = []
    end = on("archive", told.append)
    one.put(settings, tenant, texts)
    end()
    assert [(event.outcome, event.texts) for event in told] == [("dropped", 41)]
    assert await one.get(settings, tenant, next(iter(texts))) is not None
    await settled(one, settings, tenant)
    found = [await one.get(settings, tenant, handle) for handle in texts]
    assert found[:9] == list(texts.values())[:9]
    assert set(found[9:]) == {None}
    for handle, text in texts.items():
        assert await store_text(one, settings, tenant, handle, text), "what is written makes room"


@pytest.mark.usefixtures("patient")
async def test_backends_and_folders_are_places_of_their_own(tmp_path):
    one = Archives(SharedStore(), b"")
    places = [ArchiveSettings(), *(ArchiveSettings(backend="disk", path=str(tmp_path / name)) for name in "ab")]
    tenant = one.tenant("key", "ann")
    for n, settings in enumerate(places):
        assert await store_text(one, settings, tenant, "b" * 12, str(n))
    assert [await one.get(settings, tenant, "b" * 12) for settings in places] == ["0", "1", "2"]


@pytest.mark.usefixtures("patient")
async def test_policies_of_other_figures_share_a_place(tmp_path):
    one = Archives(SharedStore(), b"")
    tenant = one.tenant("key", "ann")
    for name, figures in (("b", {}), ("c", {"max_bytes": 9_000_000}), ("d", {"retention_days": 1})):
        settings = ArchiveSettings(backend="disk", path=str(tmp_path), **figures)
        one.put(settings, tenant, {name * 12: name})
    settings = ArchiveSettings(backend="disk", path=str(tmp_path))
    assert await settled(one, settings, tenant)
    assert [await one.get(settings, tenant, name * 12) for name in "bcd"] == ["b", "c", "d"]
    (stored,) = disk.tenants(tmp_path)
    assert round((stored.last_expires_at - stored.first_expires_at) / 86_400) == 6


@pytest.mark.parametrize("backend", ["memory", "disk"], indirect=True)
async def test_an_expired_text_is_not_available(worker, tmp_path, backend):
    one, settings = worker(), ArchiveSettings(backend=backend, path=str(tmp_path), retention_days=1e-11)
    tenant = one.tenant("key", "ann")
    assert await store_text(one, settings, tenant, "b" * 12, "a text")
    assert await one.get(settings, tenant, "b" * 12) is None


@pytest.mark.parametrize("backend", ["memory", "disk"], indirect=True)
async def test_however_much_and_long_another_tenant_keeps_none_that_has_less_loses_a_text(backend, tmp_path, monkeypatch):
    """Redis has a bound for each tenant."""
    monkeypatch.setattr(sealing, "ZLIB_LEVEL", 0)
    one = Archives(SharedStore(), b"")
    shared = ArchiveSettings(backend=backend, path=str(tmp_path), max_bytes=8_000_000)
    days = {"ann": 1.0, "bob": 365.0}
    settings = {name: shared.model_copy(update={"retention_days": kept}) for name, kept in days.items()}
    ann, bob = (one.tenant("key", name) for name in settings)
    kept = by_handle(ann, [f"ann {n} " * 10_000 for n in range(30)])  # 2.3 MB
    await stored(one, settings["ann"], ann, kept)
    for batch in range(12):
        flood = by_handle(bob, [f"bob {batch} {n} " * 20_000 for n in range(5)])
        await stored(one, settings["bob"], bob, flood)
    assert await got(one, settings["ann"], ann, list(kept)) == set(kept.values())
    assert await got(one, settings["bob"], bob, list(flood)) == set(flood.values())


@pytest.mark.parametrize("alike", [True, False], ids=["compressed to nothing", "as large as they are"])
async def test_what_one_request_can_have_read_is_bounded_and_comes_in_its_order(one, tenant, settings, alike):
    """A turn may call for 50 texts, each of up to 4 MB: read at once they would take the worker 200 MB."""
    parts = ["x" * 3_900_000 if alike else random.Random(n).randbytes(1_950_000).hex() for n in range(6)]
    texts = by_handle(tenant, [f"{n}{part}" for n, part in enumerate(parts)])
    await stored(one, settings, tenant, texts)
    wanted = list(reversed(texts))
    found = await one.get_all(settings, tenant, wanted)
    assert list(found) == wanted[: len(found)]
    assert 0.7 * MOST_READ_BYTES < sum(map(len, found.values())) < MOST_READ_BYTES + LARGEST_TEXT_BYTES
    assert all(text == texts[handle] for handle, text in found.items())


class Hanging:
    """A store that says when it is written to, and never answers."""

    def __init__(self):
        self.begun = asyncio.Event()

    async def write(self, tenant, sealed, kept_seconds, max_bytes):
        self.begun.set()
        await asyncio.Event().wait()

    async def read(self, tenant, handles):
        return {}


async def test_a_writer_that_is_cancelled_lets_go_of_its_batch():
    store = Hanging()
    cancelled = writer.Writer(store, b"")
    settings, tenant, handle = ArchiveSettings(), tenant_key("key", "ann", b""), "b" * 12
    written = cancelled.add(settings, tenant, {handle: "b text"}).written
    await store.begun.wait()
    assert cancelled.waiting(tenant, handle) == "b text"
    cancelled._running.cancel()  # noqa: SLF001 - as a loop does that ends
    await asyncio.wait({written}, timeout=PATIENT_SECONDS)
    assert written.result() is False
    assert cancelled.waiting(tenant, handle) is None
    assert cancelled._bytes == 0  # noqa: SLF001 - what could grow
    store.begun.clear()
    assert cancelled.add(settings, tenant, {handle: "b text"})
    await store.begun.wait()
    cancelled._running.cancel()  # noqa: SLF001
