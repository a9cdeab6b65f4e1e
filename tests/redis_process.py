"""A real Redis on a free port that can be killed, hung and restarted."""

import os
import shutil
import signal
import subprocess

import pytest

from ctx_hooks.testing.processes import free_port

STOP_SECONDS = 300


class RedisProcess:
    """A Redis server that keeps nothing; a context manager. Skips the test where there is none, unless one is required.

    `options` are more of the server's arguments.
    """

    def __init__(self, *options: object) -> None:
        found = shutil.which("redis-server") or shutil.which("valkey-server")
        if found is None:
            if os.environ.get("CTX_HOOKS_REQUIRE_REDIS"):
                pytest.fail("no redis-server on this machine")
            pytest.skip("no redis-server on this machine")
        self._program = found
        self._options = options
        self.port = free_port()

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.resume()
        self._process.terminate()
        self._process.wait(STOP_SECONDS)

    def start(self):
        arguments = [self._program, "--port", str(self.port), "--save", "", *map(str, self._options)]
        self._process = subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)
        assert any("Ready to accept connections" in line for line in self._process.stdout)

    def kill(self):
        self._process.kill()
        self._process.wait(STOP_SECONDS)

    def hang(self):
        self._process.send_signal(signal.SIGSTOP)

    def resume(self):
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGCONT)
