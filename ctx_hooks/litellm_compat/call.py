"""LiteLLM's data about a call beside its conversation: who asks, the route, the Router's choice, and the request's id.

A caller may set LiteLLM's call id, and several concurrent requests may have the same: the id in use is this plugin's own.
"""

import secrets
from collections.abc import Mapping
from functools import cached_property
from hashlib import blake2b, sha256
from itertools import count
from typing import Any, NamedTuple

from pydantic import BaseModel

from ctx_hooks.formats.fields import CHAT, Format, mapping_or_empty, text_or_empty
from ctx_hooks.formats.gemini import METHODS
from ctx_hooks.litellm_compat.registry import is_proxy
from ctx_hooks.policy.addon_settings import ArchiveScope
from ctx_hooks.policy.resolve import LONGEST_NAME_CHARS, Caller, as_text

REQUEST_KEY = "ctx_hooks"
"""The plugin's key in the metadata of keys, teams, projects, organizations and requests."""
HEADER, SESSION_HEADER = "x-ctx-hooks", "x-session-id"
REQUEST_ID = "ctx_hooks_request"
SECRET = secrets.token_hex(8)
"""The beginning of each request id of this process, so that no caller can choose one."""
_KEY, _numbers = secrets.token_bytes(32), count()
"""With the key nobody can guess the next id; to ask the system for chance takes longer."""
SUMMARY_MARK = {"ctx_hooks_summary": secrets.token_hex(16)}
"""The mark in the metadata of a call that asks a model for a summary: a caller cannot know this value."""
LONGEST_ID_CHARS = 128
SESSION_DIGITS = 4
"""Hexadecimal, and too few to guess from them how a conversation begins."""
BEGINNING_CHARS, MOST_ITEMS = 4_096, 50
"""Instructions may precede the user's first message, and reminders may be in it; the event loop reads this."""
_OWNERS = {"key": "api_key", "team": "team_id", "organization": "org_id", "user": "user_id"}
_ACCOUNT = {"team_id": "team_id", "team_alias": "team_alias", "key_alias": "key_alias", "organization_id": "org_id"}
"""The attributes of LiteLLM's object of key and team."""


class Deployment(NamedTuple):
    """A deployment of the Router: the provider's model, such as `openai/gpt-4o`, and the operator's `model_info`."""

    model: str
    model_info: Mapping[str, Any]

    @property
    def name(self) -> "DeploymentName":
        """Its id in the Router, cut to a length that all hooks cut it to, and its model."""
        return DeploymentName(str(self.model_info.get("id") or "")[:LONGEST_ID_CHARS], self.model)


class DeploymentName(NamedTuple):
    """The Router's id of a deployment, which all models behind a wildcard share, "" without a Router; and the model."""

    id: str
    model: str


