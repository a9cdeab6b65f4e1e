"""The Router's cooldowns: a deployment that refuses what is too long is well."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

NO_COOLDOWN = {"cooldown_time": 0}
"""`Router.deployment_callback_on_failure` reads it from `model_info`, then from `litellm_params`; 0 is no cooldown."""


def spare_deployment(fields: Mapping[str, Any]) -> None:
    """Let the Router not cool the deployment of a failed attempt down, whatever status its error has.

    Some servers tell an overflow with status 500 or 429, for which the Router takes a deployment out of its group: from
    other requests, and from the retry. It asks the attempt's log record for the time to wait, after the failure hooks. What
    is written there is this attempt's: the next one gets a record of the deployment as it is configured.
    """
    record = getattr(fields.get("litellm_logging_obj"), "model_call_details", None)
    if not isinstance(record, dict):
        return
    parameters = record.get("litellm_params")
    deployment = parameters.get("model_info") if isinstance(parameters, Mapping) else None
    if isinstance(parameters, Mapping) and isinstance(deployment, Mapping):
        record["litellm_params"] = {**parameters, **NO_COOLDOWN, "model_info": {**deployment, **NO_COOLDOWN}}
