"""The Redis that a proxy's workers share, as LiteLLM connects to it."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from redis.exceptions import RedisError

from ctx_hooks.cli.terminal import CommandError, working
from ctx_hooks.litellm_compat.registry import REDIS
from ctx_hooks.store.shared_store import UnavailableError

if TYPE_CHECKING:
    from ctx_hooks.cli.configuration import Configuration

REDIS_FIELDS = ("url", "host", "port", "username", "password", "db", "ssl")
ENVIRONMENT = "REDIS_"
"""LiteLLM reads each parameter of the client from a variable with this prefix."""


@asynccontextmanager
async def opened_redis(config: Configuration) -> AsyncIterator[Any]:
    """Open the Redis that a configuration or the environment names; None if neither names one.

    Raises:
        CommandError: the configuration has an invalid URL, or the Redis cannot be reached or used.
    """
    client = _client(redis_fields(config))
    try:
        yield client
    except (OSError, RedisError, UnavailableError) as error:
        raise CommandError(f"Redis cannot be reached: {error}") from None
    finally:
        if client is not None:
            await client.aclose()


def _client(fields: Mapping[str, Any]) -> Any:
    if not fields and not any(name.startswith(ENVIRONMENT) for name in os.environ):
        return None
    with working("Loading LiteLLM"):  # which takes seconds
        make_client = REDIS.find()
    if make_client is None:
        raise CommandError(f"{REDIS.fault}: {REDIS.without}")
    try:
        return make_client(**fields)
    except ValueError as error:
        if "url" not in fields:  # neither host nor URL
            return None
        raise CommandError(f"The Redis of the configuration: {error}") from None


def redis_fields(config: Configuration) -> dict[str, Any]:
    """Return a configuration's settings of the Router's Redis, else of LiteLLM's cache."""
    router, settings = config.section("router_settings"), config.section("litellm_settings")
    named = {field: router.get(f"redis_{field}") for field in REDIS_FIELDS if router.get(f"redis_{field}") is not None}
    cache = settings.get("cache_params")
    said = cache if isinstance(cache, dict) else {}
    return named or {field: said[field] for field in REDIS_FIELDS if said.get(field) is not None}
