"""The caller of a request: LiteLLM's metadata of request, key and team, and the caller's headers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ctx_hooks.litellm_compat.deployments import Deployment, auth_of, metadata_of
from ctx_hooks.policy.caller import LONGEST_NAME_CHARS, MOST_TAGS, Caller, as_text

REQUEST_KEY = "ctx_hooks"
"""The plugin's key in the metadata of keys, teams, projects, organizations and requests."""
HEADER = "x-ctx-hooks"


def caller_of(fields: Mapping[str, Any], deployment: Deployment, session_header: str, group: str) -> Caller:
    """Return the caller of a request or an attempt.

    LiteLLM sets key and team. Session, tags, `ctx_hooks` and headers come from the caller and may have any size.

    Args:
        fields: The arguments of a hook.
        deployment: The deployment whose `model_info` may override the policy.
        session_header: Name of the header that names the session where the body does not.
        group: The model group that is asked.

    """
    metadata = metadata_of(fields)
    auth = auth_of(metadata)
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
    session = next((s for s in sessions if isinstance(s, str) and s), "")
    listed = metadata.get("tags")
    tags = [t for t in listed if isinstance(t, str)] if isinstance(listed, (list, tuple)) else []
    policy = str(headers.get(HEADER) or "")
    named = {"session": session, "tag": max(tags, key=len, default=""), "policy": policy}
    return Caller(
        group=_name(group),
        deployment=as_text(deployment.model_info.get("ctx_hooks")),
        session=_name(session),
        tags=tuple(t for t in tags if _name(t))[:MOST_TAGS],
        organization=_overrides(auth, "organization_metadata"),
        project=_overrides(auth, "project_metadata"),
        team_names=_names(auth, "team_id", "team_alias"),
        team=_overrides(auth, "team_metadata"),
        key_names=_names(auth, "key_alias"),
        key=_overrides(auth, "metadata"),
        request_policy=_name(policy),
        request=as_text(metadata.get(REQUEST_KEY) or own.get(REQUEST_KEY)),
        too_long=tuple(kind for kind, name in named.items() if not _name(name) and name),
    )


class Account(NamedTuple):
    """Whose budget a request is on: LiteLLM's ids and aliases, "" where there is none."""

    team_id: str = ""
    team_alias: str = ""
    key_alias: str = ""
    organization_id: str = ""


def account_of(fields: Mapping[str, Any]) -> Account:
    """Return whose budget a request is on, as LiteLLM's own object of key and team says."""
    auth = auth_of(metadata_of(fields))
    return Account(*(str(getattr(auth, name, None) or "") for name in ("team_id", "team_alias", "key_alias", "org_id")))


def span_of(fields: Mapping[str, Any]) -> Any:
    """Return LiteLLM's OpenTelemetry span of a request, None where it traces none."""
    span = metadata_of(fields).get("litellm_parent_otel_span")
    return span if callable(getattr(span, "add_event", None)) else None


def headers_of(fields: Mapping[str, Any]) -> Mapping[str, str]:
    """Return the caller's HTTP headers by lower-case name, none outside a proxy."""
    request = fields.get("proxy_server_request")
    found = request.get("headers") if isinstance(request, Mapping) else metadata_of(fields).get("headers")
    return {str(k).lower(): str(v) for k, v in found.items()} if isinstance(found, Mapping) else {}


def without_request_key(data: dict[str, Any]) -> dict[str, Any]:
    """Return a request's data without REQUEST_KEY in the `metadata` that goes to the provider.

    On routes where `metadata` is the provider's, LiteLLM has its own `litellm_metadata`: the key moves there. That mapping
    is changed in place, since the proxy reads it again if the request fails.
    """
    metadata, own = data.get("metadata"), data.get("litellm_metadata")
    if not (isinstance(metadata, Mapping) and isinstance(own, dict) and own and REQUEST_KEY in metadata):
        return data
    own[REQUEST_KEY] = metadata[REQUEST_KEY]
    return {**data, "metadata": {k: v for k, v in metadata.items() if k != REQUEST_KEY}}


def _name(text: str) -> str:
    """Return the name of a session, tag, policy or group; "" for one that is too long."""
    return text if len(text) <= LONGEST_NAME_CHARS else ""


def _names(auth: Any, *fields: str) -> tuple[str, ...]:
    found = (getattr(auth, f, None) for f in fields)
    return tuple(str(name) for name in found if name)


def _overrides(auth: Any, name: str) -> str:
    metadata = getattr(auth, name, None)
    return as_text(metadata.get(REQUEST_KEY)) if isinstance(metadata, Mapping) else ""
