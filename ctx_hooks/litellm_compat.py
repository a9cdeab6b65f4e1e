"""The only file that knows LiteLLM's private names and versions.

Everything here degrades: what a LiteLLM version does not have is answered with None, an empty list or LiteLLM's own
behaviour, never with an exception.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from ctx_hooks.cost import Prices
from ctx_hooks.policy.resolve import Caller, as_text

logger = logging.getLogger("ctx_hooks")

RUNG_KEY = "ctx_hooks_rung"
"""Marks a retry of ours. The Router merges it into the attempt's arguments; the deployment hook takes it out again."""
_OURS = "_ctx_hooks"
Note: TypeAlias = Callable[[Mapping[str, Any], Exception], Awaitable[bool]]
REQUEST_KEY = "ctx_hooks"
"""Our key in metadata of keys, teams, projects, organizations and requests."""
HEADER = "x-ctx-hooks"
MOST_FALLBACKS = 5
"""The Router stops after this many fallbacks (its `max_fallbacks`)."""


@dataclass(frozen=True, slots=True)
class Deployment:
    """What the Router knows of one deployment: its provider's model, and the operator's `model_info`."""

    model: str
    model_info: Mapping[str, Any]


def proxy_router() -> Any:
    """Return the proxy's Router, None outside a proxy."""
    module = sys.modules.get("litellm.proxy.proxy_server")
    return getattr(module, "llm_router", None)


def deployments(group: str) -> tuple[Deployment, ...]:
    """Return the deployments of a model group, none outside a proxy or for a group it does not know."""
    router = proxy_router()
    listed = router.get_model_list(model_name=group) if router is not None else None
    return tuple(
        Deployment(str((d.get("litellm_params") or {}).get("model") or ""), d.get("model_info") or {}) for d in listed or ()
    )