class Call:
    """A call as LiteLLM passes it to one hook, read once.

    `fields` are the arguments of a hook, or LiteLLM's record of a call, which has some of them under `litellm_params`.

    Attributes:
        came_over_google_route: whether the proxy received it on a route of Google's, also if LiteLLM has translated it.
        auth: LiteLLM's object of key and team, None outside a proxy.
        request_id: the id that this process has given the request, "" if it has none.
        deployment: the Router's choice, from the Router's own metadata: a request body could name another.
        model_group: the attempt's group; the model's name without a Router. Before the Router sets it, a caller can.
        span: LiteLLM's OpenTelemetry span of the request, None if it does not trace it.
    """

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self.fields, model = fields, str(fields.get("model") or "")
        self.came_over_google_route, self.metadata, self.auth, chosen = _metadata_in(fields)
        self.request_id = request_id_of(fields)
        self.deployment = Deployment(model, mapping_or_empty(chosen.get("model_info")))
        self.is_routed = bool(chosen.get("model_group"))
        self.model_group = str(chosen.get("model_group") or model)
        self.call_type = str(getattr(fields.get("litellm_logging_obj"), "call_type", ""))
        span = self.metadata.get("litellm_parent_otel_span")
        self.span: Any = span if span is not None and callable(getattr(span, "add_event", None)) else None

    def renew_id(self) -> None:
        """Give the request a new id, which begins with the digits of its session."""
        own = blake2b(str(next(_numbers)).encode(), key=_KEY, digest_size=16).hexdigest()
        self.request_id = f"{SECRET}-{self.session_digits}{own}"

    @property
    def named_deployment(self) -> DeploymentName:
        """The same by its names, in a record from its `litellm_params`: attempts may share the metadata."""
        recorded, chosen = mapping_or_empty(self.fields.get("litellm_params")), self.deployment
        logged = mapping_or_empty(recorded and (recorded.get("model_info") or chosen_by_router(recorded)))
        return Deployment(chosen.model, logged).name if logged else chosen.name

    @property
    def is_for_summary(self) -> bool:
        """Whether it asks a model for a summary, and so is never compacted by one."""
        return SUMMARY_MARK.items() <= self.metadata.items()

    @cached_property
    def headers(self) -> Mapping[str, str]:
        """The caller's HTTP headers by lower-case name, none outside a proxy."""
        request = self.fields.get("proxy_server_request")
        found = request.get("headers") if isinstance(request, Mapping) else self.metadata.get("headers")
        return {str(k).lower(): str(v) for k, v in mapping_or_empty(found).items()}

    @property
    def sent_by_caller(self) -> Any:
        """The received request with its address and headers; outside a proxy the arguments of the call."""
        return self.fields.get("proxy_server_request") or self.fields

    @cached_property
    def session_digits(self) -> str:
        """Four digits from a digest of the tenant and the conversation's beginning, kept in the request's id."""
        if not (digits := self.request_id[len(SECRET) + 1 :]):
            digits = blake2b(f"{self.tenant}:{_beginning(self.fields)}".encode("utf-8", "replace")).hexdigest()
        return digits[:SESSION_DIGITS]

    @cached_property
    def tenant(self) -> str:
        """A digest of the request's team, else its user, else its key; "nobody" without any of them."""
        kind, identifier = self._first_of("team", "user", "key")
        return tenant_digest(kind, identifier) if identifier else kind

    @property
    def account(self) -> dict[str, str]:
        """The account that pays for the request, by the events' names; "" if there is none."""
        return {name: str(getattr(self.auth, attribute, None) or "") for name, attribute in _ACCOUNT.items()}

    def owner(self, scope: ArchiveScope) -> tuple[str, str]:
        """Return the owner of the request's texts, by the policy's kind, else key or user, else ("nobody", "")."""
        return self._first_of(scope, "key", "user")

    def _first_of(self, *kinds: str) -> tuple[str, str]:
        for kind in kinds:
            found = getattr(self.auth, _OWNERS[kind], None)
            if isinstance(found, str) and found:
                return kind, found
        return "nobody", ""

    def caller(self, deployment: Deployment, group: str) -> Caller:
        """Return the caller for whom a policy is resolved, for a model group and a deployment's `model_info`."""
        auth, own, account = self.auth, mapping_or_empty(self.fields.get("metadata")), self.account
        named = (self.fields.get("litellm_session_id"), self.metadata.get("session_id"), own.get("session_id"))
        sessions = (*named, self.fields.get("user"), self.headers.get(SESSION_HEADER))
        return Caller(
            group=_name(group),
            deployment=as_text(deployment.model_info.get(REQUEST_KEY)),
            session=_name(next(filter(None, map(text_or_empty, sessions)), "")),
            organization=_overrides(auth, "organization_metadata"),
            project=_overrides(auth, "project_metadata"),
            team_names=tuple(filter(None, (account["team_id"], account["team_alias"]))),
            team=_overrides(auth, "team_metadata"),
            key_names=tuple(filter(None, (account["key_alias"],))),
            key=_overrides(auth, "metadata"),
            request_policy=_name(self.headers.get(HEADER, "")),
            request=as_text(self.metadata.get(REQUEST_KEY) or own.get(REQUEST_KEY)),
        )


def tenant_digest(kind: str, identifier: str) -> str:
    """Return a tenant's digest from its kind ("team", "user", "key" or "organization") and LiteLLM's id, a key's hash."""
    text = f"{_OWNERS[kind]}:{identifier}"
    return blake2b(text.encode("utf-8", "replace"), digest_size=8).hexdigest()


def _metadata_in(fields: Mapping[str, Any]) -> tuple[bool, Mapping[str, Any], Any, Mapping[str, Any]]:
    """Return whether a call came over Google's routes, LiteLLM's own metadata, its object of key and team, and the Router's.

    On some routes `metadata` belongs to the provider; there LiteLLM's own is `litellm_metadata`. Over Google's routes the
    proxy writes to `metadata`, while the Router notes an attempt in `litellm_metadata`. LiteLLM's own has the object of key
    and team, a model which no caller can send as JSON; what the plugin has begun with has the request's id.
    """
    url = mapping_or_empty(fields.get("proxy_server_request")).get("url")
    is_google = isinstance(url, str) and url.split("?", 1)[0].endswith(METHODS)
    routers, others = mapping_or_empty(fields.get("litellm_metadata")), mapping_or_empty(fields.get("metadata"))
    own, second = (others, routers) if is_google else (routers, others)
    if not own or (second and _is_own(second) > _is_own(own)):
        own = second
    auth = own.get("user_api_key_auth")
    return is_google, own, auth if isinstance(auth, BaseModel) else None, routers if is_google and routers else own


