"""Every private name of LiteLLM that the plugin uses, with the necessary parameters, and the loss without it.

LiteLLM documents none of them, and any version may drop one. Start-up and `ctx-hooks demo` look for each and report the
missing ones. Code that uses a name gets it here, and works without it if it is missing.
"""

import inspect
import math
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache, wraps
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
    """A function, class or variable.

    Attributes:
        declared: module, name and necessary parts, as `async litellm.utils:setup(rules, start_time)`: a coroutine
            function, and parameters, or a model's fields, that the plugin gives or reads by name.
        without: the feature that does not work if it is missing.
        later: its path in versions that lack the declared one.
        since: the first LiteLLM version that has it.
        until: the first one without a use for it.
    """

    declared: str
    without: str
    later: str = ""
    since: tuple[int, ...] = ()
    until: tuple[float, ...] = (math.inf,)

    @property
    def applies(self) -> bool:
        """Whether the installed LiteLLM should have it."""
        return self.since <= installed() < self.until

    @cached_property
    def path(self) -> str:
        """Module and name, as `litellm.utils:setup`."""
        return self.declared.removeprefix("async ").partition("(")[0]

    @property
    def name(self) -> str:
        """The Python name."""
        return self.path.replace(":", ".")

    @property
    def fault(self) -> str:
        """The fault of it in this LiteLLM, "" if there is none."""
        found = self._value()
        if found is ABSENT:
            return f"this LiteLLM has no {self.name}"
        if self.declared.startswith("async ") and not inspect.iscoroutinefunction(found):
            return f"{self.name} of this LiteLLM is no coroutine function"
        takes = re.findall(r"\w+", self.declared.partition("(")[2])
        lacking = sorted(set(takes) - _parameters(found)) if takes else []
        return f"{self.name} of this LiteLLM takes no {', '.join(lacking)}" if lacking else ""

    def find(self) -> Any:
        """Return it, None if this LiteLLM lacks it or has another signature."""
        return None if self.fault else self._value()

    def wrap(self, wrapper_of: Callable[[Any], Callable[..., Any]]) -> bool:
        """Replace it with a wrapper, once a process; return whether this LiteLLM has it."""
        original = self.find()
        if original is None or getattr(original, WRAPPED, False):
            return original is not None
        wrapper = wraps(original)(wrapper_of(original))
        setattr(wrapper, WRAPPED, True)
        setattr(self.owner(), self.path.replace(":", ".").rpartition(".")[2], wrapper)
        return True

    def owner(self) -> Any:
        """Return the module or the class that has it."""
        return _value_at(self.path.replace(":", ":.").rpartition(".")[0].removesuffix(":"))

    def _value(self) -> Any:
        found = _value_at(self.path)
        return _value_at(self.later) if found is ABSENT and self.later else found


ROUTER = "litellm:Router"
PROXY = "litellm.proxy.proxy_server"
NO_SUMMARIES = "no model writes summaries"
NO_RETRIEVAL = "no model is offered the retrieval tool"
NO_IDS = "the size of a history that the provider stores is not known"

RUST_ROUTER = (1, 110)
"""The first version whose Router is written in Rust."""
MAKE_CALL = PrivateName(
    f"async {ROUTER}.make_call(original_function)",
    "overflows that LiteLLM does not recognise are not retried",
    until=RUST_ROUTER,
)
INVOKE = PrivateName(
    "litellm.router_python_host:PythonHost.invoke(op)", "no overflow is retried on LiteLLM 1.110", since=RUST_ROUTER
)
IN_STREAM = PrivateName(
    f"async {ROUTER}.async_function_with_fallbacks_common_utils(e, kwargs)",
    "an overflow that a stream reports is not retried",
    until=RUST_ROUTER,
)
USAGE = PrivateName(
    "litellm:stream_chunk_builder(messages, logging_obj, count_prompt_tokens)",
    "a stream that states no usage is logged with the size that the caller sent",
)
ROUTED = PrivateName(
    "async litellm.proxy.common_request_processing:route_request(data)",
    "a retry that fails for another reason ends as an overflow, and an answered one shows",
)
CHECKS = PrivateName(
    f"{ROUTER}._pre_call_checks(messages, input, request_kwargs)",
    "with enable_pre_call_checks nothing is compressed behind a fallback that fails",
)
TURN = PrivateName(
    "async litellm.responses.streaming_iterator:ManagedResponsesWebSocketHandler._stream_and_forward(model, call_kwargs)",
    "over a WebSocket no request for compaction is answered",
)
SEND = PrivateName("async httpx:AsyncClient.send(request, stream)", "an error with status 200 may be an empty answer")
PATCHED = tuple(name for name in (MAKE_CALL, INVOKE, IN_STREAM, USAGE, SEND, ROUTED, CHECKS, TURN) if name.applies)
"""The names that the plugin wraps when it is loaded."""

