"""How much memory a proxy holds after many requests of many tenants, with the plugin and without.

    uv run python benchmarks/memory.py [--requests 50000] [--tenants 1000] [--at-once 8] [--archive]

One proxy serves the same requests twice from a fresh start: without the plugin, then with it. A tenant's session grows
turn by turn through a window of 2,000 tokens: most requests are compressed, one in twenty holds an image of 200 KB, one
in two hundred an image of 4 MB, one in fifty is abandoned by its client, and a third are streamed. The rows are the
proxy's resident memory after each tenth of the requests. The plugin's stated bound is `cache_bytes`, a vocabulary
and, with `--archive`, the archive's `max_bytes`; the last line compares what the plugin adds with that bound and 64 MB.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import os
import random
import struct
import tempfile
import time
import zlib
from pathlib import Path
from typing import Any

import httpx

from ctx_hooks.testing import FakeProvider, ProviderSettings, ProxyProcess

WINDOW_TOKENS = 2_000
CACHE_BYTES = 64_000_000
ARCHIVE_BYTES = 32_000_000
VOCABULARY_BYTES = 80_000_000
"""o200k_base, which LiteLLM does not load itself."""
MARGIN_BYTES = 64_000_000
LONGEST_TURNS = 16
ANSWER_SECONDS = 120
FORGET_EVERY = 200
"""Requests after which the provider forgets what it was sent: its records are no part of what is measured."""
AUTH = """
from litellm.proxy._types import UserAPIKeyAuth

async def user_api_key_auth(request, api_key):
    return UserAPIKeyAuth(api_key=api_key, team_id=api_key.removeprefix("sk-team-"))
"""


def image(size_bytes: int, seed: int) -> dict[str, Any]:
    """Return an image part whose PNG has about `size_bytes` that no compression makes smaller."""
    noise = random.Random(seed).randbytes(size_bytes)
    chunks = [(b"IHDR", struct.pack(">IIBBBBB", 512, 512, 8, 2, 0, 0, 0)), (b"IDAT", noise), (b"IEND", b"")]
    png = b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )
    return {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{base64.b64encode(png).decode()}"}}


class Session:
    """One tenant's conversation; it starts anew after LONGEST_TURNS."""

    def __init__(self, tenant: int) -> None:
        self.key = f"sk-team-{tenant}"
        self._random = random.Random(tenant)
        self._messages: list[dict[str, Any]] = []

    def next_request(self) -> dict[str, Any]:
        """Return the body of the tenant's next request."""
        chance = self._random
        if len(self._messages) >= 2 * LONGEST_TURNS:
            self._messages = []
        lines = "\n".join(f"src/m{chance.randrange(10**6)}.py:{n}: value {chance.random()}" for n in range(12))
        content: Any = f"Look at this and go on.\n{lines}"
        drawn = chance.random()
        if drawn < 0.05:
            large = drawn < 0.005
            content = [{"type": "text", "text": content}, image(4_000_000 if large else 200_000, chance.randrange(10**9))]
        asked = [*self._messages, {"role": "user", "content": content}]
        said = {"role": "assistant", "content": f"I have seen value {chance.random()}."}
        # An image is sent once: a real session would send it again, and take the machine's time without holding more.
        kept = {"role": "user", "content": f"Look at this and go on.\n{lines}"}
        self._messages = [*self._messages, kept, said]
        return {"model": "group", "messages": asked, "stream": chance.random() < 1 / 3, "max_tokens": 200}


