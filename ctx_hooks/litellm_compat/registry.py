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

    @property
    def last(self) -> str:
        """The last part of the name, as an attribute or a key."""
        return self.name.rpartition(".")[2]

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
        setattr(self.owner(), self.last, wrapper)
        return True

    def owner(self) -> Any:
        """Return the module or the class that has it."""
        return _value_at(self.path.replace(":", ":.").rpartition(".")[0].removesuffix(":"))


PROXY = "litellm.proxy.proxy_server"
_CORE, _AUTH = "litellm.litellm_core_utils", "litellm.proxy.auth"
_MARK = "_" if installed() < (1, 106) else ""

MAKE_CALL = PrivateName("litellm:Router.make_call", "overflows that LiteLLM does not recognise fail", until=(1, 110))
INVOKE = PrivateName("litellm.router_python_host:PythonHost.invoke", "no overflow is retried", since=(1, 110))
CHECKS = PrivateName("litellm:Router._pre_call_checks", "nothing is compressed behind a fallback that fails")
ROUTED = PrivateName("litellm.proxy.common_request_processing:route_request", "retries show, and hide their own errors")
SEND = PrivateName("httpx:AsyncClient.send", "an error with status 200 may be an empty answer")
USAGE = PrivateName("litellm:stream_chunk_builder", "a stream without usage is logged with the size that the caller sent")
TURN = PrivateName(
    "litellm.responses.streaming_iterator:ManagedResponsesWebSocketHandler._stream_and_forward",
    "over a WebSocket no request for compaction is answered",
)
PATCHED = tuple(name for name in (MAKE_CALL, INVOKE, USAGE, SEND, ROUTED, CHECKS, TURN) if name.applies)
"""The names that the plugin wraps when it is loaded."""

REDIS = PrivateName("litellm._redis:get_redis_async_client", "the commands cannot reach the proxy's Redis")
NOTES = PrivateName("litellm:ModelResponse._hidden_params", "retries show, and summaries have no price")
PROXY_ERROR = PrivateName("litellm.proxy._types:ProxyException", "the final error has LiteLLM's fields")
CONFIGURATION = PrivateName(f"{PROXY}:ProxyConfig.get_config_state", "only `callback_settings` are found")
LISTED = PrivateName("litellm:Router.get_model_list", "the plugin knows no deployment", until=(1, 109))
REGISTRY = PrivateName("litellm:Router.registry", "the plugin knows no deployment", since=(1, 109))
LLM_ROUTER = PrivateName(f"{PROXY}:llm_router", "the plugin knows no deployment, and arranges no further call")
SHIPPED = PrivateName(
    f"{_CORE}.get_model_cost_map:GetModelCostMap.loaded_model_cost_map",
    "windows and prices are those of the map inside LiteLLM's package",
    since=(1, 108),
)
REGISTERED = PrivateName(
    "litellm.utils:_runtime_registered_model_cost", "windows from `litellm.register_model` are not found", since=(1, 108)
)

SETUP, RULES = FURTHER_CALL = tuple(
    PrivateName(path, "no model is offered the retrieval tool")
    for path in ("litellm.utils:function_setup", f"{_CORE}.rules:Rules")
)
ADD_DATA, MAY_CALL, KEY_BUDGET, COMMON_CHECKS, *_ = SUMMARY_CALL = tuple(
    PrivateName(path, "no model writes summaries")
    for path in (
        "litellm.proxy.litellm_pre_call_utils:add_litellm_data_to_request",
        f"{_AUTH}.auth_checks:can_key_call_model",
        f"{_AUTH}.auth_checks:{_MARK}virtual_key_max_budget_check",
        f"{_AUTH}.user_api_key_auth:{_MARK}run_centralized_common_checks",
        *(f"{PROXY}:{name}" for name in ("proxy_logging_obj", "proxy_config", "llm_model_list")),
        *(f"litellm.proxy.utils:ProxyLogging.{name}" for name in ("pre_call_hook", "post_call_failure_hook")),
    )
)
CLIENTS_MODEL = "_litellm_client_requested_model"
"""The proxy's key in a request for the model that the client has named. It is no name that can be looked for: where it is
missing, nothing has to be left out of a further call."""
_SINGLE = [name for name in dict(globals()).values() if isinstance(name, PrivateName)]
NAMES = tuple(dict.fromkeys(name for name in (*_SINGLE, *SUMMARY_CALL) if name.applies))


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
