"""The cost of a megabyte of every kind of text: time added to its request and to a small concurrent one, and memory.

    uv run python benchmarks/hostile.py [--rounds 3] [--requests 3000] [--kinds log,dashes]

1. Two real proxies in front of the same strict provider, one with the plugin and one without. Each kind of text of
   `tests/hostile_texts.py` is sent as a tool result of 1 MB behind the header of an HTTP response, to a model of
   128,000 tokens (the provider takes all). A second such request is sent with concurrent small requests to the same
   proxy, of which the slowest is measured. Figures are medians of the rounds. The added time may be negative, since proxy
   and provider process less text; the plugin's own processor time is printed too.
2. 3,000 different requests of 200 KB: the memory of the proxy with the plugin after 500 and after all of them.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from hostile_texts import behind_header, kinds

from ctx_hooks.attempts.request import Request
from ctx_hooks.attempts.target import Target
from ctx_hooks.flow.request_flow import RequestFlow
from ctx_hooks.policy.settings import Policy
from ctx_hooks.runtime import content_cache
from ctx_hooks.testing import ProxyProcess, free_port
from ctx_hooks.tokens.budget import Window
from ctx_hooks.tokens.counter import load_vocabularies

TEXT_BYTES = 1_000_000
WINDOW_TOKENS = 128_000
MOST_ADDED_MS = 150
MOST_WAIT_MS = 20
FIRST_REQUESTS = 500
MEMORY_CHARS = 200_000
AT_ONCE = 4
REFUSED = {"lone surrogates"}
"""LiteLLM answers 400: what is no Unicode cannot be sent on."""
PAUSE_SECONDS = 0.01
"""Between tiny requests: without it they alone would fill the proxy's event loop."""


@contextmanager
def provider() -> Iterator[str]:
    """Run the strict provider in a process of its own, so that its counting takes no turns from this one; yield its URL."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    command = ["uvicorn", "ctx_hooks.testing.provider:create_app", "--factory", "--port", str(port), "--log-level", "error"]
    process = subprocess.Popen([sys.executable, "-m", *command])  # noqa: S603 - our own provider
    try:
        end = time.monotonic() + 60
        while True:
            try:
                httpx.post(f"{url}/_settings", json={"window_tokens": 10_000_000}).raise_for_status()
                break
            except httpx.TransportError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.1)
        yield url
    finally:
        process.terminate()
        process.wait(10)


def config(url: str, *, plugin: bool) -> dict[str, Any]:
    """Return a proxy's configuration."""
    params = {"model": "openai/gpt-4.1", "api_base": f"{url}/v1", "api_key": "none"}
    settings = {"callbacks": ["ctx_hooks.proxy_handler_instance"]} if plugin else {}
    return {
        "model_list": [{"model_name": "model", "litellm_params": params, "model_info": {"max_input_tokens": WINDOW_TOKENS}}],
        "litellm_settings": settings,
        "general_settings": {"master_key": "os.environ/LITELLM_MASTER_KEY"},
    }


