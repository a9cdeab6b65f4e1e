"""A real Redis, and LiteLLM's connection to it."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
from contextlib import closing

import pytest

from ctx_hooks.learning import learned, stored_histories, stored_summaries


@pytest.fixture(scope="module")
def redis_server():
    program = shutil.which("redis-server") or shutil.which("valkey-server")
    if program is None:
        if os.environ.get("CTX_HOOKS_REQUIRE_REDIS"):
            pytest.fail("no redis-server on this machine")
        pytest.skip("no redis-server on this machine")
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen([program, "--port", str(port), "--save", ""], stdout=subprocess.PIPE, text=True)
    try:
        assert any("Ready to accept connections" in line for line in server.stdout)
        yield server, port
    finally:
        server.send_signal(signal.SIGCONT)
        server.terminate()
        server.wait(10)


PATIENT_SECONDS = 30.0
"""A read may take so long here: a busy machine is no broken Redis."""


@pytest.fixture
def redis_cache(redis_server, monkeypatch):
    for module in (learned, stored_histories, stored_summaries):
        monkeypatch.setattr(module, "REDIS_TIMEOUT_SECONDS", PATIENT_SECONDS)
    from litellm.caching.redis_cache import RedisCache

    return RedisCache(host="127.0.0.1", port=redis_server[1])