async def drive(url: str, sessions: list[Session], requests: int, at_once: int, after_each: Any) -> dict[str, int]:
    """Send the requests, so many at once, and return how many ended in which way."""
    ends: dict[str, int] = {}
    numbers = iter(range(requests))
    chance = random.Random(0)

    async def one_client(client: httpx.AsyncClient, own: list[Session]) -> None:
        for n in numbers:
            session = own[n % len(own)]
            body, headers = session.next_request(), {"Authorization": f"Bearer {session.key}"}
            seconds = 0.01 if chance.random() < 0.02 else ANSWER_SECONDS
            try:
                sent = client.post(f"{url}/v1/chat/completions", json=body, headers=headers)
                end = str((await asyncio.wait_for(sent, seconds)).status_code)
            except asyncio.TimeoutError:
                end = "abandoned"
            ends[end] = ends.get(end, 0) + 1
            await after_each(sum(ends.values()))

    async with httpx.AsyncClient(timeout=ANSWER_SECONDS) as client:
        await asyncio.gather(*(one_client(client, sessions[k::at_once]) for k in range(at_once)))
    return ends


def resident_bytes(arguments: argparse.Namespace, *, plugin: bool) -> list[int]:
    """Return the proxy's resident memory after each tenth of the requests."""
    policy: dict[str, Any] = {}
    if arguments.archive:
        policy = {"archive": {"max_bytes": ARCHIVE_BYTES}, "retrieval": True}
    measured: list[int] = []
    with FakeProvider(ProviderSettings(window_tokens=WINDOW_TOKENS)) as provider, tempfile.TemporaryDirectory() as folder:
        Path(folder, "tenant_auth.py").write_text(AUTH, encoding="utf-8")
        params = {"model": "openai/served", "api_base": f"{provider.url}/v1", "api_key": "none"}
        config = {
            "model_list": [
                {"model_name": "group", "litellm_params": params, "model_info": {"max_input_tokens": WINDOW_TOKENS}}
            ],
            "litellm_settings": {"callbacks": ["ctx_hooks.proxy_handler_instance"] if plugin else []},
            "callback_settings": {"ctx_hooks": {"cache_bytes": CACHE_BYTES, "defaults": policy}},
            "general_settings": {
                "master_key": "os.environ/LITELLM_MASTER_KEY",
                "custom_auth": "tenant_auth.user_api_key_auth",
            },
        }
        paths = os.pathsep.join([folder, str(Path(__file__).resolve().parents[1])])
        with ProxyProcess(config, {"PYTHONPATH": paths}) as proxy:

            def resident_bytes() -> int:
                return int(proxy.shown("statm").split()[1]) * os.sysconf("SC_PAGE_SIZE")

            tenth = max(1, arguments.requests // 10)

            async def after_each(done: int) -> None:
                if done % FORGET_EVERY == 0:
                    await asyncio.to_thread(provider.reset)
                if done % tenth == 0:
                    measured.append(resident_bytes())

            sessions = [Session(n) for n in range(arguments.tenants)]
            started, at_first = time.monotonic(), resident_bytes()
            ends = asyncio.run(drive(proxy.url, sessions, arguments.requests, arguments.at_once, after_each))
            shown = " ".join(f"{n / 1e6:.0f}" for n in (at_first, *measured))
            print(f"{'with' if plugin else 'without':8} MB: {shown}; {ends}; {time.monotonic() - started:.0f} s", flush=True)
    return measured


def main() -> None:
    """Measure both, and compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=50_000)
    parser.add_argument("--tenants", type=int, default=1_000)
    parser.add_argument("--at-once", type=int, default=8)
    parser.add_argument("--archive", action="store_true", help="archive what is cut, and let models retrieve it")
    arguments = parser.parse_args()
    without, with_plugin = (resident_bytes(arguments, plugin=plugin) for plugin in (False, True))
    bound = CACHE_BYTES + VOCABULARY_BYTES + (ARCHIVE_BYTES if arguments.archive else 0)
    added = max(with_plugin) - max(without)
    print(f"added {added / 1e6:.0f} MB; stated bound {bound / 1e6:.0f} MB and {MARGIN_BYTES / 1e6:.0f} MB: ", end="")
    print("within" if added <= bound + MARGIN_BYTES else "above")


if __name__ == "__main__":
    main()
