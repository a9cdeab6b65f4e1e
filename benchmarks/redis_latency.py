"""How long requests wait for a Redis that is slow or hangs, and how many connections and warnings that costs.

    uv run python benchmarks/redis_latency.py [--requests 40]

A `redis-server` runs behind a relay that delays each answer. For each latency a worker that knows nothing yet decides about
requests of different conversations of 20,000 characters, one after another, each of which continues a stored response, and
learns from its answer, as after a pause of 20 ms. The figures of a worker without Redis are subtracted.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from redis_process import RedisProcess
from redis_relay import RedisRelay

from ctx_hooks.attempts.request import Request
from ctx_hooks.attempts.target import Target
from ctx_hooks.flow.request_flow import RequestFlow
from ctx_hooks.litellm_compat.logged import Answer
from ctx_hooks.policy.settings import Policy
from ctx_hooks.tokens.budget import Window
from ctx_hooks.tokens.units import ProviderTokens
from ctx_hooks.tokens.usage import billed_of

LATENCIES = {"0 s": 0.0, "0.3 s": 0.3, "2 s": 2.0}
HANGING = "hangs"
PAUSE_SECONDS = 0.02
TEXT = "The piano is tuned by ear. " * 740


def target(number: int) -> Target:
    """Return where a request goes."""
    return Target(
        "gpt-4o", "deployment", Window(ProviderTokens(128_000), "model_info"), Policy(), "ann", f"request {number}",
        continued=f"resp_{number}",
    )  # fmt: skip


async def waits(runner: RequestFlow, requests: int) -> list[float]:
    """Return how many seconds each request takes until it is decided about."""
    taken = []
    for number in range(requests):
        to = target(number)
        request = Request("openai-chat", {"model": "gpt-4o", "messages": [{"role": "user", "content": f"{number} {TEXT}"}]})
        start = time.perf_counter()
        await runner.deciding.decide(request, to)
        taken.append(time.perf_counter() - start)
        await runner.answered(
            to.request_id, Answer(billed_of({"prompt_tokens": 4_400, "completion_tokens": 50}), f"resp_after_{number}")
        )
        await asyncio.sleep(PAUSE_SECONDS)
    return taken


async def measure(requests: int) -> None:
    """Print a row for each latency."""
    from litellm.caching.redis_cache import RedisCache  # noqa: PLC0415 - slow to load

    warnings: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: warnings.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger("ctx_hooks").addHandler(handler)
    await waits(RequestFlow(), 3)
    without = statistics.median(await waits(RequestFlow(), requests))
    print("| Redis | wait, median | wait, largest | requests that waited over 50 ms | connections | warnings |")
    print("|---|---|---|---|---|---|")
    with RedisProcess() as server:
        for name in (*LATENCIES, HANGING):
            async with RedisRelay(server.port) as relay:
                cache = RedisCache(host="127.0.0.1", port=server.port)
                cache.redis_kwargs["port"] = relay.port
                await cache.async_register_script("return 1")(keys=["warm"], args=[])
                relay.delay_seconds = LATENCIES.get(name, 0.0)
                if name == HANGING:
                    relay.is_open.clear()
                warnings.clear()
                taken = [seconds - without for seconds in await waits(RequestFlow(shared=lambda: cache), requests)]  # noqa: B023
                late = sum(seconds > 0.05 for seconds in taken)
                middle, most = statistics.median(taken) * 1e3, max(taken) * 1e3
                print(f"| {name} | {middle:.1f} ms | {most:.0f} ms | {late} | {relay.connections} | {len(warnings)} |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--requests", type=int, default=40)
    asyncio.run(measure(parser.parse_args().requests))
