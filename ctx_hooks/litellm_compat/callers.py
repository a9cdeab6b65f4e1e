"""Who asks for what: LiteLLM's metadata of requests, keys and teams, and the caller's headers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ctx_hooks.litellm_compat.deployments import Deployment, group_of, metadata_of
from ctx_hooks.policy.resolve import Caller, as_text

REQUEST_KEY = "ctx_hooks"
"""Our key in metadata of keys, teams, projects, organizations and requests."""
HEADER = "x-ctx-hooks"


def call_id_of(fields: Mapping[str, Any]) -> str:
    """Return LiteLLM's id of the request, the same through all its attempts."""
    return str(fields.get("litellm_call_id") or "")


def caller_of(fields: Mapping[str, Any], deployment: Deployment, session_header: str) -> Caller:
    """Return who asks, from LiteLLM's own metadata of a request or an attempt."""
    metadata = metadata_of(fields)
    auth = metadata.get("user_api_key_auth")
    headers = headers_of(fields)
    provider_metadata = fields.get("metadata")
    own = provider_metadata if isinstance(provider_metadata, Mapping) else {}
    sessions = (
        fields.get("litellm_session_id"),
        metadata.get("session_id"),
        own.get("session_id"),
        fields.get("user"),
        headers.get(session_header.lower()),
    )
    tags = metadata.get("tags")
    return Caller(
        group=group_of(fields),
        deployment=as_text(deployment.model_info.get("ctx_hooks")),
        session=next((str(s) for s in sessions if isinstance(s, str) and s), ""),
        tags=tuple(str(t) for t in tags) if isinstance(tags, (list, tuple)) else (),
        organization=_overrides(auth, "organization_metadata"),
        project=_overrides(auth, "project_metadata"),
        team_names=_names(auth, "team_id", "team_alias"),
        team=_overrides(auth, "team_metadata"),
        key_names=_names(auth, "key_alias"),
        key=_overrides(auth, "metadata"),
        request_policy=str(headers.get(HEADER) or ""),
        request=as_text(metadata.get(REQUEST_KEY) or own.get(REQUEST_KEY)),
    )


def headers_of(fields: Mapping[str, Any]) -> Mapping[str, str]:
    """Return the caller's HTTP headers by lower-case name, none outside a proxy."""
    request = fields.get("proxy_server_request")
    found = request.get("headers") if isinstance(request, Mapping) else metadata_of(fields).get("headers")
    return {str(k).lower(): str(v) for k, v in found.items()} if isinstance(found, Mapping) else {}


def without_request_key(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return a request's data with our key taken out of the `metadata` that goes to the provider.

    LiteLLM keeps metadata of its own beside it on the routes where `metadata` is the provider's: there it is kept.
    """
    changed = dict(data)
    metadata, own = data.get("metadata"), data.get("litellm_metadata")
    if isinstance(metadata, Mapping) and isinstance(own, Mapping) and own and REQUEST_KEY in metadata:
        changed["metadata"] = {k: v for k, v in metadata.items() if k != REQUEST_KEY}
        changed["litellm_metadata"] = {**own, REQUEST_KEY: metadata[REQUEST_KEY]}
    return changed


def usage_of(answer: Any) -> Any:
    """Return the usage record of an answer, a mapping or an object, None without one."""
    return answer.get("usage") if isinstance(answer, Mapping) else getattr(answer, "usage", None)


def _names(auth: Any, *fields: str) -> tuple[str, ...]:
    found = (auth.get(f) if isinstance(auth, Mapping) else getattr(auth, f, None) for f in fields)
    return tuple(str(name) for name in found if name)


def _overrides(auth: Any, name: str) -> str:
    metadata = auth.get(name) if isinstance(auth, Mapping) else getattr(auth, name, None)
    return as_text(metadata.get(REQUEST_KEY)) if isinstance(metadata, Mapping) else ""