RETRIES = PrivateName(
    f"{ROUTER}(fallbacks, context_window_fallbacks, max_fallbacks, enable_pre_call_checks)",
    "configured fallbacks may be lost behind the plugin's retries",
)
CACHE = PrivateName("litellm.caching.caching:DualCache(redis_cache)", "workers do not share what they learn")
REDIS = PrivateName("litellm._redis:get_redis_async_client", "the commands cannot reach the proxy's Redis")
COSTS = PrivateName(
    "litellm.litellm_core_utils.litellm_logging:Logging._response_cost_calculator(result)",
    "the cost header of an answer with retrieval may be wrong",
    later="litellm.litellm_core_utils.litellm_logging:Logging.response_cost_calculator",
)
PROVIDER_ID = PrivateName(
    "litellm.responses.utils:ResponsesAPIRequestUtils.decode_previous_response_id_to_original_previous_response_id"
    "(previous_response_id)",
    NO_IDS,
)
DECRYPTED_ID = PrivateName(
    "litellm.proxy.hooks.responses_id_security:ResponsesIDSecurity._decrypt_response_id(response_id)", NO_IDS
)
PROXY_ERROR = PrivateName(
    "litellm.proxy._types:ProxyException(message, type, param, code)", "the final error has LiteLLM's fields"
)
AUTH = PrivateName(
    "litellm.proxy._types:UserAPIKeyAuth(api_key, key_alias, team_id, team_alias, user_id, org_id, metadata, "
    "team_metadata, project_metadata, organization_metadata)",
    "tenants are not told apart, and policies of keys, teams, projects and organizations do not apply",
)
CONFIGURATION = PrivateName(f"{PROXY}:ProxyConfig.get_config_state", "settings outside `callback_settings` are not found")
LISTED = PrivateName(f"{ROUTER}.get_model_list", "the plugin knows no deployment", until=(1, 109))
REGISTRY = PrivateName(f"{ROUTER}.registry", "the plugin knows no deployment", since=(1, 109))
LLM_ROUTER = PrivateName(f"{PROXY}:llm_router", "the plugin knows no deployment, and arranges no further call")
SETUP = PrivateName("litellm.utils:function_setup(original_function, rules_obj, start_time)", NO_RETRIEVAL)
RULES = PrivateName("litellm.litellm_core_utils.rules:Rules", NO_RETRIEVAL)
FURTHER_CALL = (SETUP, RULES, LLM_ROUTER)

ADD_DATA = PrivateName("async litellm.proxy.litellm_pre_call_utils:add_litellm_data_to_request(data, request)", NO_SUMMARIES)
MAY_CALL = PrivateName("async litellm.proxy.auth.auth_checks:can_key_call_model(model)", NO_SUMMARIES)
KEY_BUDGET = PrivateName(
    "async litellm.proxy.auth.auth_checks:_virtual_key_max_budget_check(valid_token, proxy_logging_obj)",
    NO_SUMMARIES,
    later="litellm.proxy.auth.auth_checks:virtual_key_max_budget_check",
)
COMMON_CHECKS = PrivateName(
    "async litellm.proxy.auth.user_api_key_auth:_run_centralized_common_checks"
    "(user_api_key_auth_obj, request, request_data, route)",
    NO_SUMMARIES,
    later="litellm.proxy.auth.user_api_key_auth:run_centralized_common_checks",
)
PRE_CALL = PrivateName(
    "async litellm.proxy.utils:ProxyLogging.pre_call_hook(user_api_key_dict, data, call_type)", NO_SUMMARIES
)
FAILED_CALL = PrivateName(
    "async litellm.proxy.utils:ProxyLogging.post_call_failure_hook(request_data, original_exception, user_api_key_dict)",
    NO_SUMMARIES,
)
PROXY_LOGGING = PrivateName(f"{PROXY}:proxy_logging_obj", NO_SUMMARIES)
PROXY_CONFIG = PrivateName(f"{PROXY}:proxy_config", NO_SUMMARIES)
MODEL_LIST = PrivateName(f"{PROXY}:llm_model_list", NO_SUMMARIES)
SUMMARY_AUTH = PrivateName(
    "litellm.proxy._types:UserAPIKeyAuth(budget_reservation, parent_otel_span, request_route)", NO_SUMMARIES
)
SUMMARY_CALL = (
    *(ADD_DATA, MAY_CALL, KEY_BUDGET, COMMON_CHECKS, PRE_CALL, FAILED_CALL),
    *(PROXY_LOGGING, PROXY_CONFIG, MODEL_LIST, LLM_ROUTER, SUMMARY_AUTH),
)

