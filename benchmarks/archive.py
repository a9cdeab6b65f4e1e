"""What the archive costs a request: writing what was cut, fetching one text again, and what 1 GB of cuts leaves behind.

    uv run python benchmarks/archive.py [--redis-port PORT] [--megabytes 1000] [--rounds 200]

A request's cuts are 50 texts of 8 KB. Without a port Redis is left out.
"""

from __future__ import annotations

import argparse
import asyncio
import secrets
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path

from ctx_hooks.addons.retrieval.archive.archive import Archives
from ctx_hooks.conversation.cut_texts import Handles
from ctx_hooks.policy.addon_settings import ArchiveBackend, ArchiveSettings
from ctx_hooks.store import sealing
from ctx_hooks.store.shared_store import SharedStore
from ctx_hooks.telemetry.listeners import on
from ctx_hooks.testing import agent_session

TEXTS, TEXT_CHARS = 50, 8_000
RECORD = "a" * 12
SECRET = b"a secret of the operator"


def material() -> str:
    """Return some hundred KB of the text that tools return."""
    messages = agent_session("openai-chat", turns=180, result_chars=3_000)["messages"]
    return "\n".join(str(m.get("content") or "") for m in messages)


def cuts(text: str, number: int) -> list[str]:
    """Return the cuts of one request, which no other request has."""
    return [f"{number} {text[start : start + TEXT_CHARS]}" for start in range(number, number + TEXTS * 500, 500)]


TEXTS_TOLD: Counter[str] = Counter()
on("archive", lambda event: TEXTS_TOLD.update({event.outcome: event.texts}))


def lost() -> str:
    """Return how many texts of this process were not stored."""
    return f"failed {TEXTS_TOLD['failed']}, dropped {TEXTS_TOLD['dropped']}"


def told(seconds: list[float]) -> str:
    """Return median and 99th percentile in milliseconds."""
    ordered = sorted(seconds)
    return f"{statistics.median(ordered) * 1e3:6.2f} ms, p99 {ordered[int(len(ordered) * 0.99)] * 1e3:6.2f} ms"


async def timed(ask: Callable[[], Awaitable[object]], rounds: int) -> list[float]:
    """Return the seconds of each round."""
    taken = []
    for _ in range(rounds):
        started = time.perf_counter()
        await ask()
        taken.append(time.perf_counter() - started)
    return taken


async def measure(settings: ArchiveSettings, archives: Archives, rounds: int) -> None:
    """Print what writing and reading take."""
    tenant, other, text = archives.tenant("key", "ann"), archives.tenant("key", "bob"), material()
    handles = Handles(tenant)
    put, named = [], []
    requests = [cuts(text, n) for n in range(rounds)]
    for request in requests:
        started = time.perf_counter()
        by_handle = {handles.of(cut): cut for cut in request}
        named.append(time.perf_counter() - started)
        started = time.perf_counter()
        archives.put(settings, tenant, by_handle)
        put.append(time.perf_counter() - started)
        await archives.store(settings, tenant, RECORD, "the last one")
    kept = handles.of(requests[-1][7])
    print(f"  put of 50 texts      {told(put)}; their handles {told(named)}; {lost()}")
    large = text[:400_000] * (400_000 // len(text) + 1)
    await archives.store(settings, tenant, "c" * 12, large[:400_000])
    expired = settings.model_copy(update={"retention_days": 1e-12})
    await archives.store(expired, tenant, "d" * 12, "a text")
    for name, asker, handle in (
        ("8 KB", tenant, kept),
        ("400 KB", tenant, "c" * 12),
        ("foreign", other, kept),
        ("guessed", tenant, "e" * 12),
        ("expired", tenant, "d" * 12),
    ):
        print(f"  get, {name:15} {told(await timed(lambda a=asker, h=handle: archives.get(settings, a, h), rounds))}")


async def fill(settings: ArchiveSettings, megabytes: int) -> None:
    """Print how much is held after so many MB of cuts that cannot be compressed."""
    sealing.ZLIB_LEVEL = 0
    archives, block = Archives(SharedStore(), b""), secrets.token_hex(1_000_000)
    tenant = archives.tenant("key", "ann")
    handles, started = Handles(tenant), time.perf_counter()
    for n in range(megabytes * 1_000_000 // 200_000):
        text = block[n % 1_000_000 : n % 1_000_000 + 200_000]
        archives.put(settings, tenant, {handles.of(f"{n}"): text})
        if n % 50 == 49:
            await archives.store(settings, tenant, RECORD, "the last one")
    seconds = time.perf_counter() - started
    print(f"{settings.backend}: {megabytes} MB of cuts in {seconds:.1f} s, bound {settings.size_limit_bytes / 1e6:.0f} MB")
    print(f"  {lost()}")
    print(f"  resident {resident_megabytes():.0f} MB, on disk {folder_megabytes(settings.path):.1f} MB")


def folder_megabytes(path: str | None) -> float:
    """Return the size of the files in a folder, in MB."""
    return sum(file.stat().st_size for file in Path(path).iterdir()) / 1e6 if path else 0.0


def resident_megabytes() -> float:
    """Return the resident memory of this process, in MB."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * 4_096 / 1e6


async def run(redis_port: int | None, megabytes: int, rounds: int) -> None:
    """Print all figures."""
    cache, backends = None, ["memory", "disk"]
    if redis_port:
        from litellm.caching.redis_cache import RedisCache  # noqa: PLC0415 - slow to load

        cache, backends = RedisCache(host="127.0.0.1", port=redis_port), [*backends, "redis"]
    for name in backends:
        backend: ArchiveBackend = name  # type: ignore[assignment]
        for secret in (b"", SECRET):
            with tempfile.TemporaryDirectory() as folder:
                print(f"{backend}, {'with' if secret else 'without'} a key")
                settings = ArchiveSettings(backend=backend, path=folder)
                await measure(settings, Archives(SharedStore(lambda: cache), secret), rounds)
    print(f"resident {resident_megabytes():.0f} MB")
    await fill(ArchiveSettings(path=None), megabytes)
    with tempfile.TemporaryDirectory() as folder:
        settings = ArchiveSettings(backend="disk", path=folder, max_bytes=200_000_000)
        await fill(settings, megabytes)


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--redis-port", type=int, help="of a Redis that may be written to")
    parser.add_argument("--megabytes", type=int, default=1_000, help="of cuts")
    parser.add_argument("--rounds", type=int, default=200)
    given = parser.parse_args()
    asyncio.run(run(given.redis_port, given.megabytes, given.rounds))


if __name__ == "__main__":
    main()