def body(text: str) -> bytes:
    """Return a request whose newest message is a tool result."""
    call = {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": '{"command": "curl -i example.com"}'}}
    messages = [
        {"role": "user", "content": "What does it say?"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": text},
    ]
    return json.dumps({"model": "model", "messages": messages}).encode()


def large_text(name: str, number: int) -> str:
    """Return 1 MB of a kind; `number` makes it differ from the others."""
    text = behind_header(kinds[name])(TEXT_BYTES)
    bytes_per_char = len(text.encode("utf-8", "surrogatepass")) / len(text)
    return f"request {number}\r\n{text[: int(TEXT_BYTES / bytes_per_char)]}"


def send(proxy: ProxyProcess, client: httpx.Client, content: bytes) -> int:
    """Send a request and return the status of its answer."""
    headers = {**proxy.headers, "content-type": "application/json"}
    return client.post(f"{proxy.url}/v1/chat/completions", content=content, headers=headers).status_code


def request_ms(proxy: ProxyProcess, content: bytes) -> float:
    """Return how long a request takes alone; raises RuntimeError when it is refused."""
    with httpx.Client(timeout=300) as client:
        started = time.perf_counter()
        status = send(proxy, client, content)
        if status != httpx.codes.OK:
            raise RuntimeError(f"status {status}")
        return (time.perf_counter() - started) * 1e3


def longest_wait_ms(proxy: ProxyProcess, content: bytes) -> float:
    """Return how long the slowest of tiny requests takes that go to the proxy while a large one does."""
    tiny = json.dumps({"model": "model", "messages": [{"role": "user", "content": "hi"}]}).encode()
    longest = 0.0
    with httpx.Client(timeout=300) as client:
        send(proxy, client, tiny)
        working = threading.Thread(target=request_ms, args=(proxy, content))
        working.start()
        while working.is_alive():
            started = time.perf_counter()
            send(proxy, client, tiny)
            longest = max(longest, time.perf_counter() - started)
            working.join(PAUSE_SECONDS)
    return longest * 1e3


def own_ms(content: bytes) -> float:
    """Return the processor time of the plugin's decision about the request, in this process and from empty caches."""
    content_cache.clear_all()
    request = Request("openai-chat", json.loads(content))
    target = Target("openai/gpt-4.1", "d", Window(WINDOW_TOKENS, "policy"), Policy(), "call")
    started = time.process_time()
    asyncio.run(RequestFlow().deciding.decide(request, target))
    return (time.process_time() - started) * 1e3


def table(plain: ProxyProcess, fitted: ProxyProcess, names: list[str], rounds: int, url: str) -> None:
    """Print a line a kind, and which are above the limits."""
    load_vocabularies()
    for proxy in (plain, fitted):
        request_ms(proxy, body(large_text("log", -1)))
    print(f"| {'1 MB of':31} | plugin, ms | without, ms | added, ms | longest wait beside it, ms | added, ms | |")
    print("|---|---|---|---|---|---|---|")
    above = []
    for name in names:
        if name in REFUSED:
            print(f"| {name:31} | LiteLLM refuses it, with and without | | | | | |")
            continue
        taken: dict[bool, list[float]] = {False: [], True: []}
        waited: dict[bool, list[float]] = {False: [], True: []}
        for n in range(rounds):
            alone, beside = body(large_text(name, 2 * n)), body(large_text(name, 2 * n + 1))
            for plugin, proxy in ((False, plain), (True, fitted)):
                taken[plugin].append(request_ms(proxy, alone))
                waited[plugin].append(longest_wait_ms(proxy, beside))
            httpx.post(f"{url}/_reset")  # the provider keeps what it was sent
        without, wait = statistics.median(taken[False]), statistics.median(waited[True])
        added, longer = statistics.median(taken[True]) - without, wait - statistics.median(waited[False])
        own = own_ms(alone)
        is_above = max(own, added) > MOST_ADDED_MS or longer > MOST_WAIT_MS
        above += [name] * is_above
        note = "above" if is_above else ""
        print(f"| {name:31} | {own:.0f} | {without:.0f} | {added:+.0f} | {wait:.0f} | {longer:+.0f} | {note} |", flush=True)
    limits = f"{MOST_ADDED_MS} ms added and {MOST_WAIT_MS} ms waited"
    print(f"{len(names) - len(above)} of {len(names)} kinds within {limits}; above: {', '.join(above) or 'none'}")


def memory(proxy: ProxyProcess, requests: int, url: str) -> None:
    """Print what the proxy holds after the first and after all of many differing requests."""
    names = list(kinds)

    def one(number: int) -> None:
        with httpx.Client(timeout=300) as client:
            text = f"request {number}\r\n{kinds[names[number % len(names)]](MEMORY_CHARS)}"
            send(proxy, client, body(text))

    held = []
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for start, end in ((0, FIRST_REQUESTS), (FIRST_REQUESTS, requests)):
            for first in range(start, end, 100):
                list(pool.map(one, range(first, min(first + 100, end))))
                httpx.post(f"{url}/_reset")
            held.append(proxy.memory_bytes() / 1e6)
    print(f"memory after {FIRST_REQUESTS} different requests: {held[0]:.0f} MB, after {requests}: {held[1]:.0f} MB")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--requests", type=int, default=3_000)
    parser.add_argument("--kinds", default="", help="names of kinds, separated by commas; all by default")
    arguments = parser.parse_args()
    names = [name for name in kinds if not arguments.kinds or name in arguments.kinds.split(",")]
    with provider() as url, ProxyProcess(config(url, plugin=True)) as fitted:
        with ProxyProcess(config(url, plugin=False)) as plain:
            table(plain, fitted, names, arguments.rounds, url)
        if arguments.requests > FIRST_REQUESTS:
            memory(fitted, arguments.requests, url)


if __name__ == "__main__":
    main()
