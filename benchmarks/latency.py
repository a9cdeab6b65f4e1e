"""The cost of one more turn, the longest wait of the event loop, and what the sinks of events cost.

    uv run --group bench python benchmarks/latency.py

1. A conversation of 150,000 tokens grows by a turn: the time of counting and deciding, and of litellm.token_counter.
2. Twenty requests of 600 KB at once while a task ticks every millisecond: the longest wait between two ticks, with this
   plugin's engine and with litellm.compress in a hook.
3. The processor time that the sinks add to a request of 4 KB, untouched and compressed: it is decided and answered with
   all of them (log line, Prometheus, event file, span, headers, logged figures) and with none, in turn, the best of each.
   Beside it the processor time that a proxy without the plugin needs for such a request, with LiteLLM's own Prometheus and
   OpenTelemetry callbacks, without which two of the sinks have nothing to write to.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import statistics
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx
import litellm
from litellm import token_counter
from litellm._logging import JsonFormatter
from litellm.proxy._types import UserAPIKeyAuth
from opentelemetry.sdk.trace import TracerProvider
from processor_time import LARGE_CHARS, SMALL_CHARS, conversation, processor_seconds

from ctx_hooks.attempts.request import Request
from ctx_hooks.attempts.target import Target, of_attempt
from ctx_hooks.flow.request_flow import RequestFlow
from ctx_hooks.flow.startup import attach_sinks, detach_sinks
from ctx_hooks.litellm_compat.call import Call, with_request_id
from ctx_hooks.litellm_compat.logged import Answer
from ctx_hooks.policy.settings import Policy, Settings
from ctx_hooks.runtime import content_cache
from ctx_hooks.testing import FakeProvider, ProviderSettings, ProxyProcess
from ctx_hooks.tokens.budget import Window
from ctx_hooks.tokens.counter import load_vocabularies
from ctx_hooks.tokens.usage import billed_of

WORDS = "the quick brown fox reads src/app.py and writes line_42 of the log while nobody watches it again "
AT_ONCE = 20
BATCH = 100
BATCHES = 15
"""Of each kind; another process on the machine makes some of them slower, and the least of them least."""


def to(window_tokens: int, policy: Policy | None = None) -> Target:
    """Return a target with that window."""
    return Target("openai/gpt-4.1", "d", Window(window_tokens, "policy"), policy or Policy(), "call")


def sinks() -> None:
    """Print the processor time that the sinks add to a request, by what the window makes of it."""
    with FakeProvider(ProviderSettings(window_tokens=10_000_000)) as provider:
        params = {"model": "openai/gpt-4.1", "api_base": f"{provider.url}/v1", "api_key": "none"}
        config = {
            "model_list": [{"model_name": "group", "litellm_params": params}],
            "litellm_settings": {"callbacks": ["prometheus", "otel"]},
            "general_settings": {"master_key": "os.environ/LITELLM_MASTER_KEY"},
        }
        body = {"model": "group", "messages": conversation(SMALL_CHARS)}
        proxied_seconds = float("inf")
        with (
            ProxyProcess(config, {"OTEL_EXPORTER": "in_memory"}) as proxy,
            httpx.Client(timeout=60, headers=proxy.headers) as client,
        ):
            for _ in range(BATCHES):
                started = processor_seconds(proxy)
                for _ in range(BATCH):
                    client.post(f"{proxy.url}/v1/chat/completions", json=body).raise_for_status()
                proxied_seconds = min(proxied_seconds, (processor_seconds(proxy) - started) / BATCH)
    for done, window_tokens in (("untouched", 200_000), ("compressed", 600)):
        recording(done, window_tokens, proxied_seconds)


def recording(done: str, window_tokens: int, proxied_seconds: float) -> None:
    """Print the processor time that the sinks add to a request of 4 KB, beside that of a proxied request.

    Args:
        done: what that window makes of it; an untouched request has no log line.
        window_tokens: the window that it goes to.
        proxied_seconds: what the proxy needs for one.
    """
    with TemporaryDirectory() as folder, Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        written = logging.StreamHandler(nowhere)
        written.setFormatter(JsonFormatter())
        logger = logging.getLogger("ctx_hooks")
        logger.addHandler(written)
        logger.setLevel(logging.INFO)
        logger.propagate = False
        flow = RequestFlow(Settings(defaults={"block_below_tokens": 0, "reserve": 0}))
        recorded = Settings(events={"path": folder})
        tracer = TracerProvider().get_tracer("ctx_hooks")
        least = {True: float("inf"), False: float("inf")}
        for n in range(2 * BATCHES):
            requests = [_routed(tracer.start_span("request"), window_tokens) for _ in range(BATCH)]
            started = time.process_time()
            asyncio.run(_handled(flow, requests, recorded if n % 2 else None))
            least[bool(n % 2)] = min(least[bool(n % 2)], (time.process_time() - started) / BATCH)
        logger.removeHandler(written)
    added = least[True] - least[False]
    share = f"{added / proxied_seconds:.2%} of a proxied request's {proxied_seconds * 1e3:.1f} ms"
    print(
        f"sinks, 4 KB {done}: {least[False] * 1e3:.3f} ms of the processor without, {added * 1e3:.3f} ms more with, {share}"
    )


async def _handled(flow: RequestFlow, requests: list[dict[str, Any]], sinks: Settings | None) -> None:
    """Decide and answer requests, with sinks until everything is written, or without any record."""
    if sinks is not None:
        attach_sinks(sinks)
    for fields in requests:
        request = Request("openai-chat", fields)
        target = of_attempt(request.call, flow.policies, 0)
        if sinks is None:
            await flow.deciding.decide(request, target)
        else:
            await flow.before_attempt(request, target)
        answered = await flow.answered(target.request_id, Answer(billed_of({"prompt_tokens": 500, "completion_tokens": 50})))
        if answered is not None and sinks is not None:
            flow.recorder.answered(flow.running.of(target.request_id), *answered, Call({}))
            flow.running.end(target.request_id)
            flow.running.headers_of_answer(target.request_id)
    detach_sinks()


def _routed(span: Any, window_tokens: int) -> dict[str, Any]:
    """Return a request of 4 KB to a window, with the metadata that proxy and Router give it."""
    metadata = {
        "user_api_key_auth": UserAPIKeyAuth(team_id="t", team_alias="Team", key_alias="key"),
        "litellm_parent_otel_span": span,
        "model_group": "group",
        "model_info": {"id": "d", "max_input_tokens": window_tokens},
    }
    sent = {"headers": {"user-agent": "client/1.0"}}
    fields = {"model": "openai/gpt-4.1", "messages": conversation(SMALL_CHARS), "proxy_server_request": sent}
    return with_request_id({**fields, "metadata": metadata, "litellm_call_id": "call"})


async def growth() -> None:
    """Print the time of one turn more, beside litellm.token_counter."""
    messages = conversation(LARGE_CHARS)
    runner = RequestFlow()
    await runner.deciding.decide(Request("openai-chat", {"messages": messages}), to(180_000))
    ours, theirs = [], []
    for n in range(10):
        messages = [
            *messages,
            {"role": "assistant", "content": f"{n} {WORDS * 5}"},
            {"role": "user", "content": f"More {n}."},
        ]
        started = time.perf_counter()
        await runner.deciding.decide(Request("openai-chat", {"messages": messages}), to(180_000))
        ours.append(time.perf_counter() - started)
        started = time.perf_counter()
        token_counter(model="gpt-4o", messages=messages)
        theirs.append(time.perf_counter() - started)
    mine, other = statistics.median(ours), statistics.median(theirs)
    print(f"one more turn at 150k tokens: {mine * 1e3:.2f} ms, {other / mine:.0f} times faster than litellm.token_counter")


async def longest_wait(work: Callable[[list[dict[str, Any]]], Awaitable[object]]) -> float:
    """Return the longest milliseconds between two ticks while twenty large requests are worked on."""
    longest = 0.0
    running = True
    requests = [conversation(LARGE_CHARS, seed) for seed in range(AT_ONCE)]

    async def tick() -> None:
        nonlocal longest
        while running:
            started = time.perf_counter()
            await asyncio.sleep(0.001)
            longest = max(longest, time.perf_counter() - started - 0.001)

    ticking = asyncio.create_task(tick())
    await asyncio.sleep(0.05)
    await asyncio.gather(*map(work, requests))
    running = False
    await ticking
    return longest * 1e3


async def stalls() -> None:
    """Print the longest waits."""
    content_cache.clear_all()
    runner = RequestFlow()
    load_vocabularies()

    async def ours(messages: list[dict[str, Any]], window: int) -> None:
        await runner.deciding.decide(Request("openai-chat", {"messages": messages}), to(window))

    async def theirs(messages: list[dict[str, Any]]) -> None:
        litellm.compress(messages, "gpt-4o", compression_trigger=100_000, compression_target=60_000)

    print(f"longest wait of the loop, counting    {await longest_wait(lambda m: ours(m, 200_000)):8.1f} ms")
    content_cache.clear_all()
    print(f"longest wait of the loop, compressing {await longest_wait(lambda m: ours(m, 100_000)):8.1f} ms")
    print(f"the same with litellm.compress        {await longest_wait(theirs):8.1f} ms")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.parse_args()
    asyncio.run(growth())
    asyncio.run(stalls())
    sinks()


if __name__ == "__main__":
    main()
