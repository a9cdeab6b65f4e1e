"""Every private name of LiteLLM that the plugin uses, with the loss without it: any version may drop one.

Start-up and `ctx-hooks demo` report the missing ones. Code that uses a name gets it here, and works without it.
"""

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, wraps
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ctx_hooks.runtime.warnings import warn_once

ABSENT = object()
WRAPPED = "_ctx_hooks"
"""The attribute of a wrapper of this plugin."""


def version_of(package: str) -> str:
    """Return the version of a package, "" if it is not installed, such as a folder beside the configuration."""
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


@lru_cache(maxsize=1)
def installed() -> tuple[int, ...]:
    """Return major and minor of the installed LiteLLM."""
    return tuple(int(part) if part.isdecimal() else 0 for part in version_of("litellm").split(".")[:2])


@dataclass(frozen=True)
class PrivateName:
    """A function, class or variable, such as `litellm.utils:function_setup`, and what does not work without it.

    LiteLLM has it from version `since` on; from version `until` on, the plugin has no use for it.
    """

    path: str
    without: str
    since: tuple[int, ...] = ()
    until: tuple[float, ...] = (math.inf,)

    @property
    def applies(self) -> bool:
        """Whether the installed LiteLLM should have it."""
        return self.since <= installed() < self.until

    @property
    def name(self) -> str:
        """The Python name."""
        return self.path.replace(":", ".")

    def find(self) -> Any:
        """Return it, None if this LiteLLM lacks it."""
        found = _value_at(self.path)
        return None if found is ABSENT else found

    @property
    def fault(self) -> str:
        """What is wrong with it in this LiteLLM, "" if nothing; the proxy's variables are there and may be None."""
        return "" if _value_at(self.path) is not ABSENT else f"this LiteLLM has no {self.name}"

    def wrap(self, wrapper_of: Callable[[Any], Callable[..., Any]]) -> bool:
        """Replace it with a wrapper, once a process; return whether this LiteLLM has it."""
        original = self.find()
        if original is None or getattr(original, WRAPPED, False):
            return original is not None
        wrapper = wraps(original)(wrapper_of(original))
        setattr(wrapper, WRAPPED, True)
        setattr(self.owner(), self.name.rpartition(".")[2], wrapper)
        return True

    def owner(self) -> Any:
        """Return the module or the class that has it."""
        return _value_at(self.path.replace(":", ":.").rpartition(".")[0].removesuffix(":"))


ROUTER = "litellm:Router"
PROXY = "litellm.proxy.proxy_server"
NO_SUMMARIES = "no model writes summaries"
NO_RETRIEVAL = "no model is offered the retrieval tool"

RUST_ROUTER = (1, 110)
"""The first version whose Router is written in Rust."""
MAKE_CALL = PrivateName(
    f"{ROUTER}.make_call", "overflows that LiteLLM does not recognise are not retried", until=RUST_ROUTER
)
INVOKE = PrivateName(
    "litellm.router_python_host:PythonHost.invoke", "no overflow is retried on LiteLLM 1.110", since=RUST_ROUTER
)
USAGE = PrivateName(
    "litellm:stream_chunk_builder", "a stream that states no usage is logged with the size that the caller sent"
)
ROUTED = PrivateName(
    "litellm.proxy.common_request_processing:route_request",
    "a retry that fails for another reason ends as an overflow, and an answered one shows",
)
CHECKS = PrivateName(
    f"{ROUTER}._pre_call_checks", "with enable_pre_call_checks nothing is compressed behind a fallback that fails"
)
TURN = PrivateName(
    "litellm.responses.streaming_iterator:ManagedResponsesWebSocketHandler._stream_and_forward",
    "over a WebSocket no request for compaction is answered",
)
SEND = PrivateName("httpx:AsyncClient.send", "an error with status 200 may be an empty answer")
PATCHED = tuple(name for name in (MAKE_CALL, INVOKE, USAGE, SEND, ROUTED, CHECKS, TURN) if name.applies)
"""The names that the plugin wraps when it is loaded."""

