"""What happens to the two planes on the way: the same to both, at the same moment."""

from __future__ import annotations

import io
import subprocess
import tarfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import redis
from services import PLANES, ROOT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from balancer import Balancer
    from database_process import DatabaseProcess
    from redis_process import RedisProcess
    from services import Service, Worker

OLDER = "eb0b138"
"""The last commit whose workers write no newest refusal into Redis."""
SLOW_SECONDS = 0.5
FULL_BYTES = 1_000_000
DRAIN_SECONDS = 5.0


@dataclass
class Bench:
    """What the faults act on.

    Attributes:
        workers: of both planes.
        balancer: before them.
        relays: before each plane's Redis.
        provider: of both planes.
        masters, replicas: each plane's.
        database: of both planes.
        older: a source tree with another version of the plugin.
    """

    workers: list[Worker]
    balancer: Balancer
    relays: Service
    provider: Service
    masters: dict[str, RedisProcess]
    replicas: dict[str, RedisProcess]
    database: DatabaseProcess
    older: Path

    def ended(self) -> dict[str, int]:
        """Return the exit statuses of what is no worker and does not run; before the faults everything runs."""
        found = {"HAProxy": self.balancer.status, "the provider": self.provider.status, "the relays": self.relays.status}
        for name, servers in (("Redis", self.masters), ("the replica", self.replicas)):
            found |= {f"{name} of {plane}": server._process.poll() for plane, server in servers.items()}  # noqa: SLF001
        return {name: status for name, status in found.items() if status is not None}

    def redis_work(self, plane: str) -> dict[str, float]:
        """Return the plane's Redis' commands, those in scripts included, scripts and processor seconds so far.

        Raises:
            redis.RedisError: it is down.
        """
        with connected(self.masters[plane]) as client:
            stats, cpu = client.info("commandstats"), client.info("cpu")
        return {
            "commands": sum(found["calls"] for found in stats.values()),
            "scripts": sum(stats.get(f"cmdstat_{name}", {"calls": 0})["calls"] for name in ("eval", "evalsha")),
            "processor_seconds": cpu["used_cpu_user"] + cpu["used_cpu_sys"],
        }

    def roll(self, plane: str, tree: Path) -> None:
        """Restart a plane's workers one after another, each without new requests, with the plugin of a source tree."""
        for worker in (w for w in self.workers if w.plane == plane):
            self.balancer.set_state(worker, "drain")
            time.sleep(DRAIN_SECONDS)
            worker.stop()
            worker.start(tree)
            self.balancer.set_state(worker, "ready")
            self.balancer.wait_until_up(worker)


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault by its name: what begins it and what ends it."""

    name: str
    begin: Callable[[], Any]
    end: Callable[[], Any]


def connected(server: RedisProcess) -> redis.Redis[bytes]:
    """Return a client of a Redis."""
    return redis.Redis(port=server.port, socket_timeout=5)


def older_tree(folder: Path, commit: str) -> Path:
    """Write the package as it was at a commit, and return the folder."""
    packed = subprocess.run(["git", "archive", commit, "ctx_hooks"], cwd=ROOT, check=True, capture_output=True)  # noqa: S603, S607
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as files:
        files.extractall(folder, filter="data")
    return folder


def each(work: Callable[[Any], Any], over: Any) -> None:
    """Do work for all at the same time."""
    with ThreadPoolExecutor() as pool:
        list(pool.map(work, over))


def faults(bench: Bench) -> Iterator[Fault]:
    """Yield the faults in the order in which they come."""

    def start_again(worker: Worker) -> None:
        worker.start()
        bench.balancer.wait_until_up(worker)

    second = [next(w for w in bench.workers[::-1] if w.plane == plane) for plane in PLANES]
    yield Fault("a worker is killed", lambda: each(lambda w: w.kill(), second), lambda: each(start_again, second))

    def delayed(seconds: float) -> Callable[[], None]:
        return lambda: each(lambda plane: bench.relays.tell(plane, "delay_seconds", seconds), PLANES)

    yield Fault(f"Redis answers {SLOW_SECONDS:g} s late", delayed(SLOW_SECONDS), delayed(0.0))

    def bounded(most_bytes: int) -> Callable[[], None]:
        def bound() -> None:
            for plane in PLANES:
                with connected(bench.masters[plane]) as client:
                    client.config_set("maxmemory", most_bytes)

        return bound

    yield Fault("Redis is full (`noeviction`)", bounded(FULL_BYTES), bounded(0))

    def fail_over() -> None:
        for plane in PLANES:
            bench.masters[plane].kill()
            time.sleep(1.0)  # an orchestrator needs longer to notice
            with connected(bench.replicas[plane]) as client:
                client.replicaof("NO", "ONE")
            bench.relays.tell(plane, "target_port", bench.replicas[plane].port)
            bench.masters[plane], bench.replicas[plane] = bench.replicas[plane], bench.masters[plane]

    yield Fault("Redis fails over to its replica", fail_over, lambda: None)
    kill, start = (lambda: [m.kill() for m in bench.masters.values()]), (lambda: [m.start() for m in bench.masters.values()])
    yield Fault("Redis is gone, and comes back empty", kill, start)
    stop, again = (lambda: bench.database.stop("immediate")), bench.database.start
    yield Fault("PostgreSQL is gone, and comes back", stop, again)
    yield Fault(
        "a rolling restart to an older version, and back",
        lambda: each(lambda plane: bench.roll(plane, bench.older if plane == "with" else ROOT), PLANES),
        lambda: bench.roll("with", ROOT),
    )
