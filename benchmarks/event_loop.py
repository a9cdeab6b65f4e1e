"""How long a proxy's event loop is held up by a request with a long history, without the plugin and with it.

    uv run python benchmarks/event_loop.py [--shape "30 MB in 3,000 messages"]
    uv run python benchmarks/event_loop.py --in-process [--shape "200,000 messages"]

In the proxy a task sleeps a millisecond at a time; what it sleeps longer while the process works, the loop was held up.
LiteLLM reads and writes such a request on the loop. The plugin works in a thread, which lets the loop go on after Python's
switch interval of 5 ms unless one call into C, or the garbage collector, takes longer.

With `--in-process` the plugin's hooks are called without a proxy, and each callback of the loop is measured in processor
time of the loop's thread: what the plugin itself does there, however busy the machine is.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx

from ctx_hooks.addons.retrieval import addon as retrieval
from ctx_hooks.hook import CtxHooks
from ctx_hooks.testing import FakeProvider, ProviderSettings, ProxyProcess

if TYPE_CHECKING:
    from collections.abc import Coroutine

WINDOW_TOKENS = 128_000
PROVIDER_TOKENS = 100_000_000
"""The provider refuses nothing: without the plugin a refusal and its traceback would be measured."""
ANSWER_SECONDS = 600
REPEATS = 2
READ = "sk-read"
SHAPES = {
    "30 MB in 3,000 messages": (2_999, 10_000),
    "30 MB in one message": (1, 30_000_000),
    "20,000 messages": (19_999, 40),
    "200,000 messages": (199_999, 40),
}
IN_A_PROXY = list(SHAPES)[:-1]
"""LiteLLM itself answers 200,000 messages no sooner than after minutes."""
WATCH = f"""
import asyncio, os, time
from litellm.proxy._types import UserAPIKeyAuth

watching, held = [], [0.0]

async def watch():
    while True:
        start, worked = time.perf_counter(), time.process_time()
        await asyncio.sleep(0.001)
        held[0] = max(held[0], min(time.perf_counter() - start - 0.001, time.process_time() - worked))

async def user_api_key_auth(request, api_key):
    if not watching:
        watching.append(asyncio.create_task(watch()))
    if api_key == "{READ}":
        with open(os.environ["HELD"], "w") as file:
            file.write(str(held[0]))
        held[0] = 0.0
    return UserAPIKeyAuth(api_key=api_key)
"""


def body_of(messages: int, chars: int) -> dict[str, Any]:
    """Return a request of messages with so many characters each."""
    text = ("The value of the row is 17, as the log says. " * (chars // 45 + 1))[:chars]
    listed = [{"role": ("user", "assistant")[n % 2], "content": f"{n} {text}"} for n in range(messages)]
    return {"model": "group", "messages": listed, "max_tokens": 100}


def measure(url: str, folder: Path, *, plugin: bool, shapes: list[str]) -> None:
    """Print a line for each request."""
    params = {"model": "openai/gpt-4o", "api_base": f"{url}/v1", "api_key": "none"}
    info = {"max_input_tokens": WINDOW_TOKENS}
    config = {
        "model_list": [{"model_name": "group", "litellm_params": params, "model_info": info}],
        "litellm_settings": {"callbacks": ["ctx_hooks.proxy_handler_instance"] if plugin else []},
        "general_settings": {
            "master_key": "os.environ/LITELLM_MASTER_KEY",
            "custom_auth": "watch_auth.user_api_key_auth",
        },
    }
    root = str(Path(__file__).resolve().parents[1])
    environment = {"PYTHONPATH": os.pathsep.join([str(folder), root]), "HELD": str(folder / "held")}
    with ProxyProcess(config, environment) as proxy, httpx.Client(timeout=ANSWER_SECONDS) as client:

        def post(body: dict[str, Any], key: str = "sk-one") -> int:
            headers = {"Authorization": f"Bearer {key}"}
            return client.post(f"{proxy.url}/v1/chat/completions", json=body, headers=headers).status_code

        short = body_of(3, 10)
        post(short)
        post(short, READ)
        for shape in shapes:
            for _ in range(REPEATS):
                status = post(body_of(*SHAPES[shape]))
                post(short, READ)
                held_ms = float((folder / "held").read_text(encoding="utf-8")) * 1e3
                print(f"{'with' if plugin else 'without':8} {shape}: longest hold {held_ms:.0f} ms, {status}", flush=True)


async def measure_hooks(shapes: list[str]) -> None:
    """Print for each hook the longest callback of the loop, in processor time of its thread."""
    from litellm import ModelResponse  # noqa: PLC0415 - takes seconds
    from litellm.proxy._types import UserAPIKeyAuth  # noqa: PLC0415

    hooks, auth = CtxHooks(), UserAPIKeyAuth(api_key="sk-one")
    info = {"id": "one", "max_input_tokens": WINDOW_TOKENS, "ctx_hooks": {"retrieval": True}}
    longest = [0.0]
    run = asyncio.events.Handle._run  # noqa: SLF001 - asyncio tells of the length of a callback in debug mode alone

    def measured(handle: asyncio.Handle) -> None:
        start = time.thread_time()
        run(handle)
        longest[0] = max(longest[0], time.thread_time() - start)

    asyncio.events.Handle._run = measured  # type: ignore[method-assign]  # noqa: SLF001

    async def held(hook: str, work: Coroutine[Any, Any, Any]) -> Any:
        await asyncio.sleep(0.1)
        longest[0] = 0.0
        result = await asyncio.create_task(work)
        await asyncio.sleep(0)
        print(f"{shape}: {hook}: {longest[0] * 1e3:.1f} ms", flush=True)
        return result

    retrieval.can_call_again()  # imports what a proxy has imported before
    for shape in shapes:
        data = {**body_of(*SHAPES[shape]), "metadata": {}}
        sent = await held("async_pre_call_hook", hooks.async_pre_call_hook(auth, None, data, "acompletion"))
        metadata = {**sent["metadata"], "model_group": "group", "model_info": info}
        attempt = {**sent, "model": "openai/gpt-4o", "model_info": info, "metadata": metadata}
        sent = await held("async_pre_call_deployment_hook", hooks.async_pre_call_deployment_hook(attempt, "acompletion"))
        answer = ModelResponse(usage={"prompt_tokens": 1_000, "completion_tokens": 5, "total_tokens": 1_005})
        logged = {**sent, "litellm_params": {"metadata": metadata}, "standard_logging_object": {"metadata": {}}}
        await held("async_logging_hook", hooks.async_logging_hook(logged, answer, "acompletion"))
        await held("async_post_call_success_hook", hooks.async_post_call_success_hook(attempt, auth, answer))


def main() -> None:
    """Measure both."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", choices=SHAPES, help="by default all")
    parser.add_argument("--in-process", action="store_true")
    arguments = parser.parse_args()
    shape = arguments.shape
    if arguments.in_process:
        asyncio.run(measure_hooks([shape] if shape else list(SHAPES)))
        return
    with FakeProvider(ProviderSettings(window_tokens=PROVIDER_TOKENS)) as provider, tempfile.TemporaryDirectory() as name:
        Path(name, "watch_auth.py").write_text(WATCH, encoding="utf-8")
        for plugin in (False, True):
            measure(provider.url, Path(name), plugin=plugin, shapes=[shape] if shape else IN_A_PROXY)
            provider.reset()


if __name__ == "__main__":
    main()
