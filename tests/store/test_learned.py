"""What is learned of a deployment outlives a process and reaches other workers, through a real Redis."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import time
from contextlib import closing

import pytest

from ctx_hooks.store.learned import Learned, LearnedFigures, from_json
from ctx_hooks.tokens.calibration import Calibration

FIGURES = LearnedFigures(Calibration((1.1, 1.2), 1.15), limit_tokens=8_000, limit_until=2e9, holds_output=True)


@pytest.fixture(scope="module")
def redis_server():
    program = shutil.which("redis-server") or shutil.which("valkey-server")
    if program is None:
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


@pytest.fixture
def redis_cache(redis_server):
    from litellm.caching.redis_cache import RedisCache

    return RedisCache(host="127.0.0.1", port=redis_server[1])


class BrokenCache:
    async def async_get_cache(self, key):
        raise ConnectionError("down")

    async def async_set_cache(self, key, value, ttl):
        raise ConnectionError("down")


def test_figures_survive_their_json():
    assert from_json(FIGURES.as_json()) == FIGURES


@pytest.mark.parametrize("value", [None, "", "nonsense", "[]", "{}", 7, {"ratios": "x"}])
def test_what_is_no_figures_is_none(value):
    assert from_json(value) is None


async def test_another_worker_reads_what_one_has_learned(redis_cache):
    one, other = Learned(lambda: redis_cache), Learned(lambda: redis_cache)
    await one.learn("deployment", lambda _: FIGURES)
    assert await other.of("deployment") == FIGURES


async def test_without_redis_a_process_learns_for_itself():
    learned = Learned(lambda: None)
    await learned.learn("deployment", lambda f: f.limited(9_000, time.time()))
    assert (await learned.of("deployment")).limit_at(time.time()) == 9_000


async def test_a_broken_redis_costs_no_request(caplog):
    learned = Learned(BrokenCache)
    await learned.learn("deployment", lambda _: FIGURES)
    assert await learned.of("deployment") == FIGURES
    assert "Redis" in caplog.text


async def test_a_redis_that_hangs_holds_up_no_request(redis_server, redis_cache, caplog):
    server, _ = redis_server
    learned = Learned(lambda: redis_cache)
    await learned.learn("hanging", lambda _: FIGURES)
    server.send_signal(signal.SIGSTOP)
    try:
        one = Learned(lambda: redis_cache)
        assert await one.of("hanging") == LearnedFigures()
        await one.learn("hanging", lambda f: f.limited(9_000, time.time()))
        assert (await one.of("hanging")).limit_at(time.time()) == 9_000
        assert "from Redis: TimeoutError()" in caplog.text, "it is not LiteLLM, which waits for seconds, that gave up"
        assert "to Redis: TimeoutError()" in caplog.text
    finally:
        server.send_signal(signal.SIGCONT)


def test_a_limit_that_was_exceeded_without_complaint_is_raised():
    now = time.time()
    figures = LearnedFigures().limited(8_000, now)
    assert figures.billed(7_000, 7_500, now).limit_at(now) == 8_000
    assert figures.billed(9_000, 9_500, now).limit_at(now) == 9_500


def test_a_limit_is_forgotten_after_a_day():
    now = time.time()
    assert LearnedFigures().limited(8_000, now - 25 * 3600).limit_at(now) is None


def test_an_answer_shows_that_the_output_has_a_window_of_its_own():
    figures = LearnedFigures().accepted(88_000).accepted(61_000)
    assert figures.output_held(60_000) is False
    assert figures.output_held(90_000) is None
    assert LearnedFigures(holds_output=True).accepted(88_000).output_held(60_000) is True
