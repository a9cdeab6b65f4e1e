"""Two planes under the same load, one with the plugin: what it costs, whether an answer is ever wrong, and what faults do.

    uv run python benchmarks/soak/run.py [--minutes 30] [--rate 2.5] [--sessions 200]
    uv run python benchmarks/soak/run.py --results FILE --print-only

Needs haproxy, redis-server, PostgreSQL and Node.js, as the tests of the database do (tests/README.md), and git for the older
version. Everything runs on loopback, at free ports, and ends with the command.

A plane is two LiteLLM workers behind HAProxy, with a Redis of its own and a common PostgreSQL, which has the tenants' keys.
Each step of a session goes to both planes, one after the other, in an order that is drawn: noise of the machine falls
on both, and the figures are ratios. The provider answers with the nonce of the newest message that it got; an answer
that is not the one to its request is counted as wrong, and a request that holds texts of two sessions as mixed.

The time is divided: warming up, a quiet phase from which the figures of the tables come, the faults, and each request size
one at a time to one worker a plane in turn. Prints its tables at the end.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import logging
import multiprocessing
import signal
import sys
import tempfile
import time
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from statistics import fmean
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[2] / "tests"))

import httpx
import redis
from balancer import Balancer
from database_process import DatabaseProcess
from driver import Driver
from faults import OLDER, Bench, connected, each, faults, older_tree
from figures import PLANES, affinity, ends, loops, percentile, resources, times
from figures import faults as of_faults
from page import page
from redis_process import RedisProcess
from services import WATCH, Worker, configuration, provider, relays
from session_memory import session_bytes
from workload import RECORDED_CHARS, SIZES, Session, generated, recorded

from ctx_hooks.runtime.content_cache import DEFAULT_LIMIT_BYTES
from ctx_hooks.testing import MASTER_KEY

ROOT = Path(__file__).resolve().parents[2]
WORKERS = 2
TENANTS = 30
SAMPLE_SECONDS = 5.0
WARM_SHARE, QUIET_SHARE, SIZES_SHARE = 0.06, 0.44, 0.08
"""Of the time; the faults have the rest, half of each one's share after its end."""
LEAST_SECONDS = 6.0
ODD_DECISIONS = ("failed", "gaveup")
"""The results keep the steps that ended so: somebody has to look at them."""
BATCH = 5
RESULTS = ROOT / "benchmarks" / "soak" / "results.json"


async def sampled(bench: Bench, samples: list[dict[str, Any]]) -> None:
    """Add a sample every few seconds."""

    def redis_work(plane: str) -> dict[str, float] | None:
        try:
            return bench.redis_work(plane)
        except redis.RedisError:
            return None  # a fault

    while True:
        workers = {p: {w.name: found for w in bench.workers if w.plane == p and (found := w.figures())} for p in PLANES}
        seen = {plane: await asyncio.to_thread(redis_work, plane) for plane in PLANES}
        samples.append({"at": time.time(), "workers": workers, "redis": seen})
        await asyncio.sleep(SAMPLE_SECONDS)


async def watched(bench: Bench, ended: list[dict[str, Any]], windows: list[dict[str, Any]]) -> None:
    """Note each process that ends outside a fault, and start a worker again, as an orchestrator does."""
    while True:
        known = {found["name"] for found in ended}
        found = [] if windows else [{"name": n, "at": time.time(), "status": s} for n, s in bench.ended().items()]
        ended += [end for end in found if end["name"] not in known]
        for worker in bench.workers:
            if (end := worker.ended()) is not None:
                print(
                    f"{time.strftime('%X')} {worker.name} ended with {end['status']}",
                    *end["last_lines"],
                    sep="\n  ",
                    flush=True,
                )
                ended.append(end | {"killed_for_memory": killed_for_memory()})
                await asyncio.to_thread(worker.start)
        await asyncio.sleep(1)


def killed_for_memory() -> int:
    """Return how many processes of this machine the kernel has ended since its start because memory was used up."""
    counts = dict(line.split() for line in Path("/proc/vmstat").read_text(encoding="ascii").splitlines())
    return int(counts.get("oom_kill", 0))


async def on_the_way(bench: Bench, seconds: float, windows: list[dict[str, Any]]) -> None:
    """Begin and end each fault in its part of the time."""
    listed = list(faults(bench))
    for fault in listed:
        window: dict[str, Any] = {"name": fault.name, "begin": time.time()}
        windows.append(window)
        print(f"{time.strftime('%X')} {fault.name}", flush=True)
        for act in (fault.begin, fault.end):
            began = time.monotonic()
            try:
                await asyncio.to_thread(act)
            except Exception as error:  # noqa: BLE001 - the soak goes on, and says what failed
                window["error"] = f"{type(error).__name__}: {error}"[-300:]
            window["end"] = time.time()
            share = max(LEAST_SECONDS, seconds / len(listed) / 2)
            await asyncio.sleep(max(LEAST_SECONDS / 2, share - (time.monotonic() - began)))
        window["until"] = time.time()