SHIPPED = PrivateName(
    "litellm.litellm_core_utils.get_model_cost_map:GetModelCostMap.loaded_model_cost_map",
    "windows and prices are those of the map inside LiteLLM's package, not of a newer one",
    since=(1, 108),
)
REGISTERED = PrivateName(
    "litellm.utils:_runtime_registered_model_cost", "windows from `litellm.register_model` are not found", since=(1, 108)
)

NAMES = tuple(dict.fromkeys(name for name in dict(globals()).values() if isinstance(name, PrivateName) and name.applies))
KEYS: Mapping[str, str] = {
    "user_api_key_auth": "policies of teams and keys do not apply",
    "user_api_key_end_user_id": "conversations of end users of one key are not told apart",
    "litellm_settings": "no figures for Prometheus are left out where the proxy serves none",
    "litellm_metadata": "on messages and responses the plugin has no effect",
    "model_group": "policies of model groups do not apply to retries",
    "litellm_logging_obj": "statistics and costs are missing",
    "model_call_details": "streams are not recognised as the plugin's, and costs are missing",
    "litellm_params": "the plugin does not recognise logged requests",
    "litellm_call_id": "retrieval's further calls give back the first call's place",
    "litellm_session_id": "sessions are named by other fields only",
    "litellm_parent_otel_span": "spans have no attributes of the plugin",
    "proxy_server_request": "headers of requests are not read",
    "disable_fallbacks": "a caller's disable_fallbacks prevents the retries",
    "context_window_fallbacks": "nothing is retried",
    "original_exception": "an overflow that a stream reports is not retried",
    "cooldown_time": "an overflow with status 429 or 500 takes its deployment out of the group for a while",
    "async_complete_streaming_response": "nothing is learned from streams",
    "end_time": "the time that answers take is not known",
    "cache_hit": "answers of LiteLLM's cache count as billed",
    "spend_logs_metadata": "the spend log has no figures of the plugin",
    "compression_savings": "LiteLLM's dashboard has no savings of the plugin",
    "standard_logging_object": "the loggers get no figures of the plugin",
    "request_tags": "spend has no tags of the plugin",
    "response_cost": "the cost header of an answer with retrieval may be wrong",
    "_hidden_params": "the cost of summaries is not known",
    "_litellm_client_requested_model": "retrieval's further calls pass it on",
    "user_api_key_budget_reservation": "retrieval's further calls settle the first call's reservation",
}
"""Keys and attributes of LiteLLM's data for each request: only a search of its source can find them."""


def warn_of_missing() -> tuple[str, ...]:
    """Warn once of each name that this LiteLLM lacks, and return them; the proxy's names count only in a proxy."""
    in_proxy = "litellm.proxy.proxy_server" in sys.modules
    lacking = [name for name in NAMES if (in_proxy or not name.path.startswith("litellm.proxy")) and name.fault]
    for name in lacking:
        warn_once(f"{name.fault}: {name.without}")
    return tuple(name.name for name in lacking)


def missing(keys: Iterable[str]) -> set[str]:
    """Return the keys that no module of this LiteLLM contains; reading its source takes about a second."""
    wanted = set(keys)
    for path in litellm_folder().rglob("*.py"):
        source = path.read_text(encoding="utf-8", errors="replace")
        wanted -= {name for name in wanted if name in source and re.search(rf"\b{name}\b", source)}
        if not wanted:
            break
    return wanted


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


@lru_cache(maxsize=64)
def _parameters(found: Any) -> frozenset[str]:
    """Return the names of a function's parameters, or of a model's fields."""
    return frozenset(getattr(found, "model_fields", None) or inspect.signature(found).parameters)
