"""How long requests wait for model-written summaries: in the background, and blocking for a model that does not answer.

    uv run --group bench python benchmarks/summary_waits.py [--rounds 40] [--timeout 2] [--redis-port PORT]

A real proxy and the fake provider, whose model `small` takes every request and answers none. Each round is a conversation of
its own, above its budget, that is sent to a group without summaries and to one with them, in alternating order.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Any

import httpx

from ctx_hooks.testing import FakeProvider, ProviderSettings, ProxyProcess

WINDOW_TOKENS = 8_000
TURNS = 240
WARM_UP = 5


def conversation(seed: int) -> list[dict[str, str]]:
    """Return a conversation of many short turns, of which a compaction removes exchanges."""
    messages = [{"role": "user", "content": f"Review project {seed} with me, part by part."}]
    for n in range(TURNS):
        text = f"Part {n} of project {seed} reads the header, merges the branches and keeps a token of each one."
        messages += [{"role": "assistant", "content": text}, {"role": "user", "content": f"And behind part {n}?"}]
    return messages


def configuration(url: str, timeout_seconds: float, redis_port: int | None) -> dict[str, Any]:
    """Return the proxy's configuration with a group for each way of waiting."""
    params = {"api_base": f"{url}/v1", "api_key": "none"}
    summary = {"model": "small", "timeout_seconds": timeout_seconds, "soft_fraction": 0.1}
    policies = {mode: {"summary": {**summary, "mode": mode}} for mode in ("background", "blocking")}
    groups = [
        {
            "model_name": name,
            "litellm_params": {**params, "model": "openai/served"},
            "model_info": {"max_input_tokens": WINDOW_TOKENS},
        }
        for name in ("without", *policies)
    ]
    small = {"model_name": "small", "litellm_params": {**params, "model": "openai/small"}}
    router = {"router_settings": {"redis_host": "127.0.0.1", "redis_port": redis_port}} if redis_port else {}
    return {
        "model_list": [*groups, small],
        "litellm_settings": {"callbacks": ["ctx_hooks.proxy_handler_instance"]},
        "general_settings": {"master_key": "os.environ/LITELLM_MASTER_KEY"},
        "callback_settings": {"ctx_hooks": {"models": policies}},
        **router,
    }


def measure(proxy: ProxyProcess, mode: str, seeds: range) -> list[tuple[float, float]]:
    """Return the seconds of each round without and with summaries."""
    taken = []
    with httpx.Client(timeout=60, headers=proxy.headers) as client:
        for seed in seeds:
            seconds = {}
            for group in ("without", mode) if seed % 2 else (mode, "without"):
                started = time.perf_counter()
                body = {"model": group, "messages": conversation(seed)}
                client.post(f"{proxy.url}/v1/chat/completions", json=body).raise_for_status()
                seconds[group] = time.perf_counter() - started
            taken.append((seconds["without"], seconds[mode]))
    return taken


def main() -> None:
    """Print the time that each mode adds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--timeout", type=float, default=2.0, help="the policy's timeout_seconds")
    parser.add_argument("--redis-port", type=int, help="of a Redis that the proxy shares")
    given = parser.parse_args()
    settings = ProviderSettings(window_tokens=WINDOW_TOKENS, held_models=["small"])
    with (
        FakeProvider(settings) as provider,
        ProxyProcess(configuration(provider.url, given.timeout, given.redis_port)) as proxy,
    ):
        measure(proxy, "background", range(WARM_UP))
        pairs = measure(proxy, "background", range(100, 100 + given.rounds))
        without = statistics.median(a for a, _ in pairs)
        added = statistics.median(b - a for a, b in pairs)
        print(f"background: {without * 1e3:.1f} ms without, {added * 1e3:+.1f} ms with summaries (median of differences)")
        late = [b - a - given.timeout for a, b in measure(proxy, "blocking", range(200, 200 + given.rounds // 4))]
        print(f"blocking: {statistics.median(late) * 1e3:+.0f} ms beyond the timeout, at most {max(late) * 1e3:+.0f} ms")


if __name__ == "__main__":
    main()
