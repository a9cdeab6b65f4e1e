"""Deployments as the Router and LiteLLM's model map describe them."""

import os
import sys
from collections.abc import Mapping, Sequence
from copy import copy
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

import orjson

from ctx_hooks.compaction.cost import Prices
from ctx_hooks.formats.fields import mapping_or_empty
from ctx_hooks.litellm_compat.call import Deployment
from ctx_hooks.litellm_compat.registry import PROXY, REGISTERED, SHIPPED, litellm_folder, proxy_router

MOST_CONNECTIONS = 16
"""To Redis: a fast one answers a hundred requests a second over each."""
LONGEST_KEY_CHARS = 200


def configuration() -> Mapping[str, Any]:
    """Return the configuration that the proxy was started with; outside a proxy only `callback_settings`."""
    loaded = getattr(sys.modules.get(PROXY), "proxy_config", None)
    state_of = getattr(loaded, "get_config_state", None)
    stated = mapping_or_empty(state_of() if state_of else None)
    named = getattr(sys.modules.get("litellm"), "callback_settings", None)
    return {**stated, "callback_settings": named or stated.get("callback_settings")}


def deployments(group: str) -> tuple[Deployment, ...]:
    """Return the deployments of a model group, none outside a proxy or for a group it does not know."""
    return tuple(map(listed_deployment, _listed(group)))


def _listed(group: str) -> Sequence[Mapping[str, Any]]:
    listing = router_has("deployments", "registry", "get_model_list")
    return (listing(model_name=group) if listing is not None else None) or ()


def router_has(name: str, entry_point: str = "settings", attribute: str = "") -> Any:
    """Return the value of a name in the proxy's Router, by default a setting; None outside a proxy.

    Before LiteLLM 1.109 it is an attribute of the Router, from then on of one of its entry points.
    """
    router = proxy_router()
    enter = getattr(router, entry_point, None)
    return getattr(router, attribute or name, None) if enter is None else getattr(enter(), name)


def listed_deployment(entry: Mapping[str, Any]) -> Deployment:
    """Return a deployment from its entry in one of the Router's lists."""
    params = mapping_or_empty(entry.get("litellm_params"))
    return Deployment(str(params.get("model") or ""), mapping_or_empty(entry.get("model_info")))


def deployment_key_of(deployment: Deployment) -> str:
    """Return the key of a deployment's statistics: the Router's id, the same after a restart, and the model.

    All models of a wildcard deployment share one id. There the caller chooses the model's name, which may be long.
    """
    return f"{deployment.name.id}:{deployment.model}"[:LONGEST_KEY_CHARS]


def names_redis(stated: Mapping[str, Any]) -> bool:
    """Whether a configuration gives LiteLLM's Router a Redis, which does not exist yet when callbacks are loaded."""
    for section in map(mapping_or_empty, stated.values()):
        kind = mapping_or_empty(section.get("cache_params")).get("type", "redis")
        if section.get("redis_host") or section.get("redis_url") or (section.get("cache") and str(kind).startswith("redis")):
            return True
    return False


def shared_cache() -> Any:
    """Return the Router's Redis cache with connections of the plugin's own, None if it has none."""
    cache = getattr(router_has("store", "health", "cache"), "redis_cache", None)
    return None if cache is None else with_own_connections(cache)


@lru_cache(maxsize=1)
def with_own_connections(cache: Any) -> Any:
    """Return LiteLLM's Redis cache with a pool of its own, which LiteLLM makes for each different `redis_kwargs`.

    LiteLLM's own commands wait for none of its connections.
    """
    own = copy(cache)
    own.redis_kwargs = {**cache.redis_kwargs, "max_connections": MOST_CONNECTIONS}
    return own


def prices_of(deployment: Deployment, entry: Mapping[str, Any] | None = None) -> Prices | None:
    """Return the deployment's input prices, the operator's before those of its `entry_of` the model map; None without any.

    The plain price applies if the cache has none of its own.
    """
    own, known = deployment.model_info, entry_of(deployment) if entry is None else entry

    def price_of(name: str) -> Any:
        stated = own.get(name)
        return stated if isinstance(stated, (int, float)) and stated >= 0 else known.get(name)

    plain, read = price_of("input_cost_per_token"), price_of("cache_read_input_token_cost")
    written = price_of("cache_creation_input_token_cost")
    return Prices(plain, read or plain, written or plain) if plain else None


def known_window_tokens(deployment: Deployment, entry: Mapping[str, Any] | None = None) -> int | None:
    """Return the input window in tokens in the deployment's `entry_of` LiteLLM's model map."""
    known = entry_of(deployment) if entry is None else entry
    window = known.get("max_input_tokens") or known.get("max_tokens")
    return window if isinstance(window, int) and window > 0 else None


def entry_of(deployment: Deployment) -> Mapping[str, Any]:
    """Return the entry of the map as shipped or downloaded, and registered by name, for the base model, else the model.

    In `litellm.model_cost` the Router registers the `model_info` of each deployment under the model's name, so that one
    server's window would apply to all.
    """
    read, registered = (SHIPPED.find(), REGISTERED.find()) if "litellm" in sys.modules else (None, None)
    shipped, registered = (read() if read is not None else None) or _bundled(), registered or {}
    for name in (deployment.model_info.get("base_model"), deployment.model):
        for key in (name, name.split("/", 1)[-1]) if isinstance(name, str) else ():
            known: Mapping[str, Any] = shipped.get(key) or {}
            known = {**known, **registered[key]} if key in registered else known
            if known:
                return known
    return {}


COMPACTING_PROVIDERS = ("openai", "azure", "chatgpt")
COMPACTING_HOSTS = (".openai.com", ".azure.com", ".azure.us", ".azure.cn", ".chatgpt.com")
"""Of the providers whose servers answer requests for compaction; other servers speak their API, too."""


def compacts_itself(group: str) -> bool:
    """Whether every deployment of a model group is at a provider that answers requests for compaction itself."""
    import litellm  # noqa: PLC0415 - in the proxy it is loaded

    listed = _listed(group)
    for entry in listed:
        params = mapping_or_empty(entry.get("litellm_params"))
        _, provider, _, base = litellm.get_llm_provider(str(params.get("model")), params.get("custom_llm_provider"))
        base = params.get("api_base") or params.get("base_url") or base or litellm.api_base
        if provider == "openai":
            base = base or os.environ.get("OPENAI_BASE_URL") or os.environ.get("OPENAI_API_BASE") or "https://api.openai.com"
        host = f".{urlsplit(str(base or '')).hostname}"
        if provider not in COMPACTING_PROVIDERS or not host.endswith(COMPACTING_HOSTS):
            return False
    return bool(listed)


def checks_before_deployment() -> bool:
    """Whether the Router refuses too large requests itself (`enable_pre_call_checks`), before any deployment hook."""
    return bool(router_has("enable_pre_call_checks"))


@lru_cache(maxsize=1)
def _bundled() -> Mapping[str, Any]:
    """Return the map inside LiteLLM's package, in 40 ms: loading LiteLLM takes seconds."""
    found: Mapping[str, Any] = orjson.loads((litellm_folder() / "model_prices_and_context_window_backup.json").read_bytes())
    return found