def _is_own(metadata: Mapping[str, Any]) -> tuple[bool, bool]:
    found = str(metadata.get(REQUEST_ID)).startswith(SECRET)
    return isinstance(metadata.get("user_api_key_auth"), BaseModel), found


def request_id_of(fields: Mapping[str, Any]) -> str:
    """Return this process's id of a call's request, "" if there is none or a caller has chosen it."""
    for holder in (fields, mapping_or_empty(fields.get("litellm_params"))):
        for name in ("litellm_metadata", "metadata"):
            found = mapping_or_empty(holder.get(name)).get(REQUEST_ID)
            if isinstance(found, str) and found.startswith(SECRET):
                return found
    return ""


def with_request_id(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a request with a new id."""
    call = Call(fields)
    call.renew_id()
    return with_id_of(call)


def with_id_of(call: Call) -> dict[str, Any]:
    """Return the fields of a call with its id in LiteLLM's own metadata, in place of any other.

    The mapping is changed in place: if a request fails, the proxy reads it again. On `/cursor/chat/completions` the proxy
    writes to `metadata` for a request of the Responses API too, where the Router writes to `litellm_metadata`, and the
    provider gets `metadata`: there the Router's is a copy.
    """
    fields, found = call.fields, call.metadata
    is_providers = call.call_type == "aresponses"
    name = "litellm_metadata" if is_providers or (found and fields.get("litellm_metadata") is found) else "metadata"
    metadata = fields.get(name, dict(found) if is_providers else None)
    own = metadata if isinstance(metadata, dict) else {}
    own[REQUEST_ID] = call.request_id
    return {**fields, name: own}


def with_id_outside_proxy(fields: dict[str, Any], fmt: Format) -> dict[str, Any]:
    """Return the arguments of an attempt with an id if no proxy has given one; the metadata, a caller's, is copied."""
    if is_proxy() or request_id_of(fields):
        return fields
    name = "metadata" if fmt == CHAT and not mapping_or_empty(fields.get("litellm_metadata")) else "litellm_metadata"
    call = Call(fields)
    call.renew_id()
    return {**fields, name: {**mapping_or_empty(fields.get(name)), REQUEST_ID: call.request_id}}


def passed_pre_call_hook(call: Call) -> bool:
    """Whether a call is a conversation that the pre-call hook has prepared; without a proxy every call may be one."""
    return not is_proxy() or bool(call.request_id)


def key_id_of(key: str) -> str:
    """Return LiteLLM's id of a virtual key, which requests carry; an id is returned unchanged."""
    return sha256(key.encode()).hexdigest() if key.startswith("sk-") else key


def own_metadata(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return LiteLLM's own metadata of a call."""
    return _metadata_in(fields)[1]


def chosen_by_router(fields: Mapping[str, Any]) -> Any:
    """Return the `model_info` of the deployment that the Router has chosen for an attempt, another object at each choice."""
    return _metadata_in(fields)[3].get("model_info")


def _name(text: str) -> str:
    return text if len(text) <= LONGEST_NAME_CHARS else ""


def _overrides(auth: Any, name: str) -> str:
    return as_text(mapping_or_empty(getattr(auth, name, None)).get(REQUEST_KEY))


def _beginning(fields: Mapping[str, Any]) -> str:
    """Return the beginning of each user message before the first answer: all requests of a conversation have these."""
    items = fields.get("messages") or fields.get("input") or fields.get("contents") or ""
    if isinstance(items, str):
        return items[:BEGINNING_CHARS]
    texts: list[str] = []
    for item in map(mapping_or_empty, items[:MOST_ITEMS] if isinstance(items, (list, tuple)) else [items]):
        role = str(item.get("role") or ("user" if "parts" in item else ""))  # Google's default is the user
        if role not in ("user", "system", "developer"):
            break
        said = (item.get("content") or item.get("parts")) if role == "user" else ()
        parts = said[:MOST_ITEMS] if isinstance(said, (list, tuple)) else [{"text": said}]
        texts += [text_or_empty(mapping_or_empty(part).get("text"))[:BEGINNING_CHARS] for part in parts]
    return "".join(texts[:MOST_ITEMS])
