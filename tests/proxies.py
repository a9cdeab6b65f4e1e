"""Proxies for the tests: forks of a process that has imported LiteLLM, one for all tests of a run."""

from __future__ import annotations

import fcntl
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import IO, Any, NoReturn

from ctx_hooks.testing import ProxyProcess

SERVER = Path(__file__).with_name("fork_server.py")
SECONDS = 300
"""For what takes milliseconds on a quiet machine."""
READ_AT_IMPORT = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_LOG": "WARNING", "MAX_RETRY_DELAY": "0", "JITTER": "0",
    "REDIS_CIRCUIT_BREAKER_RECOVERY_TIMEOUT": "1",
}  # fmt: skip
"""What LiteLLM reads when it is imported: the same for all. It waits before it asks again after a rate limit, and asks no
Redis that has failed for so many seconds, usually a minute."""

LISTENERS = [f"{prefix}{kind}_callback" for prefix in ("", "_async_") for kind in ("input", "success", "failure")]
"""LiteLLM's lists of whom it tells of a call."""


class Proxy(ProxyProcess):
    """A proxy behind the interface of `ProxyProcess`, which starts in a tenth of the time."""

    def environment(self):
        return self._environment()

    def _environment(self):
        return READ_AT_IMPORT | super()._environment()

    def _started(self, arguments, folder):
        if not hasattr(os, "pidfd_open"):
            return super()._started(arguments, folder)
        asked = {"arguments": arguments, "environment": self._environment(), "folder": str(folder)}
        with Path(os.devnull).open("rb") as nothing, (folder / "log").open("wb") as log:
            return ForkedProcess(asked, nothing, log, log)


class ForkedProcess:
    """What a proxy needs of `subprocess.Popen`, for a fork of the server's.

    `streams` are its standard input, output and errors: open files or their descriptors.
    """

    def __init__(self, asked: dict[str, Any], *streams: IO[bytes] | int) -> None:
        self._connection = socket.socket(socket.AF_UNIX)
        self._connection.connect(server_path())
        self._answers = self._connection.makefile("r")
        descriptors = [stream if isinstance(stream, int) else stream.fileno() for stream in streams]
        socket.send_fds(self._connection, [json.dumps(asked).encode() + b"\n"], descriptors)
        self.pid = json.loads(self._answers.readline())["pid"]
        self._status: int | None = None

    def poll(self) -> int | None:
        try:
            return self.wait(0)
        except subprocess.TimeoutExpired:
            return None

    def wait(self, timeout: float | None) -> int:
        if self._status is None:
            if not select.select([self._connection], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired("litellm", timeout)
            self._status = json.loads(self._answers.readline())["status"]
            self._connection.close()
        return self._status


def printed_by(code: str, **environment: str) -> str:
    """Return what a process prints that has imported LiteLLM's proxy, and nothing of the plugin, before it runs `code`."""
    with (
        tempfile.TemporaryDirectory() as folder,
        Path(os.devnull).open("rb") as nothing,
        Path(folder, "log").open("wb") as log,
    ):
        asked = {"code": code, "environment": Proxy({}, environment).environment(), "folder": folder}
        status = ForkedProcess(asked, nothing, log, log).wait(SECONDS)
        printed = Path(folder, "log").read_text()
    assert status == 0, printed
    return printed


def run_id() -> str:
    """Return what the processes of a run have in common: its first one sets it for those that it starts."""
    return os.environ.setdefault("TESTS_RUN_ID", str(os.getpid()))


@cache
def server_path() -> str:
    """Return the socket of the run's server. The first process that asks for it starts it, and all hold it open."""
    path = Path(tempfile.gettempdir(), f"ctx_hooks_{run_id()}", "socket")
    path.parent.mkdir(exist_ok=True)
    with path.with_name("lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not _held(path):
            path.unlink(missing_ok=True)
            command, environment = [sys.executable, str(SERVER), str(path)], Proxy({}).environment()
            server = subprocess.Popen(
                command,
                cwd=path.parent,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                start_new_session=True,
            )
            assert server.stdout.readline() == b"listening\n"
            assert _held(path)
    return str(path)


HELD: list[socket.socket] = []


def _held(path: Path) -> bool:
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(str(path))
    except (FileNotFoundError, ConnectionRefusedError):
        return False
    HELD.append(connection)
    return True


def be_python(code: str) -> NoReturn:
    """Be `python -u -c CODE` in a fork of the process that has imported LiteLLM: pytest's workers are such."""
    process = ForkedProcess({"code": code, "environment": dict(os.environ), "folder": str(Path.cwd())}, 0, 1, 2)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for pytest, which then ends its workers
    sys.exit(process.wait(None))


if __name__ == "__main__":
    be_python(sys.argv[-1])