def metadata_of(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return LiteLLM's own metadata of a request: `litellm_metadata` where `metadata` belongs to the provider."""
    for name in ("litellm_metadata", "metadata"):
        found = fields.get(name)
        if isinstance(found, Mapping) and found:
            return found
    return {}


def deployment_of(kwargs: Mapping[str, Any]) -> Deployment:
    """Return the deployment that the Router chose for an attempt."""
    info = kwargs.get("model_info") or metadata_of(kwargs).get("model_info") or {}
    return Deployment(str(kwargs.get("model") or ""), info if isinstance(info, Mapping) else {})


def group_of(kwargs: Mapping[str, Any]) -> str:
    """Return the model group of an attempt, the model's name where there is no Router."""
    return str(metadata_of(kwargs).get("model_group") or kwargs.get("model") or "")


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


def _names(auth: Any, *fields: str) -> tuple[str, ...]:
    found = (auth.get(f) if isinstance(auth, Mapping) else getattr(auth, f, None) for f in fields)
    return tuple(str(name) for name in found if name)


def _overrides(auth: Any, name: str) -> str:
    metadata = auth.get(name) if isinstance(auth, Mapping) else getattr(auth, name, None)
    return as_text(metadata.get(REQUEST_KEY)) if isinstance(metadata, Mapping) else ""


def deployment_id_of(deployment: Deployment) -> str:
    """Return the Router's id of the deployment, which outlives restarts; the model's name outside a Router."""
    return str(deployment.model_info.get("id") or deployment.model)


def shared_cache() -> Any:
    """Return the Redis cache that the Router uses, None without one."""
    return getattr(getattr(proxy_router(), "cache", None), "redis_cache", None)


def prices_of(deployment: Deployment) -> Prices | None:
    """Return what LiteLLM knows of the deployment's input prices, None when it knows none."""
    known = _known(deployment)
    plain = known.get("input_cost_per_token")
    if not isinstance(plain, (int, float)) or plain <= 0:
        return None
    read = known.get("cache_read_input_token_cost") or plain
    return Prices(plain, read, known.get("cache_creation_input_token_cost") or plain)


def known_window_tokens(deployment: Deployment) -> int | None:
    """Return the input window that LiteLLM's model map has for the deployment's base model or model."""
    known = _known(deployment)
    window = known.get("max_input_tokens") or known.get("max_tokens")
    return window if isinstance(window, int) and window > 0 else None


def _known(deployment: Deployment) -> Mapping[str, Any]:
    """Return the entry of LiteLLM's model map for the deployment's base model, else for its model."""
    import litellm  # noqa: PLC0415 - loaded by the proxy long before; the library's pure part does without it

    for name in (deployment.model_info.get("base_model"), deployment.model):
        if isinstance(name, str):
            known = litellm.model_cost.get(name) or litellm.model_cost.get(name.split("/", 1)[-1])
            if known:
                return known  # type: ignore[no-any-return]  # untyped here
    return {}


def usage_of(answer: Any) -> Any:
    """Return the usage record of an answer, a mapping or an object, None without one."""
    return answer.get("usage") if isinstance(answer, Mapping) else getattr(answer, "usage", None)


def checks_before_deployment() -> bool:
    """Whether the Router refuses too large requests itself (`enable_pre_call_checks`), before any deployment hook."""
    return bool(getattr(proxy_router(), "enable_pre_call_checks", False))


def arrange_rescue(data: Mapping[str, Any], rungs: int) -> dict[str, Any]:
    """Return the request's data with `rungs` retries on its own model group in front of its context-window fallbacks.

    What the operator and the caller configured stays in force behind them: the operator's context-window fallbacks (or,
    as LiteLLM does where there are none, the general ones), a caller's list of fallbacks, and `disable_fallbacks`, which
    then allows our retries on the same model and nothing else.
    """
    group = data.get("model")
    if not isinstance(group, str) or rungs <= 0 or _tries_in_order(group):
        return dict(data)
    router = proxy_router()
    own = _list(data.get("context_window_fallbacks"), getattr(router, "context_window_fallbacks", None))
    general = _list(data.get("fallbacks"), getattr(router, "fallbacks", None))
    ours = [{"model": group, RUNG_KEY: {"group": group, "number": n}} for n in range(1, rungs + 1)]
    arranged = dict(data)
    if data.get("disable_fallbacks") is True:
        arranged.update(disable_fallbacks=False, fallbacks=[], content_policy_fallbacks=[])
        after: list[Any] = []
        own = []
    elif _is_plain_list(data.get("fallbacks")):
        # A caller's plain list would be used for every error before ours: in standard form it holds for all others.
        after = list(data["fallbacks"])
        arranged["fallbacks"] = [{group: after}]
    else:
        after = _chain(own, group) if own else _chain(general, group)
    most = int(getattr(router, "max_fallbacks", None) or MOST_FALLBACKS)
    chain = [*ours[: max(0, most - min(len(after), most - 1))], *after]
    arranged["context_window_fallbacks"] = [
        {group: chain},
        *(e for e in own if not (isinstance(e, Mapping) and group in e)),
    ]
    return arranged


def take_rung(kwargs: dict[str, Any]) -> int:
    """Take our mark out of an attempt's arguments and return its number; 0 when this is no retry of ours.

    The Router keeps a mark through later fallbacks: on another group it says nothing.
    """
    mark = kwargs.pop(RUNG_KEY, None)
    if not isinstance(mark, Mapping) or mark.get("group") != group_of(kwargs):
        return 0
    number = mark.get("number")
    return number if isinstance(number, int) else 0


def reclassify(recognise: Callable[[Exception], bool], note: Note) -> bool:
    """Let the Router see every error that `recognise` knows as the ContextWindowExceededError that its fallbacks are for.

    LiteLLM leaves many overflows as BadRequestError, APIError and others, depending on the provider. `Router.make_call`
    is the one place that every attempt on every route passes. Return whether it is there; done once a process. `note` is
    told of an overflow that no failure hook hears of, and says whether it is one.
    """
    import inspect  # noqa: PLC0415
    from functools import wraps  # noqa: PLC0415

    import litellm  # noqa: PLC0415

    original = getattr(litellm.Router, "make_call", None)
    if getattr(original, _OURS, False):
        return True
    if not inspect.iscoroutinefunction(original):
        logger.warning("this LiteLLM has no Router.make_call: overflows that it does not know itself are not retried")
        return False

    @wraps(original)
    async def make_call(self: Any, original_function: Any, *args: Any, **kwargs: Any) -> Any:
        answer = None
        try:
            answer = await original(self, original_function, *args, **kwargs)
            return await _begun(answer)
        except Exception as error:
            # A failure hook hears of what failed before the answer began, and of nothing after that.
            known = recognise(error) if answer is None else await note(kwargs, error)
            if isinstance(error, litellm.ContextWindowExceededError) or not known:
                raise
            raise _as_overflow(error, kwargs) from error

    setattr(make_call, _OURS, True)
    litellm.Router.make_call = make_call
    _reclassify_in_stream(litellm.Router, note)
    return True


async def _begun(answer: Any) -> Any:
    """Return an answer whose stream has begun: an error event before the first content is raised here, not at the client.

    Only the Router's stream of a chat completion can be looked into; other answers are returned as they are.
    """
    stream = getattr(answer, "_async_generator", None)
    if stream is None or not hasattr(stream, "__anext__"):
        return answer
    try:
        first = await stream.__anext__()
    except StopAsyncIteration:
        return answer

    async def whole() -> AsyncIterator[Any]:
        try:
            yield first
            async for chunk in stream:
                yield chunk
        finally:
            await stream.aclose()

    answer._async_generator = whole()  # noqa: SLF001 - where LiteLLM keeps it
    return answer


def _reclassify_in_stream(router: Any, note: Note) -> None:
    """Do the same for an error event inside a stream, before its first content.

    LiteLLM hands it to its fallbacks as a MidStreamFallbackError, and tells no failure hook of it.
    """
    from functools import wraps  # noqa: PLC0415

    original = getattr(router, "async_function_with_fallbacks_common_utils", None)
    if original is None:
        logger.warning("this LiteLLM has no fallbacks inside a stream: an overflow that is told there is not retried")
        return

    @wraps(original)
    async def fall_back(self: Any, e: Exception, *args: Any, **kwargs: Any) -> Any:
        cause = getattr(e, "original_exception", None)
        if isinstance(cause, Exception) and await note(kwargs.get("kwargs") or {}, cause):
            e = _as_overflow(cause, kwargs)
        return await original(self, e, *args, **kwargs)

    router.async_function_with_fallbacks_common_utils = fall_back


def _as_overflow(error: Exception, kwargs: Mapping[str, Any]) -> Exception:
    import litellm  # noqa: PLC0415

    return litellm.ContextWindowExceededError(  # type: ignore[no-any-return]  # untyped here
        message=str(getattr(error, "message", None) or error),
        model=str(getattr(error, "model", None) or kwargs.get("model") or ""),
        llm_provider=str(getattr(error, "llm_provider", None) or ""),
        response=getattr(error, "response", None),
    )


def provider_of(error: Exception) -> str | None:
    """Return the provider that LiteLLM names in an exception."""
    provider = getattr(error, "llm_provider", None)
    return provider if isinstance(provider, str) and provider else None


def refusal(message: str) -> Exception:
    """Return the exception by which a pre-call hook answers a request with status 400."""
    from fastapi import HTTPException  # noqa: PLC0415 - the proxy's, which is running when this is called

    return HTTPException(400, {"error": message})


def worded_error(error: Exception, message: str, code: str) -> Exception:
    """Give the error that the proxy is about to answer another text, and return the one for the OpenAI-shaped routes.

    /v1/messages reads the text off the exception itself and ignores what a failure hook returns. The other routes take
    the returned exception; of their own they would answer the status in the place of the code.
    """
    from fastapi import HTTPException  # noqa: PLC0415 - the proxy's, which is running when this is called
    from litellm.proxy._types import ProxyException  # noqa: PLC0415

    class ReadableError(ProxyException, HTTPException):  # type: ignore[misc]  # untyped here
        """Both: a failure hook may return the one, and the proxy answers the other in OpenAI's shape."""

        def to_dict(self) -> dict[str, Any]:
            return {"message": message, "type": "invalid_request_error", "param": None, "code": code}

    error.message = message  # type: ignore[attr-defined]
    error.status_code = 400  # type: ignore[attr-defined]
    return ReadableError(message, "invalid_request_error", None, 400)  # type: ignore[arg-type, call-arg]  # ProxyException's order


def _tries_in_order(group: str) -> bool:
    """Whether the group has deployments of several orders: the Router then has a plan of its own for a failed attempt."""
    orders = {d.model_info.get("order") for d in deployments(group)} - {None}
    return len(orders) > 1


def _list(*candidates: Any) -> list[Any]:
    return next((list(c) for c in candidates if isinstance(c, (list, tuple)) and c), [])


def _is_plain_list(fallbacks: Any) -> bool:
    """Whether fallbacks have the caller's form: a list of names, or of entries with parameters of a call."""
    if not isinstance(fallbacks, list) or not fallbacks:
        return False
    return all(isinstance(e, str) or (isinstance(e, Mapping) and isinstance(e.get("model"), str)) for e in fallbacks)


def _chain(fallbacks: list[Any], group: str) -> list[Any]:
    """Return the fallbacks of a group: its own entry, else the one for every group."""
    for key in (group, group.split("/", 1)[-1], "*"):
        for entry in fallbacks:
            if isinstance(entry, Mapping) and isinstance(entry.get(key), (list, tuple)):
                return list(entry[key])
    return []
