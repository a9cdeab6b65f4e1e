"""What was learned of each deployment, kept in this process and in LiteLLM's Redis when it has one.

Workers read each other's figures within seconds and a restart keeps them. Without Redis each process learns for itself.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from ctx_hooks.tokens.calibration import Calibration

logger = logging.getLogger("ctx_hooks")

REFRESH_SECONDS = 10.0
"""How old a figure of another worker may be."""
WAIT_SECONDS = 0.25
"""A request waits no longer for Redis, once in so many seconds: what the process knows will do."""
KEPT_SECONDS = 7 * 24 * 3600
LIMIT_SECONDS = 24 * 3600
"""A learned limit is forgotten after a day: providers raise windows, operators change servers."""
KEY_PREFIX = "ctx_hooks:learned:"


class SharedCache(Protocol):
    """The part of LiteLLM's RedisCache that is used."""

    async def async_get_cache(self, key: str) -> Any:
        """Return the value of `key`, None when there is none."""

    async def async_set_cache(self, key: str, value: Any, ttl: int) -> Any:
        """Set the value of `key` for `ttl` seconds."""


@dataclass(frozen=True, slots=True)
class LearnedFigures:
    """The figures of one deployment, in the provider's tokens.

    `limit_tokens` holds until `limit_until` (epoch). `holds_output` says that the requested output was refused as part
    of the window. `accepted_tokens` is the largest sum of an answered request's input and requested output.
    """

    calibration: Calibration = field(default_factory=Calibration)
    limit_tokens: int | None = None
    limit_until: float = 0.0
    holds_output: bool | None = None
    output_limit_tokens: int | None = None
    accepted_tokens: int = 0

    def limit_at(self, now: float) -> int | None:
        """Return the learned limit while it holds."""
        return self.limit_tokens if now < self.limit_until else None

    def billed(self, counted_tokens: int, billed_tokens: int, now: float) -> LearnedFigures:
        """Return the figures after an answer: a limit that was exceeded without complaint was too small, and is raised."""
        limit = self.limit_at(now)
        figures = replace(self, calibration=self.calibration.observe(counted_tokens, billed_tokens))
        if limit is not None and billed_tokens > limit:
            return replace(figures, limit_tokens=billed_tokens)
        return figures

    def accepted(self, total_tokens: int) -> LearnedFigures:
        """Return the figures after an answer to a request whose input and requested output were that many tokens."""
        return replace(self, accepted_tokens=max(self.accepted_tokens, total_tokens))

    def output_held(self, window_tokens: int) -> bool | None:
        """Return whether a window of that size holds the output too, as far as answers and refusals have shown it."""
        if self.holds_output:
            return True
        return False if self.accepted_tokens > window_tokens else None

    def limited(self, limit_tokens: int, now: float) -> LearnedFigures:
        """Return the figures after an overflow that named, or showed, a limit."""
        return replace(self, limit_tokens=limit_tokens, limit_until=now + LIMIT_SECONDS)

    def as_json(self) -> str:
        """Return the figures as JSON text."""
        return json.dumps(
            {
                "ratios": self.calibration.ratios,
                "published": self.calibration.published,
                "limit_tokens": self.limit_tokens,
                "limit_until": self.limit_until,
                "holds_output": self.holds_output,
                "output_limit_tokens": self.output_limit_tokens,
                "accepted_tokens": self.accepted_tokens,
            }
        )


def from_json(value: Any) -> LearnedFigures | None:
    """Return the figures of a JSON text or mapping, None when it holds none."""
    try:
        fields = json.loads(value) if isinstance(value, (str, bytes)) else dict(value)
        calibration = Calibration(tuple(map(float, fields["ratios"])), fields["published"])
        return LearnedFigures(
            calibration,
            fields["limit_tokens"],
            float(fields["limit_until"]),
            fields["holds_output"],
            fields["output_limit_tokens"],
            fields["accepted_tokens"],
        )
    except (ValueError, TypeError, KeyError):
        return None


class Learned:
    """Figures by deployment id. `shared` returns LiteLLM's Redis cache, None without one; its failures are survived."""

    def __init__(self, shared: Callable[[], SharedCache | None]) -> None:
        self._shared = shared
        self._figures: dict[str, LearnedFigures] = {}
        self._read_at: dict[str, float] = {}

    async def of(self, deployment_id: str) -> LearnedFigures:
        """Return what is known of a deployment, at most ten seconds old."""
        shared = self._shared()
        now = time.monotonic()
        if shared is not None and now - self._read_at.get(deployment_id, -REFRESH_SECONDS) >= REFRESH_SECONDS:
            self._read_at[deployment_id] = now
            try:
                found = from_json(await asyncio.wait_for(shared.async_get_cache(KEY_PREFIX + deployment_id), WAIT_SECONDS))
            except Exception as error:  # noqa: BLE001 - a request must not wait for, nor fail with, a broken Redis
                logger.warning("ctx_hooks cannot read its figures from Redis: %r", error)
                found = None
            if found is not None:
                self._figures[deployment_id] = found
        return self._figures.get(deployment_id, LearnedFigures())

    async def learn(self, deployment_id: str, change: Callable[[LearnedFigures], LearnedFigures]) -> None:
        """Change the figures of a deployment."""
        before = await self.of(deployment_id)
        after = change(before)
        if after == before:
            return
        self._figures[deployment_id] = after
        shared = self._shared()
        if shared is not None:
            try:
                writing = shared.async_set_cache(KEY_PREFIX + deployment_id, after.as_json(), ttl=KEPT_SECONDS)
                await asyncio.wait_for(writing, WAIT_SECONDS)
            except Exception as error:  # noqa: BLE001 - the figures stay in this process
                logger.warning("ctx_hooks cannot write its figures to Redis: %r", error)
