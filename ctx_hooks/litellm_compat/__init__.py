"""The only room of the core that uses LiteLLM's private names or depends on its version.

If a LiteLLM version lacks a name, these functions return None, an empty list or LiteLLM's own behaviour. They do not raise.
"""

from ctx_hooks.litellm_compat.call import Call, Deployment, request_id_of, tenant_digest
from ctx_hooks.litellm_compat.deployments import (
    answering_id_of,
    checks_before_deployment,
    configuration,
    deployment_key_of,
    deployments,
    filter_key_of,
    is_proxy,
    known_window_tokens,
    listed_deployment,
    names_redis,
    narrows_itself,
    prices_of,
    serves_metrics,
    shared_cache,
    summarises,
    wanted,
    writing_prices_of,
)
from ctx_hooks.litellm_compat.errors import (
    as_overflow,
    failing_open,
    note_fault,
    on_fault,
    overflow_of,
    refusal,
    text_of,
    worded_error,
)
from ctx_hooks.litellm_compat.identity import (
    key_id_of,
    passed_pre_call_hook,
    provider_id,
    with_id_outside_proxy,
    with_request_id,
)
from ctx_hooks.litellm_compat.logged import (
    Answer,
    answer_of,
    estimate_usage,
    price,
    with_forwarded_metadata,
    without_request_key,
    write_figures,
    write_notes,
)
from ctx_hooks.litellm_compat.reclassification import reclassify
from ctx_hooks.litellm_compat.registry import version_of, warn_of_missing
from ctx_hooks.litellm_compat.rescue import arrange_rescue, spare_deployment, take_retry_mark
