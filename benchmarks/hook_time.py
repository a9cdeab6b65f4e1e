"""The processor time that the plugin's hooks use for a request that fits, by hook.

    uv run python benchmarks/hook_time.py [--requests 600]

A proxy answers requests of 4 KB and of 600 KB, each of a new conversation. The time is that of the event loop's thread
within each hook, so what else the machine does has no part in it; the figures are means.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx
from processor_time import LARGE_CHARS, SMALL_CHARS, conversation

from ctx_hooks.testing import FakeProvider, ProviderSettings, ProxyProcess

TIMED = """
import collections, inspect, json, os, time
from ctx_hooks.hook import CtxHooks

seconds = collections.Counter()

class Timed:
    def __init__(self, name, coroutine):
        self.name, self.coroutine = name, coroutine

    def __await__(self):
        steps, value = self.coroutine.__await__(), None
        while True:
            began = time.thread_time()
            try:
                waits = steps.send(value)
            except StopIteration as end:
                return end.value
            finally:
                seconds[self.name] += time.thread_time() - began
            value = yield waits

def timed(name, hook):
    async def call(*args, **fields):
        try:
            return await Timed(name, hook(*args, **fields))
        finally:
            if name == "async_logging_hook":
                with open(os.environ["SECONDS"], "w") as file:
                    json.dump(seconds, file)
    return call

for name, hook in list(vars(CtxHooks).items()):
    if inspect.iscoroutinefunction(hook):
        setattr(CtxHooks, name, timed(name, hook))
plugin = CtxHooks()
"""


def main() -> None:
    """Print the time of each hook, and of all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=600, help="of each size")
    given = parser.parse_args()
    settings = ProviderSettings(window_tokens=10_000_000)
    with FakeProvider(settings) as provider, TemporaryDirectory() as folder:
        Path(folder, "timed_hooks.py").write_text(TIMED, encoding="utf-8")
        params = {"model": "openai/gpt-4.1", "api_base": f"{provider.url}/v1", "api_key": "none"}
        config = {
            "model_list": [{"model_name": "group", "litellm_params": params}],
            "litellm_settings": {"callbacks": ["timed_hooks.plugin"]},
        }
        paths = os.pathsep.join([folder, str(Path(__file__).resolve().parents[1])])
        for chars in (SMALL_CHARS, LARGE_CHARS):
            file = Path(folder, f"{chars}.json")
            with (
                ProxyProcess(config, {"PYTHONPATH": paths, "SECONDS": str(file)}) as proxy,
                httpx.Client(timeout=60) as client,
            ):
                for n in range(given.requests):
                    body = {"model": "group", "messages": conversation(chars, n)}
                    answer = client.post(f"{proxy.url}/v1/chat/completions", json=body, headers=proxy.headers)
                    answer.raise_for_status()
            found = {name: round(s / given.requests * 1e6) for name, s in json.loads(file.read_text()).items()}
            print(f"{chars // 1000:4} KB: {sum(found.values())} us in all hooks: {found}")


if __name__ == "__main__":
    main()
