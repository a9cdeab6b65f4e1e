"""What the plugin's caches keep of one live session, by its size."""

from __future__ import annotations

import asyncio
import logging

import orjson
from workload import SIZES, Session

from ctx_hooks.policy.settings import Policy
from ctx_hooks.request.request import Request
from ctx_hooks.request.target import Target
from ctx_hooks.runtime import content_cache
from ctx_hooks.serving.request_flow import RequestFlow
from ctx_hooks.tokens.budget import Window
from ctx_hooks.tokens.units import ProviderTokens

SESSIONS, STEPS = 12, 6
COUNTED_SHARE, COMPRESSED_SHARE = 4, 16
"""Windows of half and of an eighth of the characters: a request fits, but only a count shows it; or it has twice as much."""
MARGIN_CHARS = 16_000


def session_bytes() -> dict[str, float]:
    """Return the cached bytes of a live session by size, and as `SIZE compressed` of one that exceeds its window."""
    logging.getLogger("ctx_hooks").setLevel(logging.ERROR)  # it warns of small windows
    found = {}
    for size in SIZES:
        for name, share in ((size, COUNTED_SHARE), (f"{size} compressed", COMPRESSED_SHARE)):
            content_cache.set_limit_bytes(4_000_000_000)
            content_cache.clear_all()
            turns, chars, _ = SIZES[size]
            sessions = [Session(n * 120, 30, "wide", size) for n in range(SESSIONS)]
            asyncio.run(_decided(sessions, ProviderTokens(max(MARGIN_CHARS, 2 * turns * chars) // share)))
            found[name] = content_cache._memory.size_bytes / SESSIONS  # noqa: SLF001 - nobody else asks
    return found


async def _decided(sessions: list[Session], window_tokens: ProviderTokens) -> None:
    flow, window = RequestFlow(), Window(window_tokens, "model_info")
    for n in range(STEPS):
        for session in sessions:
            step = session.step()
            tenant, request = f"team {session.tenant}", f"{n} {session.number}"
            target = Target("openai/gpt-4.1", "deployment", window, Policy(reserve=0), tenant, request)
            await flow.deciding.decide(Request(step.fmt, orjson.loads(step.body)), target)
