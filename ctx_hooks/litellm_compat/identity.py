"""The id of a request and the name of its tenant, which no caller can choose; and the provider's id of a stored response.

A caller may set LiteLLM's call id, and several concurrent requests may have the same. So this process gives an id of its
own, in LiteLLM's metadata of the request, which reaches every hook and logger; it begins with a secret of the process.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from functools import lru_cache
from hashlib import blake2b, sha256
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from ctx_hooks.litellm_compat.deployments import auth_of, metadata_of, proxy_router
from ctx_hooks.litellm_compat.registry import DECRYPTED_ID, PROVIDER_ID
from ctx_hooks.policy.archive_settings import ArchiveScope

if TYPE_CHECKING:
    from ctx_hooks.conversation.model import Format

REQUEST_ID = "ctx_hooks_request"
_SECRET = secrets.token_hex(8)
TENANT_DIGEST_BYTES = 8
_OWNERS = {"key": "api_key", "team": "team_id", "organization": "org_id", "user": "user_id"}
"""Of each kind the attribute of LiteLLM's object of key and team."""


def with_request_id(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return a request's fields with a new id in LiteLLM's metadata; an id that a caller has sent is replaced.

    The mapping is LiteLLM's and is changed in place: where a request fails, the proxy reads the deployment for its headers
    from the mapping that it began with.
    """
    name = "litellm_metadata" if _filled(fields, "litellm_metadata") else "metadata"
    metadata = fields.get(name)
    own = metadata if isinstance(metadata, dict) else {}
    own[REQUEST_ID] = f"{_SECRET}-{uuid4().hex}"
    return {**fields, name: own}


def with_id_outside_proxy(fields: dict[str, Any], fmt: Format) -> dict[str, Any]:
    """Return the arguments of an attempt with an id where no proxy has given one: its end teaches by the id.

    The metadata is copied: a caller may hand in the same mapping with every call.
    """
    if proxy_router() is not None or request_id_of(fields):
        return fields
    name = "metadata" if fmt == "openai-chat" and not _filled(fields, "litellm_metadata") else "litellm_metadata"
    own = fields.get(name)
    return {**fields, name: {**(own if isinstance(own, Mapping) else {}), REQUEST_ID: f"{_SECRET}-{uuid4().hex}"}}


def request_id_of(fields: Mapping[str, Any]) -> str:
    """Return the id that this process has given a request, "" where it has none.

    Args:
        fields: The arguments of a hook, or of a logged call, which has them under `litellm_params`.

    """
    logged = fields.get("litellm_params")
    for holder in (fields, logged if isinstance(logged, Mapping) else {}):
        found = metadata_of(holder).get(REQUEST_ID)
        if isinstance(found, str) and found.startswith(_SECRET):
            return found
    return ""


def passed_pre_call_hook(fields: Mapping[str, Any]) -> bool:
    """Whether a request is a conversation that the pre-call hook has arranged.

    Errors of all others (text completions, embeddings, conversations for which the plugin is off) are LiteLLM's alone. A
    Router without a proxy runs no pre-call hook: there every request may be one.
    """
    return proxy_router() is None or bool(request_id_of(fields))


def tenant_of(fields: Mapping[str, Any]) -> str:
    """Return a digest of the request's team, else its user, else its key; "nobody" without any of them."""
    auth = auth_of(metadata_of(fields))
    for name in ("team_id", "user_id", "api_key"):
        found = getattr(auth, name, None)
        if isinstance(found, str) and found:
            return blake2b(f"{name}:{found}".encode("utf-8", "replace"), digest_size=TENANT_DIGEST_BYTES).hexdigest()
    return "nobody"


def owner_of(fields: Mapping[str, Any], scope: ArchiveScope) -> tuple[str, str]:
    """Return whose texts of a request are, as a kind and LiteLLM's id; ("nobody", "") where a request has no key either.

    Args:
        fields: The arguments of a hook.
        scope: Whose they are by policy; without a team or an organization they are the key's, without a key the user's.

    """
    auth = auth_of(metadata_of(fields))
    for kind in (scope, "key", "user"):
        found = getattr(auth, _OWNERS[kind], None)
        if isinstance(found, str) and found:
            return kind, found
    return "nobody", ""


def askers_of(fields: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the ids of the user and the end user who ask, as LiteLLM knows them and as the request says; "" for none.

    Several users may share a key. What a request says of them can be anything: it keeps apart, and opens nothing.
    """
    metadata, sent = metadata_of(fields), fields.get("metadata")
    auth = auth_of(metadata)
    said = sent.get("user_id") if isinstance(sent, Mapping) else None
    found = (
        *(getattr(auth, name, None) for name in ("user_id", "end_user_id")),
        metadata.get("user_api_key_end_user_id"),
        *map(fields.get, ("user", "safety_identifier")),
        said,
    )
    return tuple(str(value or "") for value in found)


def key_id_of(key: str) -> str:
    """Return LiteLLM's id of a virtual key, which is what requests carry; an id is returned as it is."""
    return sha256(key.encode()).hexdigest() if key.startswith("sk-") else key


def _filled(fields: Mapping[str, Any], name: str) -> bool:
    return isinstance(fields.get(name), Mapping) and bool(fields[name])


def stored_history_of(fields: Mapping[str, Any]) -> str:
    """Return the provider's id of the response that a request continues, "" where it continues none."""
    return _provider_id(fields.get("previous_response_id"))


def stored_response_of(answer: Any) -> str:
    """Return the provider's id of an answer of the Responses API that a later request can continue, "" for any other."""
    fields = answer if isinstance(answer, Mapping) else getattr(answer, "__dict__", {})
    kept = fields.get("object") == "response" and fields.get("store") is not False
    return _provider_id(fields.get("id")) if kept else ""


def _provider_id(value: object) -> str:
    """Return the provider's own id: LiteLLM writes its deployment into it, and the proxy encrypts that for the client."""
    if not isinstance(value, str):
        return ""
    decode = PROVIDER_ID.find()
    try:
        return str(decode(_decrypted(value))) if decode is not None else value
    except Exception:  # noqa: BLE001 - an id in a form of another LiteLLM is an id that nothing is known of
        return value


def _decrypted(response_id: str) -> str:
    """Return the id that the proxy has encrypted; as it is where it was not, or without a key."""
    security = _security()
    return str(DECRYPTED_ID.find()(security, response_id)[0]) if security is not None else response_id


@lru_cache(maxsize=1)
def _security() -> Any:
    if DECRYPTED_ID.find() is None:
        return None
    from litellm.proxy.hooks.responses_id_security import ResponsesIDSecurity  # noqa: PLC0415 - LiteLLM has it

    return ResponsesIDSecurity()