async def each_size(driver: Driver, bench: Bench, seconds: float) -> dict[str, Any]:
    """Return times and processor time of each size, one request at a time to the first worker of each plane in turn.

    The first request of a session finds nothing that the worker knows, and the next ones all but the newest messages.
    """
    found: dict[str, Any] = {}
    first = {plane: next(w for w in bench.workers if w.plane == plane) for plane in PLANES}
    number = 1_000_000
    for size in SIZES:
        end = time.monotonic() + seconds / len(SIZES)
        kept: dict[str, dict[str, list[float]]] = {
            p: {k: [] for k in ("first", "next", "first_used", "used")} for p in PLANES
        }
        while time.monotonic() < end or not kept["without"]["next"]:
            sessions = [Session(number + n, TENANTS, "wide", size) for n in range(BATCH)]
            number += BATCH
            for name, used in (("first", "first_used"), ("next", "used"), ("next", "used")):
                steps = [session.step() for session in sessions]
                for plane in PLANES if number // BATCH % 2 else PLANES[::-1]:
                    before = first[plane].figures()
                    outcomes = [await driver.ask(plane, first[plane].url, step) for step in steps if not step.leaves]
                    after = first[plane].figures()
                    kept[plane][name] += [o.seconds for o in outcomes if o.is_plain]
                    if before and after and outcomes:
                        kept[plane][used] += [(after["processor_seconds"] - before["processor_seconds"]) / len(outcomes)]
        found[size] = {
            plane: {
                "answers": len(of["next"]),
                "median_ms": (percentile(of["next"], 0.5) or 0) * 1e3,
                "first_median_ms": (percentile(of["first"], 0.5) or 0) * 1e3,
                "processor_ms": sum(of["used"]) / len(of["used"]) * 1e3,
                "first_processor_ms": sum(of["first_used"]) / len(of["first_used"]) * 1e3,
            }
            for plane, of in kept.items()
        }
    return found


