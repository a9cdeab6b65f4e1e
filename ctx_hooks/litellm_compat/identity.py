"""The id of a request in LiteLLM's metadata, which no caller can choose; and the provider's id of a stored response.

A caller may set LiteLLM's call id, and several concurrent requests may have the same.
"""

import secrets
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from ctx_hooks.formats import CHAT, Format
from ctx_hooks.formats.fields import mapping_or_empty
from ctx_hooks.litellm_compat.call import REQUEST_ID, SECRET, Call, request_id_of
from ctx_hooks.litellm_compat.deployments import is_proxy


def with_request_id(fields: Mapping[str, Any], call: Call | None = None) -> dict[str, Any]:
    """Return the fields of a request, or its `call`, with a new id in LiteLLM's own metadata, which replaces any other.

    The mapping is changed in place: if a request fails, the proxy reads it again. On `/cursor/chat/completions` the proxy
    writes to `metadata` for a request of the Responses API too, where the Router writes to `litellm_metadata`, and the
    provider gets `metadata`: there the Router's is a copy.
    """
    call = call or Call(fields)
    found = call.metadata
    is_providers = call.call_type == "aresponses"
    name = "litellm_metadata" if is_providers or (found and fields.get("litellm_metadata") is found) else "metadata"
    metadata = fields.get(name, dict(found) if is_providers else None)
    own = metadata if isinstance(metadata, dict) else {}
    own[REQUEST_ID] = _new_id(call)
    return {**fields, name: own}


def with_id_outside_proxy(fields: dict[str, Any], fmt: Format) -> dict[str, Any]:
    """Return the arguments of an attempt with an id if no proxy has given one; the metadata, a caller's, is copied."""
    if is_proxy() or request_id_of(fields):
        return fields
    name = "metadata" if fmt == CHAT and not mapping_or_empty(fields.get("litellm_metadata")) else "litellm_metadata"
    return {**fields, name: {**mapping_or_empty(fields.get(name)), REQUEST_ID: _new_id(Call(fields))}}


def passed_pre_call_hook(call: Call) -> bool:
    """Whether a call is a conversation that the pre-call hook has prepared; without a proxy every call may be one."""
    return not is_proxy() or bool(call.request_id)


def key_id_of(key: str) -> str:
    """Return LiteLLM's id of a virtual key, which requests carry; an id is returned unchanged."""
    return sha256(key.encode()).hexdigest() if key.startswith("sk-") else key


def _new_id(call: Call) -> str:
    """Return an id that no other request has, and nobody can choose."""
    return f"{SECRET}-{call.session_digits}{secrets.token_hex(16)}"
