"""How long the event loop is held up while a request with a long history is arranged and fitted.

    python benchmarks/event_loop.py

A task sleeps a millisecond at a time; what it sleeps longer, the loop was held up. Python lets another thread go on after
5 ms: a thread that works holds the loop up by that much, unless one call into C takes longer. The garbage collector's does,
whose longest pause is printed too: it grows with the objects of the request itself.
"""

from __future__ import annotations

import asyncio
import gc
import time
from dataclasses import replace

from ctx_hooks.litellm_compat import with_request_id
from ctx_hooks.policy.settings import Policy, Settings
from ctx_hooks.request.request import Request
from ctx_hooks.request.target import Target
from ctx_hooks.serving.request_flow import RequestFlow
from ctx_hooks.tokens.units import ProviderTokens
from ctx_hooks.tokens.window import Window

SLEEP_SECONDS = 0.001
SHAPES = {
    "30 MB in 3,000 messages": (3_000, 10_000),
    "200,000 messages": (200_000, 40),
    "30 MB in one message": (1, 30_000_000),
}


def request_of(messages: int, chars: int) -> Request:
    """Return a request of messages with so many characters each."""
    text = ("The value of the row is 17, as the log says. " * (chars // 45 + 1))[:chars]
    roles = ("user", "assistant")
    listed = [{"role": roles[n % 2], "content": f"{n} {text}"} for n in range(messages)]
    return Request("openai-chat", with_request_id({"model": "served", "messages": listed, "metadata": {"a": 1}}))


async def longest_hold_seconds(request: Request, policy: Policy) -> tuple[float, float]:
    """Return the longest hold of the loop, and how long the request took."""
    flow, held_seconds, is_done = RequestFlow(Settings()), 0.0, False
    to = Target("openai/gpt-4o", "one", Window(ProviderTokens(128_000), "model_info"), policy, "one")

    async def watch() -> None:
        nonlocal held_seconds
        while not is_done:
            start = time.perf_counter()
            await asyncio.sleep(SLEEP_SECONDS)
            held_seconds = max(held_seconds, time.perf_counter() - start - SLEEP_SECONDS)

    watching = asyncio.create_task(watch())
    await asyncio.sleep(0.1)
    start = time.perf_counter()
    data = dict(request.fields)
    if policy.retrieval:
        data = await flow.rounds.restored(data)
    await flow.fitted(replace(request, fields=data), data, to)
    spent_seconds = time.perf_counter() - start
    is_done = True
    await watching
    return held_seconds, spent_seconds


class Pauses:
    """Notes the longest run of the garbage collector."""

    def __init__(self) -> None:
        self.longest_seconds = self._began = 0.0

    def __call__(self, phase: str, _: object) -> None:
        """Note a beginning, or an end."""
        if phase == "start":
            self._began = time.perf_counter()
        else:
            self.longest_seconds = max(self.longest_seconds, time.perf_counter() - self._began)


async def main() -> None:
    """Print a line for each shape and policy."""
    await longest_hold_seconds(request_of(300, 10_000), Policy(retrieval=True))  # loads the vocabulary
    for name, (messages, chars) in SHAPES.items():
        for policy in (Policy(enabled=False), Policy(), Policy(retrieval=True)):
            request, pauses = request_of(messages, chars), Pauses()
            gc.callbacks.append(pauses)
            held, spent = await longest_hold_seconds(request, policy)
            gc.callbacks.remove(pauses)
            kind = "retrieval" if policy.retrieval else "default" if policy.enabled else "off"
            collected = f"garbage collection {pauses.longest_seconds * 1e3:.1f} ms"
            print(f"{name}, {kind}: longest hold {held * 1e3:.1f} ms, {collected}, in all {spent:.2f} s")


if __name__ == "__main__":
    asyncio.run(main())