async def driven(bench: Bench, keys: list[str], arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the results of all phases."""
    sessions: list[Any] = list(generated(arguments.sessions, TENANTS))
    sessions += recorded(_recorded(arguments.recorded), arguments.sessions, TENANTS)
    samples: list[dict[str, Any]] = []
    windows: list[dict[str, Any]] = []
    ended: list[dict[str, Any]] = []
    found = [(w.plane, figures["resident_bytes"] / 1e6) for w in bench.workers if (figures := w.figures())]
    started = {plane: fmean(mb for of, mb in found if of == plane) for plane in PLANES}
    urls = {plane: f"http://127.0.0.1:{port}" for plane, port in bench.balancer.ports.items()}
    seconds = arguments.minutes * 60
    aside = [asyncio.create_task(sampled(bench, samples)), asyncio.create_task(watched(bench, ended, windows))]
    async with Driver(urls, keys, sessions) as driver:
        await driver.run(seconds * WARM_SHARE, arguments.rate / 2)
        quiet_from = time.time()
        await driver.run(seconds * QUIET_SHARE, arguments.rate)
        quiet = (quiet_from, time.time())
        kept = stored(bench.masters["with"])
        by_size = await each_size(driver, bench, seconds * SIZES_SHARE)
        measured = len(driver.outcomes)
        if not arguments.no_faults:
            faulty = seconds * (1 - WARM_SHARE - QUIET_SHARE - SIZES_SHARE)
            acting = asyncio.create_task(on_the_way(bench, faulty, windows))
            await driver.run(0, arguments.rate, acting)
            await acting
    for task in aside:
        if task.done():
            task.result()  # raises what ended it
        task.cancel()
    lines = {
        w.name: [json.loads(line) for line in w.loop_file.read_text(encoding="utf-8").splitlines()] for w in bench.workers
    }
    plain = [o for o in driver.outcomes[:measured] if o.at >= quiet_from]
    not_right = (("with", "refused"), *((plane, end) for plane in PLANES for end in ("wrong", "mixed", "error")))
    strange = [o for o in driver.outcomes if (o.plane, o.end) in not_right or o.decision in ODD_DECISIONS]
    strange.sort(key=lambda o: o.end == "error")  # there may be hundreds of these
    return {
        "minutes": arguments.minutes, "rate": arguments.rate, "sessions": len(sessions), "workers": WORKERS,
        "tenants": TENANTS,
        "cache_bytes": DEFAULT_LIMIT_BYTES, "late_steps": driver.late_steps, "seconds": quiet[1] - quiet[0],
        "quiet": resources(samples, driver.outcomes, quiet), "ends": ends(driver.outcomes), "quiet_ends": ends(plain),
        "times": {size: times(plain, lambda o, s=size: o.kind == "wide" and o.size == s) for size in [*SIZES, "image"]},
        "recorded": times(plain, lambda o: o.size == "recorded"),
        "compressed": times(plain, lambda o: o.kind == "tight" and o.size != "recorded"),
        "loops": loops(lines, quiet), "affinity": affinity(plain), "by_size": by_size, "redis": kept,
        "faults": of_faults(driver.outcomes, windows),
        "ended_alone": ended, "decisions": Counter(o.decision for o in driver.outcomes), "started_mb": started,
        "strange": [asdict(o) for o in strange[:50]], "samples": samples,
    }  # fmt: skip


def _recorded(folder: Path | None) -> list[tuple[Any, list[dict[str, Any]]]]:
    """Return recorded sessions, none where there is no folder: each file's first three."""
    if folder is None or not folder.exists():
        return []
    found = []
    for file in sorted(folder.glob("*.jsonl")):
        for line in file.read_text(encoding="utf-8").splitlines()[:3]:
            session = json.loads(line)
            if isinstance(session.get("messages"), list) and session.get("format") in ("openai-chat", "anthropic"):
                found.append((session["format"], session["messages"][:RECORDED_CHARS]))
    return found


def stored(server: RedisProcess) -> dict[str, float]:
    """Return what the plugin keeps in Redis."""
    with connected(server) as client:
        sizes = [int(client.memory_usage(key) or 0) for key in client.scan_iter("*ctx_hooks:*")]
    return {"keys": len(sizes), "bytes": sum(sizes), "bytes_a_deployment": sum(sizes) / max(1, len(sizes))}


def keys_of(worker: Worker) -> list[str]:
    """Return a key of each of the tenants, made by LiteLLM's API."""
    keys = []
    with httpx.Client(base_url=worker.url, headers={"Authorization": f"Bearer {MASTER_KEY}"}, timeout=60) as client:
        for n in range(TENANTS):
            team = client.post("/team/new", json={"team_alias": f"team {n}"}).raise_for_status().json()["team_id"]
            keys.append(client.post("/key/generate", json={"team_id": team}).raise_for_status().json()["key"])
    return keys


def soak(arguments: argparse.Namespace) -> dict[str, Any]:
    """Start everything, drive it, and stop everything."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ctx_hooks_soak_")))
        (folder / "soak_watch.py").write_text(WATCH, encoding="utf-8")
        served = stack.enter_context(provider())
        masters = {p: stack.enter_context(RedisProcess()) for p in PLANES}
        replicas = {p: stack.enter_context(RedisProcess("--dir", folder, "--dbfilename", p)) for p in PLANES}
        for plane in PLANES:
            with connected(replicas[plane]) as client:
                client.replicaof("127.0.0.1", masters[plane].port)
        relayed = stack.enter_context(relays({p: masters[p].port for p in PLANES}))
        database = stack.enter_context(DatabaseProcess())
        workers = [
            Worker(plane, n, configuration(plane, served.answer, relayed.answer[plane]), folder, database.environment())
            for n in range(WORKERS)
            for plane in PLANES
        ]
        for worker in workers:
            stack.callback(worker.stop)
        for n in range(0, len(workers), len(PLANES)):
            each(lambda worker: worker.start(), workers[n : n + len(PLANES)])
        print(f"{time.strftime('%X')} {len(workers)} workers run", flush=True)
        balancer = stack.enter_context(Balancer(workers, folder))
        older = older_tree(folder / "older", arguments.older)
        bench = Bench(workers, balancer, relayed, served, masters, replicas, database, older)
        results = asyncio.run(driven(bench, keys_of(workers[0]), arguments))
        for worker in workers:
            worker.stop()
        results["log"] = {w.name: w.log_lines.most_common(20) for w in workers}
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        results["session_bytes"] = pool.apply(session_bytes)
    return results


def main() -> None:
    """Measure, save and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--rate", type=float, default=2.5, help="steps a second; each is a request to both planes")
    parser.add_argument("--sessions", type=int, default=200)
    parser.add_argument("--recorded", type=Path, default=ROOT.parent / "shared" / "trajectories")
    parser.add_argument("--older", default=OLDER, help="the commit that a rolling restart goes back to")
    parser.add_argument("--no-faults", action="store_true")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--print-only", action="store_true", help="print the tables of an earlier run")
    arguments = parser.parse_args()
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended from outside"))  # so that what runs is stopped
    if not arguments.print_only:
        results = soak(arguments)
        arguments.results.write_text(json.dumps(results, indent=1), encoding="utf-8")
    print(page(json.loads(arguments.results.read_text(encoding="utf-8"))))


if __name__ == "__main__":
    main()