REDIS = PrivateName("litellm._redis:get_redis_async_client", "the commands cannot reach the proxy's Redis")
COSTS = PrivateName(
    "litellm.litellm_core_utils.litellm_logging:Logging._response_cost_calculator",
    "the cost header of an answer with retrieval may be wrong",
)
PROXY_ERROR = PrivateName("litellm.proxy._types:ProxyException", "the final error has LiteLLM's fields")
CONFIGURATION = PrivateName(f"{PROXY}:ProxyConfig.get_config_state", "settings outside `callback_settings` are not found")
LISTED = PrivateName(f"{ROUTER}.get_model_list", "the plugin knows no deployment", until=(1, 109))
REGISTRY = PrivateName(f"{ROUTER}.registry", "the plugin knows no deployment", since=(1, 109))
LLM_ROUTER = PrivateName(f"{PROXY}:llm_router", "the plugin knows no deployment, and arranges no further call")
SETUP = PrivateName("litellm.utils:function_setup", NO_RETRIEVAL)
RULES = PrivateName("litellm.litellm_core_utils.rules:Rules", NO_RETRIEVAL)
FURTHER_CALL = (SETUP, RULES, LLM_ROUTER)

ADD_DATA = PrivateName("litellm.proxy.litellm_pre_call_utils:add_litellm_data_to_request", NO_SUMMARIES)
MAY_CALL = PrivateName("litellm.proxy.auth.auth_checks:can_key_call_model", NO_SUMMARIES)
_MARK = "_" if installed() < (1, 106) else ""
KEY_BUDGET = PrivateName(f"litellm.proxy.auth.auth_checks:{_MARK}virtual_key_max_budget_check", NO_SUMMARIES)
COMMON_CHECKS = PrivateName(f"litellm.proxy.auth.user_api_key_auth:{_MARK}run_centralized_common_checks", NO_SUMMARIES)
SUMMARY_CALL = (
    *(ADD_DATA, MAY_CALL, KEY_BUDGET, COMMON_CHECKS, LLM_ROUTER),
    *(PrivateName(f"{PROXY}:{name}", NO_SUMMARIES) for name in ("proxy_logging_obj", "proxy_config", "llm_model_list")),
    *(
        PrivateName(f"litellm.proxy.utils:ProxyLogging.{name}", NO_SUMMARIES)
        for name in ("pre_call_hook", "post_call_failure_hook")
    ),
)

SHIPPED = PrivateName(
    "litellm.litellm_core_utils.get_model_cost_map:GetModelCostMap.loaded_model_cost_map",
    "windows and prices are those of the map inside LiteLLM's package, not of a newer one",
    since=(1, 108),
)
REGISTERED = PrivateName(
    "litellm.utils:_runtime_registered_model_cost", "windows from `litellm.register_model` are not found", since=(1, 108)
)

_BY_NAME = [name for name in dict(globals()).values() if isinstance(name, PrivateName)]
NAMES = tuple(dict.fromkeys(name for name in (*_BY_NAME, *SUMMARY_CALL) if name.applies))


def warn_of_missing() -> tuple[str, ...]:
    """Warn once of each name that this LiteLLM lacks, and return them; the proxy's names count only in a proxy."""
    in_proxy = PROXY in sys.modules
    lacking = [name for name in NAMES if (in_proxy or not name.path.startswith("litellm.proxy")) and name.fault]
    for name in lacking:
        warn_once(f"{name.fault}: {name.without}")
    return tuple(name.name for name in lacking)


def proxy_router() -> Any:
    """Return the proxy's Router, None outside a proxy."""
    return getattr(sys.modules.get(PROXY), "llm_router", None)


def is_proxy() -> bool:
    """Whether this process is a proxy."""
    return proxy_router() is not None


def litellm_folder() -> Path:
    """Return LiteLLM's folder, without loading LiteLLM, which takes seconds."""
    return Path(str(getattr(find_spec("litellm"), "origin", ""))).parent


def _value_at(path: str) -> Any:
    module, _, name = path.partition(":")
    try:
        found: Any = sys.modules.get(module) or import_module(module)  # the import takes 3 µs, for each request
    except ImportError:
        return ABSENT
    for part in filter(None, name.split(".")):
        found = getattr(found, part, ABSENT)
    return found
