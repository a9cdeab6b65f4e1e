"""What one tenant's large bodies cost another tenant's request, and what a request of many messages costs.

    uv run python benchmarks/tenants.py [--rounds 3]

Two real proxies, with the plugin and without, before one provider that takes everything. A request above the window is timed
undisturbed, and while another key has eight bodies of 12,001 messages under way. Then one request of 200,001 messages, in
processor time of the proxy. The last column, with over without, is for comparison between machines.

Goals: the bodies add at most 0.3 s more with the plugin than without, and the processor time at most doubles.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
from hostile import config, provider

from ctx_hooks.testing import ProxyProcess

AUTH = """
from litellm.proxy._types import UserAPIKeyAuth

async def user_api_key_auth(request, api_key):
    return UserAPIKeyAuth(api_key=api_key)
"""
BODIES = 8
LARGE = (12_001, 400)
ORDINARY = (400, 2_000)
LONG = (200_001, 40)
ROWS = (
    "undisturbed, s",
    f"beside {BODIES} bodies, s",
    "added by them, s",
    f"{LONG[0]:,} messages, processor s",
)


def body(shape: tuple[int, int], name: str) -> bytes:
    """Return a request of so many messages of so many characters; `name` makes it differ from others."""
    messages, chars = shape
    text = ("The value of the row is 17, as the log says. " * (chars // 45 + 1))[:chars]
    listed = [{"role": ("user", "assistant")[n % 2], "content": f"{name} {n} {text}"} for n in range(messages)]
    return json.dumps({"model": "model", "messages": listed}).encode()


def seconds(proxy: ProxyProcess, content: bytes, key: str) -> float:
    """Return how long a request takes; raises httpx.HTTPStatusError if it is refused."""
    headers = {"Authorization": f"Bearer {key}", "content-type": "application/json"}
    start = time.perf_counter()
    httpx.post(f"{proxy.url}/v1/chat/completions", content=content, headers=headers, timeout=600).raise_for_status()
    return time.perf_counter() - start


def processor_seconds(proxy: ProxyProcess) -> float:
    """Return the processor time of a proxy so far."""
    fields = proxy.shown("stat").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(proxy: ProxyProcess, rounds: int) -> list[float]:
    """Return the figures of ROWS."""
    undisturbed, beside = [], []
    seconds(proxy, body(ORDINARY, "warm"), "sk-bob")
    for n in range(rounds):
        undisturbed.append(seconds(proxy, body(ORDINARY, f"undisturbed {n}"), "sk-bob"))
        bodies = [body(LARGE, f"{n} {k}") for k in range(BODIES)]
        with ThreadPoolExecutor(BODIES) as threads:
            under_way = [threads.submit(seconds, proxy, content, "sk-ann") for content in bodies]
            beside.append(seconds(proxy, body(ORDINARY, f"beside {n}"), "sk-bob"))
            _ = [each.result() for each in under_way]
    before = processor_seconds(proxy)
    seconds(proxy, body(LONG, "long"), "sk-ann")
    one, other = statistics.median(undisturbed), statistics.median(beside)
    return [one, other, other - one, processor_seconds(proxy) - before]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    found: dict[bool, list[float]] = {}
    with provider() as url, tempfile.TemporaryDirectory() as folder:
        Path(folder, "any_key.py").write_text(AUTH, encoding="utf-8")
        for plugin in (False, True):
            settings: dict[str, Any] = config(url, plugin=plugin)
            settings["general_settings"]["custom_auth"] = "any_key.user_api_key_auth"
            paths = os.pathsep.join([folder, str(Path(__file__).resolve().parents[1])])
            with ProxyProcess(settings, {"PYTHONPATH": paths}) as proxy:
                found[plugin] = measure(proxy, rounds)
            httpx.post(f"{url}/_reset")
    print("| | without | with | with / without |\n|---|---|---|---|")
    for row, without, fitted in zip(ROWS, found[False], found[True], strict=True):
        print(f"| {row} | {without:.2f} | {fitted:.2f} | {fitted / without:.1f} |")


if __name__ == "__main__":
    main()
