"""The Router's list of deployments before it chooses, and the request as it has it then."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ctx_hooks.litellm_compat.deployments import metadata_of
from ctx_hooks.litellm_compat.registry import HAS_IMAGES, NO_VISION


def routed_fields(request_kwargs: Mapping[str, Any] | None, messages: Sequence[Any] | None) -> dict[str, Any]:
    """Return the arguments of the call that the Router chooses for: on chat it keeps the messages apart."""
    fields = dict(request_kwargs or {})
    return fields if messages is None else {**fields, "messages": messages}


def call_type_of(fields: Mapping[str, Any]) -> str:
    """Return LiteLLM's name of the call, from the logging object of the request; "" outside a proxy.

    The arguments alone do not tell: an embedding has an `input` as well, a text completion `messages` of the Router's.
    """
    return str(getattr(fields.get("litellm_logging_obj"), "call_type", ""))


def filter_key_of(entry: Mapping[str, Any], fields: Mapping[str, Any]) -> str:
    """Return what the Router's later filters see of a listed deployment: they keep or drop all of one key together.

    Behind the callbacks `Router.async_get_healthy_deployments` filters by tag and by the models of a routing plugin, and on
    the Router's own retries by order and by what has been tried; of a request with images it keeps those that are not
    declared text-only. Whoever leaves a deployment of every key leaves one to each of these filters.
    """
    params, info = entry.get("litellm_params") or {}, entry.get("model_info") or {}
    tried = (fields.get("_excluded_deployment_ids"), fields.get("_retry_skipped_deployment_ids"))
    seen = [params.get("tags"), params.get("tag_regex"), [info.get("id") in (ids or ()) for ids in tried]]
    if fields.get("_target_order") is not None:
        seen += [params.get("order"), info.get("order")]
    if "_routing_plugin_candidate_models" in metadata_of(fields):
        seen.append(params.get("model"))
    return repr([*seen, _is_passed_over_for_images(entry, fields)])


def _is_passed_over_for_images(entry: Mapping[str, Any], fields: Mapping[str, Any]) -> bool:
    """Whether the request has images and LiteLLM knows the deployment as text-only, for which it chooses from 1.109 on."""
    has_images, is_text_only = HAS_IMAGES.find(), NO_VISION.find()
    if has_images is None or is_text_only is None:
        return False
    return bool(is_text_only(entry, fields.get("model")) and has_images(None, fields))
