"""The fake provider in a thread, and a real LiteLLM proxy as a process, each on a free loopback port."""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

import httpx
import uvicorn
import yaml
from typing_extensions import Self

from ctx_hooks.testing.behaviour import ProviderSettings, Script
from ctx_hooks.testing.provider import Protocol, create_app

START_SECONDS, WAIT_SECONDS, PAUSE_SECONDS, STOP_SECONDS = 120, 300, 0.05, 10
"""Long enough for a busy machine, on which a proxy's first start takes up to a minute."""
MASTER_KEY = "sk-ctx-hooks-demo-0f1e2d3c4b5a"
"""The proxy refuses to start with a weak one."""
LOOPBACK = httpx.Client(limits=httpx.Limits(max_connections=None, max_keepalive_connections=0))
"""The client for all requests to local servers: a new one for each would load the system's certificates, which takes 20 ms.
It keeps no connection, since the other side may close it at any time."""
IDLE_SECONDS = 3_600
"""If a provider closed an idle connection, a proxy might just be sending the next request on it."""


def free_port() -> int:
    """Return a port that is free on loopback now."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


class FakeProvider:
    """The strict provider under uvicorn, in a thread; a context manager. Raises RuntimeError if it does not start.

    `script` makes its answers, by default the number of tokens that it has read. `protocols` are others than the four
    formats, or in place of one at its path.
    """

    def __init__(
        self,
        settings: ProviderSettings | None = None,
        script: Script | None = None,
        protocols: Iterable[Protocol] = (),
        port: int | None = None,
    ) -> None:
        self.port = port or free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        app, options = create_app(settings, script, protocols), {"log_level": "error", "lifespan": "off"}
        config = uvicorn.Config(app, port=self.port, timeout_keep_alive=IDLE_SECONDS, **options)  # type: ignore[arg-type]
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        _wait(lambda: self._server.started, self._thread.is_alive, "the fake provider to start", START_SECONDS)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._server.should_exit = self._server.force_exit = True  # clients that still wait get no answer
        self._thread.join(STOP_SECONDS)

    def requests(self) -> list[dict[str, Any]]:
        """Return the requests since the last reset, each with its payload, tokens, status and error."""
        found: list[dict[str, Any]] = LOOPBACK.get(f"{self.url}/_requests", timeout=30).json()
        return found

    def wait_until(self, seen: Callable[[list[dict[str, Any]]], bool]) -> None:
        """Wait until the requests satisfy `seen`, at most 5 minutes."""
        _wait(lambda: seen(self.requests()), self._thread.is_alive, "a request at the fake provider", WAIT_SECONDS)

    def reset(self, **settings: Any) -> None:
        """Forget all requests, and change settings."""
        LOOPBACK.post(f"{self.url}/_reset", timeout=30)
        if settings:
            self.configure(**settings)

    def configure(self, **settings: Any) -> None:
        """Change settings; raises httpx.HTTPStatusError for wrong ones."""
        LOOPBACK.post(f"{self.url}/_settings", json=settings, timeout=30).raise_for_status()


class ProxyProcess:
    """A real `litellm` proxy with `config` as its YAML; a context manager. Raises RuntimeError if it does not start.

    `program` is the `litellm` to run, by default the one of this Python.
    """

    def __init__(self, config: Mapping[str, Any], env: Mapping[str, str] | None = None, program: Path | None = None) -> None:
        self.port = free_port()
        self.url, self.headers = f"http://127.0.0.1:{self.port}", {"Authorization": f"Bearer {MASTER_KEY}"}
        self._config, self._env = config, dict(env or {})
        self._program = program or Path(sys.executable).with_name("litellm")
        self._folder = tempfile.TemporaryDirectory(prefix="ctx_hooks_")
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        folder = Path(self._folder.name)
        (folder / "config.yaml").write_text(yaml.safe_dump(dict(self._config)), encoding="utf-8")
        arguments = ["--config", "config.yaml", "--port", str(self.port), "--host", "127.0.0.1", "--telemetry", "False"]
        with ExitStack() as failing:
            failing.callback(self.__exit__, None, None, None)
            with _interrupt_waits():
                self._process = self._started(arguments, folder)
            try:
                _wait(self._answers, self._runs, "the proxy to start", START_SECONDS)
            except RuntimeError as error:
                raise RuntimeError(f"{error}\n{self.log()[-4_000:]}") from None
            failing.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._process is not None and self._runs():
            os.killpg(self._process.pid, signal.SIGTERM)
            try:
                self._process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                os.killpg(self._process.pid, signal.SIGKILL)
                self._process.wait(STOP_SECONDS)
        self._folder.cleanup()

    def wait_until(self, ready: Callable[[], bool], what: str) -> None:
        """Wait for `what` until `ready`, at most 5 minutes."""
        _wait(ready, self._runs, what, WAIT_SECONDS)

    def log(self) -> str:
        """Return the output of the proxy so far."""
        path = Path(self._folder.name, "log")
        return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""

    def shown(self, name: str) -> str:
        """Return a file of the running proxy under /proc/PID, on Linux only, such as `statm`."""
        assert self._process is not None  # noqa: S101 - of a running proxy
        return Path(f"/proc/{self._process.pid}/{name}").read_text(encoding="utf-8")

    def _started(self, arguments: list[str], folder: Path) -> subprocess.Popen[bytes]:
        """Return the process; the tests fork theirs, which spares most of a start."""
        with (folder / "log").open("wb") as log:
            return subprocess.Popen(  # noqa: S603 - our own interpreter's proxy
                [str(self._program), *arguments],
                cwd=folder,
                env=self._environment(),
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def _environment(self) -> dict[str, str]:
        paths = filter(None, [str(Path(__file__).resolve().parents[2]), os.environ.get("PYTHONPATH")])
        return {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(paths),
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
            "LITELLM_MASTER_KEY": MASTER_KEY,
            "LITELLM_LOG": "WARNING",
            "TIMEOUT_WORKER_HEALTHCHECK": str(START_SECONDS),  # uvicorn replaces a worker that loads for more than 5 s
            **self._env,
        }

    def _runs(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def _answers(self) -> bool:
        try:
            return LOOPBACK.get(f"{self.url}/health/liveliness", timeout=5).status_code == httpx.codes.OK
        except httpx.TransportError:
            return False  # not listening yet


@contextmanager
def _interrupt_waits() -> Iterator[None]:
    """Delay Ctrl-C until the end of the block: during a start it would leave a process that nobody ends."""
    if threading.current_thread() is not threading.main_thread():  # Python interrupts only the main thread
        yield
        return
    interrupts: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: interrupts.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if interrupts:
            signal.raise_signal(signal.SIGINT)


def _wait(ready: Callable[[], bool], alive: Callable[[], bool], what: str, seconds: float) -> None:
    end = time.monotonic() + seconds
    while not ready():
        if not alive() or time.monotonic() > end:
            raise RuntimeError(f"waited in vain for {what}")
        time.sleep(PAUSE_SECONDS)
