"""The processor time of a request that fits: without a callback, with one whose hooks do nothing, and with the plugin.

    uv run python benchmarks/processor_time.py [--batches 15]

Three proxies get the same requests in turn. What the second one needs more than the first is LiteLLM's own price of a
callback; what the third needs more than the second is the plugin's. The figures are medians of batches.
"""

from __future__ import annotations

import argparse
import os
import statistics
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx

from ctx_hooks.testing import FakeProvider, ProviderSettings, ProxyProcess

WORDS = "the quick brown fox reads src/app.py and writes line_42 of the log while nobody watches it again "
LARGE_CHARS = 600_000
SMALL_CHARS = 4_000
BATCH = 20
EMPTY = """
from litellm.integrations.custom_logger import CustomLogger

class Empty(CustomLogger):
    async def async_pre_call_hook(self, user_api_key_dict, cache, data, call_type):
        return data
    async def async_filter_deployments(self, model, healthy_deployments, messages, request_kwargs=None, **_):
        return healthy_deployments
    async def async_pre_call_deployment_hook(self, kwargs, call_type):
        return kwargs
    async def async_post_call_failure_deployment_hook(self, request_data, exception, call_type, fallback_depth=None):
        pass
    async def async_logging_hook(self, kwargs, result, call_type):
        return kwargs, result
    async def async_post_call_success_hook(self, data, user_api_key_dict, response):
        return response
    def async_post_call_streaming_iterator_hook(self, user_api_key_dict, response, request_data):
        return response
    async def async_post_call_response_headers_hook(self, data, **_):
        pass
    async def async_post_call_failure_hook(self, request_data, original_exception, **_):
        pass

handler = Empty()
"""
CALLBACKS = {"none": [], "empty": ["empty_callback.handler"], "plugin": ["ctx_hooks.proxy_handler_instance"]}


def conversation(chars: int, seed: int = 0) -> list[dict[str, Any]]:
    """Return chat messages of about `chars` characters, ending with a user's question."""
    turns = max(1, chars // 2_000)
    text = (WORDS * (chars // turns // len(WORDS) + 1))[: chars // turns]
    messages = [{"role": ("user", "assistant")[n % 2], "content": f"{seed} {n} {text}"} for n in range(turns)]
    return [*messages[: turns - turns % 2], {"role": "user", "content": "And now?"}]


def processor_seconds(proxy: ProxyProcess) -> float:
    """Return the processor time that the threads of a proxy have used, to the nanosecond."""
    tasks = Path(f"/proc/{proxy.shown('stat').split()[0]}/task").glob("*/schedstat")
    return sum(int(task.read_text(encoding="ascii").split()[0]) for task in tasks) / 1e9


def main() -> None:
    """Print the processor time of a request that fits, without a callback, with an empty one and with the plugin."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batches", type=int, default=15, help="of each proxy and size, in turn")
    arguments = parser.parse_args()
    with ExitStack() as stack:
        provider = stack.enter_context(FakeProvider(ProviderSettings(window_tokens=10_000_000)))
        folder = stack.enter_context(TemporaryDirectory())
        Path(folder, "empty_callback.py").write_text(EMPTY, encoding="utf-8")
        params = {"model": "openai/gpt-4.1", "api_base": f"{provider.url}/v1", "api_key": "none"}
        proxies = {}
        for name, callbacks in CALLBACKS.items():
            config = {
                "model_list": [{"model_name": "group", "litellm_params": params}],
                "litellm_settings": {"callbacks": callbacks},
                "general_settings": {"master_key": "os.environ/LITELLM_MASTER_KEY"},
            }
            paths = os.pathsep.join([folder, str(Path(__file__).resolve().parents[1])])
            proxies[name] = stack.enter_context(ProxyProcess(config, {"PYTHONPATH": paths}))
        client = stack.enter_context(httpx.Client(timeout=60, headers=proxies["none"].headers))
        for chars in (SMALL_CHARS, LARGE_CHARS):
            used: dict[str, list[float]] = {name: [] for name in proxies}
            for batch in range(arguments.batches + 1):
                for name, proxy in proxies.items():
                    before = processor_seconds(proxy)
                    for n in range(BATCH):
                        body = {"model": "group", "messages": conversation(chars, batch * BATCH + n)}
                        client.post(f"{proxy.url}/v1/chat/completions", json=body).raise_for_status()
                    used[name].append((processor_seconds(proxy) - before) / (BATCH))
            medians = {name: statistics.median(found[1:]) for name, found in used.items()}
            listed = ", ".join(f"{name} {median * 1e3:.2f} ms" for name, median in medians.items())
            ours = medians["plugin"] - medians["empty"]
            print(f"processor, {chars // 1000:4} KB: {listed}; the plugin's own {ours / medians['none']:+.1%}")


if __name__ == "__main__":
    main()
