"""The only folder that knows LiteLLM's private names and versions.

Everything here degrades: what a LiteLLM version does not have is answered with None, an empty list or LiteLLM's own
behaviour, never with an exception.
"""

from ctx_hooks.litellm_compat.callers import HEADER, call_id_of, caller_of, headers_of, usage_of, without_request_key
from ctx_hooks.litellm_compat.deployments import (
    Deployment,
    checks_before_deployment,
    deployment_id_of,
    deployment_of,
    deployments,
    group_of,
    known_window_tokens,
    prices_of,
    shared_cache,
)
from ctx_hooks.litellm_compat.errors import overflow_of, refusal, worded_error
from ctx_hooks.litellm_compat.logged_metadata import write_figures
from ctx_hooks.litellm_compat.reclassification import reclassify
from ctx_hooks.litellm_compat.registration import warn_of_other_lists
from ctx_hooks.litellm_compat.rescue import arrange_rescue, take_rung

__all__ = [
    "HEADER",
    "Deployment",
    "arrange_rescue",
    "call_id_of",
    "caller_of",
    "checks_before_deployment",
    "deployment_id_of",
    "deployment_of",
    "deployments",
    "group_of",
    "headers_of",
    "known_window_tokens",
    "overflow_of",
    "prices_of",
    "reclassify",
    "refusal",
    "shared_cache",
    "take_rung",
    "usage_of",
    "warn_of_other_lists",
    "without_request_key",
    "worded_error",
    "write_figures",
]
