"""What the prompt cache serves of a session whose history the provider keeps, against one whose client sends its history.

    uv run python benchmarks/stored_histories.py [--requests 41] [--window 32000]

An agent reads a file a request through a proxy with the plugin, on `/v1/responses`: once with `previous_response_id`, once
with its whole history and `store: false`. The provider serves the longest prefix that it has seen from its cache.
"""

from __future__ import annotations

import argparse
from typing import Any

from ctx_hooks.testing import LOOPBACK, Call, FakeProvider, ProviderSettings, ProxyProcess, Reply

PARAMETERS = {"type": "object", "properties": {"path": {"type": "string"}}}
TOOL = {"type": "function", "name": "read_file", "parameters": PARAMETERS}
LINES = 120


def read_next(_: str, payload: dict[str, Any], __: int) -> Reply:
    """Read the file after the newest one."""
    newest = str(payload["input"][-1].get("output", "def step_0_0"))
    number = int(newest.split("_")[1]) + 1
    return Reply(calls=[Call("read_file", {"path": f"src/part_{number}.py"})])


def text_of(number: int) -> str:
    """Return the text of a file."""
    return "\n".join(f"def step_{number}_{line}(value): return value + {number * line}" for line in range(LINES))


def ran(proxy: ProxyProcess, requests: int, *, stored: bool) -> tuple[int, int]:
    """Return the input tokens of all answers of a session, and how many of them the cache has served."""
    new: list[Any] = [{"role": "user", "content": "Read every part of src, one after the other."}]
    history, known = [], {}
    input_tokens = cached_tokens = 0
    for number in range(1, requests + 1):
        history += new
        sent = {"input": new, **known} if stored else {"input": history, "store": False}
        body = {"model": "group", "tools": [TOOL], **sent}
        response = LOOPBACK.post(f"{proxy.url}/v1/responses", json=body, headers=proxy.headers, timeout=600)
        answer = response.raise_for_status().json()
        known = {"previous_response_id": answer["id"]}
        history += answer["output"]
        (call,) = (item for item in answer["output"] if item["type"] == "function_call")
        new = [{"type": "function_call_output", "call_id": call["call_id"], "output": text_of(number)}]
        input_tokens += answer["usage"]["input_tokens"]
        cached_tokens += answer["usage"]["input_tokens_details"]["cached_tokens"]
    return input_tokens, cached_tokens


def main() -> None:
    """Print the cached share of both sessions."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=41)
    parser.add_argument("--window", type=int, default=32_000, help="in the provider's tokens")
    given = parser.parse_args()
    with FakeProvider(ProviderSettings(window_tokens=given.window), read_next) as provider:
        config = {
            "model_list": [
                {
                    "model_name": "group",
                    "litellm_params": {"model": "openai/served", "api_base": provider.url, "api_key": "none"},
                    "model_info": {"max_input_tokens": given.window},
                }
            ],
            "litellm_settings": {"callbacks": ["ctx_hooks.proxy_handler_instance"]},
        }
        with ProxyProcess(config) as proxy:
            print("| history | input tokens | from the cache | share |")
            print("|---|---|---|---|")
            for name, stored in (("kept by the provider", True), ("sent by the client", False)):
                tokens, cached = ran(proxy, given.requests, stored=stored)
                print(f"| {name} | {tokens:,} | {cached:,} | {cached / tokens:.2f} |", flush=True)


if __name__ == "__main__":
    main()
