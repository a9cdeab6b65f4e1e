"""HAProxy before the workers of both planes."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from services import PLANES

from ctx_hooks.testing import free_port

if TYPE_CHECKING:
    from pathlib import Path

    from services import Worker
    from typing_extensions import Self

START_SECONDS = 120
BALANCED = """
global
  stats socket {socket} mode 600 level admin
  maxconn 2000
defaults
  mode http
  timeout connect 2s
  timeout client 180s
  timeout server 180s
  timeout queue 30s
  timeout check 15s
  retries 2
  option redispatch
  retry-on conn-failure
"""
PLANE = """
frontend {plane}
  bind 127.0.0.1:{port}
  use_backend {plane}_session if {{ req.hdr(x-soak-affinity) -m found }}
  default_backend {plane}_any
backend {plane}_any
  balance roundrobin
  option httpchk GET /health/liveliness
{servers}
backend {plane}_session
  balance hdr(x-session-id)
  hash-type consistent
{tracked}
"""


class Balancer:
    """HAProxy before the workers of both planes, each by turns and by session; a context manager."""

    def __init__(self, workers: list[Worker], folder: Path) -> None:
        self._socket, self._file = folder / "haproxy.sock", folder / "haproxy.cfg"
        self.ports = {plane: free_port() for plane in PLANES}
        parts = [BALANCED.format(socket=self._socket)]
        for plane, port in self.ports.items():
            own = [w for w in workers if w.plane == plane]
            servers = "\n".join(f"  server {w.name} 127.0.0.1:{w.port} check inter 2s fall 2 rise 1" for w in own)
            tracked = "\n".join(f"  server {w.name} 127.0.0.1:{w.port} track {plane}_any/{w.name}" for w in own)
            parts.append(PLANE.format(plane=plane, port=port, servers=servers, tracked=tracked))
        self._file.write_text("".join(parts), encoding="utf-8")

    def __enter__(self) -> Self:
        program = shutil.which("haproxy", path=os.environ["PATH"] + ":/usr/sbin")
        if program is None:
            raise RuntimeError("no haproxy on this machine")
        subprocess.run([program, "-c", "-q", "-f", str(self._file)], check=True)  # noqa: S603 - Debian's own
        self._process = subprocess.Popen([program, "-db", "-f", str(self._file)], stdout=sys.stderr)  # noqa: S603
        end = time.monotonic() + START_SECONDS
        while not self._socket.exists() and time.monotonic() < end:
            time.sleep(0.05)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait()

    @property
    def status(self) -> int | None:
        """The exit status, None while it runs."""
        return self._process.poll()

    def set_state(self, worker: Worker, state: str) -> None:
        """Set a worker `ready` or to `drain`: it gets no new request by turns, nor by session."""
        for backend in ("any", "session"):
            self._asked(f"set server {worker.plane}_{backend}/{worker.name} state {state}")

    def wait_until_up(self, worker: Worker) -> None:
        """Wait until a worker gets requests again; raises RuntimeError if that takes too long."""
        end = time.monotonic() + START_SECONDS
        row = f"{worker.plane}_any,{worker.name},"
        while not any(line.startswith(row) and ",UP," in line for line in self._asked("show stat").splitlines()):
            if time.monotonic() > end:
                raise RuntimeError(f"the balancer does not see {worker.name}")
            time.sleep(0.5)

    def _asked(self, command: str) -> str:
        with socket.socket(socket.AF_UNIX) as control:
            control.connect(str(self._socket))
            control.sendall(command.encode() + b"\n")
            return b"".join(iter(lambda: control.recv(65_536), b"")).decode()
