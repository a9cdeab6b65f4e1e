"""The turns of a Responses WebSocket, which pass neither the pre-call hook nor the Router."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ctx_hooks.litellm_compat.identity import with_request_id
from ctx_hooks.policy.resolve import Policies
from ctx_hooks.request import target
from ctx_hooks.request.request import request_of
from ctx_hooks.serving.addons import Addons
from ctx_hooks.serving.running import Running


async def turn_of(
    fields: Mapping[str, Any], policies: Policies, addons: Addons, running: Running
) -> tuple[dict[str, Any], bool]:
    """Return the fields of a turn on a WebSocket with what add-ons change, and whether an add-on answers it."""
    request = request_of("aresponses", fields)
    if request is None:
        return dict(fields), False
    group = target.of_group(request.call, policies, request.call.model_group)
    if group.policy.mode == "off" or not group.policy.addon_names:
        return dict(fields), False
    begun = await addons.begun(replace(request, fields=with_request_id(fields, request.call)), group)
    sent, is_answered = dict(begun.fields), bool(running.of(begun.call.request_id).addons)
    if not is_answered:
        sent["litellm_metadata"] = fields.get("litellm_metadata")
    return sent, is_answered
