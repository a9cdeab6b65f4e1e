"""Proxies for the tests: forks of a process that has imported LiteLLM, one for all tests of a run."""

from __future__ import annotations

import fcntl
import json
import os
import resource
import select
import socket
import subprocess
import sys
import tempfile
import time
from functools import cache
from pathlib import Path
from typing import IO, Any

from ctx_hooks.testing import ProxyProcess

SERVER = Path(__file__).with_name("fork_server.py")
SECONDS = 300
"""For what takes milliseconds on a quiet machine."""
READ_AT_IMPORT = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_LOG": "WARNING", "MAX_RETRY_DELAY": "0", "JITTER": "0"}
"""What LiteLLM reads when it is imported: the same for all. It waits before it asks again after a rate limit."""


class Proxy(ProxyProcess):
    """A proxy behind the interface of `ProxyProcess`, which starts in a tenth of the time.

    With a program of its own, or with another value of a variable that LiteLLM reads at import, it
    starts as any user's does.
    """

    running: set[Proxy] = set()  # noqa: RUF012 - all of the process's
    starts: list[dict[str, Any]] = []  # noqa: RUF012 - of the process
    ended_seconds = 0.0
    """Processor time of the forks that have ended, which are no children of this process."""

    def __enter__(self):
        began = time.monotonic()
        super().__enter__()
        forked, used = isinstance(self._process, ForkedProcess), self.processor_seconds()
        self._start = {
            "forked": forked,
            "seconds": time.monotonic() - began,
            "processor_seconds": used,
            "proportional_bytes": 0,
        }
        Proxy.starts.append(self._start)
        Proxy.running.add(self)
        return self

    def __exit__(self, *error):
        if self in Proxy.running:
            self._start["proportional_bytes"] = self.proportional_bytes() if self._runs() else 0
        Proxy.running.discard(self)
        super().__exit__(*error)
        if self.forked:
            Proxy.ended_seconds += self._process.processor_seconds

    def processor_seconds(self) -> float:
        """Return the processor time of the proxy's process so far."""
        in_user_mode, in_kernel = self.shown("stat").rpartition(")")[2].split()[11:13]
        return (int(in_user_mode) + int(in_kernel)) / os.sysconf("SC_CLK_TCK")

    @property
    def forked(self) -> bool:
        return isinstance(self._process, ForkedProcess)

    def proportional_bytes(self) -> int:
        """Return the memory of the proxy's process, with its share of the pages that it has in common with others."""
        return (
            next(int(line.split()[1]) for line in self.shown("smaps_rollup").splitlines() if line.startswith("Pss:")) * 1024
        )

    def environment(self):
        return self._environment()

    def _environment(self):
        return READ_AT_IMPORT | super()._environment()

    def _started(self, arguments, folder):
        if self._program != Path(sys.executable).with_name("litellm") or not hasattr(os, "pidfd_open"):
            return super()._started(arguments, folder)
        asked = {"arguments": arguments, "environment": self._environment(), "folder": str(folder)}
        with Path(os.devnull).open("rb") as nothing, (folder / "log").open("wb") as log:
            process = ForkedProcess(asked, nothing, log, log)
        return process if process.pid else super()._started(arguments, folder)


class ForkedProcess:
    """What a proxy needs of `subprocess.Popen`, for a fork of the server's. `pid` is 0 where the server does not fork.

    `streams` are its standard input, output and errors: open files or their descriptors.
    """

    def __init__(self, asked: dict[str, Any], *streams: IO[bytes] | int) -> None:
        self._connection = socket.socket(socket.AF_UNIX)
        self._connection.connect(server_path())
        self._answers = self._connection.makefile("r")
        descriptors = [stream if isinstance(stream, int) else stream.fileno() for stream in streams]
        socket.send_fds(self._connection, [json.dumps(asked).encode() + b"\n"], descriptors)
        answer = json.loads(self._answers.readline())
        self.pid, self.read_early = answer.get("pid", 0), answer.get("read_early", [])
        self._status: int | None = None
        self.processor_seconds = 0.0

    def poll(self) -> int | None:
        try:
            return self.wait(0)
        except subprocess.TimeoutExpired:
            return None

    def wait(self, timeout: float | None) -> int:
        if self._status is None:
            if not select.select([self._connection], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired("litellm", timeout)
            ended = json.loads(self._answers.readline())
            self._status, self.processor_seconds = ended["status"], ended["processor_seconds"]
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
        process = ForkedProcess(asked, nothing, log, log)
        assert process.pid, process.read_early
        status = process.wait(SECONDS)
        Proxy.ended_seconds += process.processor_seconds
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


def processor_seconds() -> float:
    """Return the processor time of this process so far, with its children and its proxies."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    running = sum(proxy.processor_seconds() for proxy in Proxy.running)
    return sum(each.ru_utime + each.ru_stime for each in used) + running + Proxy.ended_seconds
