"""A real Prometheus that scrapes a proxy."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Callable
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import httpx
import yaml

from ctx_hooks.testing import LOOPBACK, free_port

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from proxies import Proxy

PROGRAM = shutil.which("prometheus")
STOP_SECONDS = 300


class Prometheus:
    """Asks a running Prometheus at `url`."""

    def __init__(self, url: str) -> None:
        self.url = url

    def query(self, expression: str, at_seconds: float | None = None) -> dict[frozenset[tuple[str, str]], float]:
        """Return the value of each series, by its labels without the name."""
        given = {"query": expression} | ({} if at_seconds is None else {"time": f"{at_seconds:.3f}"})
        answer = LOOPBACK.get(f"{self.url}/api/v1/query", params=given, timeout=300)
        assert answer.status_code == httpx.codes.OK, (expression, answer.text)
        series = answer.json()["data"]["result"]
        return {frozenset((k, v) for k, v in s["metric"].items() if k != "__name__"): float(s["value"][1]) for s in series}

    def scraped_after(self, wait_until: Callable[[Callable[[], bool], str], None]) -> float:
        """Wait for a whole scrape that begins after now, and return its time in epoch seconds."""
        now = time.time()
        wait_until(lambda: self._scraped_at() > now, "Prometheus to scrape")
        return self._scraped_at()

    def _scraped_at(self) -> float:
        return max(self.query("timestamp(up) and up == 1").values(), default=0.0)


@contextmanager
def scraping(proxy: Proxy, headers: Mapping[str, str], folder: Path) -> Iterator[Prometheus]:
    """Run a Prometheus that scrapes the proxy's metrics every two seconds."""
    port = free_port()
    kind, credentials = headers["Authorization"].split(" ", 1)
    job: dict[str, Any] = {
        "job_name": "litellm",
        "metrics_path": "/metrics/",
        "authorization": {"type": kind, "credentials": credentials},
        "static_configs": [{"targets": [proxy.url.removeprefix("http://")]}],
    }
    config = {"global": {"scrape_interval": "2s", "scrape_timeout": "2s"}, "scrape_configs": [job]}
    (folder / "prometheus.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    arguments = ["--config.file=prometheus.yaml", "--storage.tsdb.path=data", f"--web.listen-address=127.0.0.1:{port}"]
    server = subprocess.Popen([str(PROGRAM), *arguments], cwd=folder, stderr=subprocess.PIPE, text=True)
    try:
        assert server.stderr is not None
        assert any("Server is ready to receive web requests" in line for line in server.stderr)
        yield Prometheus(f"http://127.0.0.1:{port}")
    finally:
        server.terminate()
        server.wait(STOP_SECONDS)
