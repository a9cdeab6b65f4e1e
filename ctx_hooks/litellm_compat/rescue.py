"""The Router's context-window fallbacks, through which a request comes back to the same model.

An entry that is a mapping is merged into the arguments of the next attempt, so one that names the same group is a retry.
"""

import secrets
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any, TypeGuard

from ctx_hooks.formats.fields import listed, mapping_or_empty
from ctx_hooks.litellm_compat.call import Call
from ctx_hooks.litellm_compat.deployments import router_has
from ctx_hooks.litellm_compat.logged import notes_on
from ctx_hooks.litellm_compat.registry import proxy_router

RETRY_MARK_KEY = "ctx_hooks_retry"
"""Marks a retry of this plugin. The Router merges it into the attempt's arguments; the deployment hook removes it."""
COMPACTION_KEY = "compaction"
"""A request with this field compacts by itself. With a complexity router, LiteLLM compacts a request above a deployment's
window, or refuses it before any deployment hook, such as an agent's loop. A retry with the field reaches the hook."""
MOST_FALLBACKS = 5
"""The Router's default of `max_fallbacks`."""
SECRET = secrets.token_bytes(16)
"""The key of the digests by which this process knows its own marks: LiteLLM logs marks."""


def arrange_rescue(data: Mapping[str, Any], retries: int, *, fallbacks_first: bool = False) -> dict[str, Any]:
    """Return a copy of the pre-call hook's data with `retries` on the own group among its context-window fallbacks.

    Before configured fallbacks the retries give way to those that the Router would not reach. With `fallbacks_first`, an
    attempt at the own group that was left to them is made up for, and a fallback that does not hold the whole request comes
    again at the end, marked.
    """
    group = data.get("model")
    following, configured, changes = _configured(data)
    after = following if fallbacks_first else []
    if not isinstance(group, str) or (retries <= 0 and not after):
        return dict(data)
    most = int(getattr(proxy_router(), "max_fallbacks", None) or MOST_FALLBACKS)
    allowed = retries + 1 if after else min(retries, most - min(len(following), most - 1))
    # The Router merges each entry into the arguments of all later attempts, which would keep a fallback's own parameters.
    sent = {name: data[name] for e in after for name in mapping_or_empty(e) if name in data and name not in _KEPT}
    again = [(name, mapping_or_empty(e)) for e in after if (name := _group_of(e))]
    entries = []
    for number, (name, fields) in enumerate([*[(group, sent)] * allowed, *again], 1):
        mark = {"secret": _digest(name, number), "group": name, "number": number}
        entries.append({**fields, "model": name, RETRY_MARK_KEY: mark, COMPACTION_KEY: data.get(COMPACTION_KEY) or mark})
    ours = [*following, *entries] if after else [*entries, *following]
    others = [e for e in configured if group not in mapping_or_empty(e)]
    return {**data, **changes, "context_window_fallbacks": [{group: ours}, *others]}


def fallback_groups(data: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the model groups that the Router would ask after an overflow of a request, also fallbacks of fallbacks."""
    following, configured, _ = _configured(data)
    found: dict[str, None] = {}
    waiting = list(map(_group_of, following))
    while waiting:
        name = waiting.pop(0)
        if name and name != data.get("model") and name not in found:
            found[name] = None
            waiting = [*map(_group_of, _fallbacks_of(name, configured)), *waiting]
    return tuple(found)


def _configured(data: Mapping[str, Any]) -> tuple[Sequence[Any], Sequence[Any], Mapping[str, Any]]:
    """Return the configured fallbacks of a request's group after an overflow, the list that has them, and fields to set."""
    group = data.get("model")
    if not isinstance(group, str):
        return [], [], {}
    if data.get("disable_fallbacks") is True:
        # The Router reads no list with the switch. So it is off, and every list is there and empty: else the operator's.
        return [], [], {"disable_fallbacks": False, "fallbacks": [], "content_policy_fallbacks": []}
    # The proxy merges the settings of the key or its team into a request after this hook, if the request has none.
    settings = mapping_or_empty(data.get("router_settings_override"))
    asked = {**settings, **data} if settings else data
    callers = listed(asked.get("fallbacks"))
    own = listed(asked.get("context_window_fallbacks")) or listed(router_has("context_window_fallbacks"))
    if callers and all(map(_group_of, callers)):
        # The Router takes a list of names or calls for every error, before it looks at context-window fallbacks. In the
        # standard form, under the group's name, the list applies to all other errors; for this one it follows the retries.
        return callers, own, {"fallbacks": [{group: list(callers)}]}
    # The caller's context-window fallbacks replace the operator's. If neither has any, the Router goes on to `fallbacks`:
    # "No context_window_fallback set. Defaulting to fallbacks, if available."
    own = own or callers or listed(router_has("fallbacks"))
    return _fallbacks_of(group, own), own, {}


def retry_of(kwargs: Mapping[str, Any]) -> tuple[int, int | None]:
    """Return the number of the retry that an attempt is, 0 for none, and the fallbacks that led to it besides retries.

    The Router keeps a mark through later fallbacks: on another group it is no retry. None before the first retry.
    """
    mark, depth = kwargs.get(RETRY_MARK_KEY), kwargs.get("fallback_depth")
    if not _is_ours(mark):
        return 0, None
    number = int(mark["number"])
    others = max(0, depth - number) if isinstance(depth, int) else None
    return number if mark["group"] == Call(kwargs).model_group else 0, others


def take_retry_mark(kwargs: dict[str, Any]) -> tuple[int, int | None]:
    """Remove the mark from an attempt's arguments, but no caller's field of the same name; return what `retry_of` does."""
    retry = retry_of(kwargs)
    for key in (RETRY_MARK_KEY, COMPACTION_KEY):
        if _is_ours(kwargs.get(key)):
            del kwargs[key]
    return retry


def hide_retries(fields: Mapping[str, Any], answer: Any, fallbacks: int) -> None:
    """Let an answer look like one without retries, after this number of fallbacks.

    LiteLLM counts retries as fallbacks, after which it leaves the deployment's name as the answer's model, and the cost of
    the refused attempt, 0, in the record of the call.
    """
    headers = notes_on(answer).get("additional_headers")
    if isinstance(headers, dict):
        headers["x-litellm-attempted-fallbacks"] = fallbacks
        if not fallbacks:
            headers.pop("x-litellm-fallback-errors", None)
    record = getattr(fields.get("litellm_logging_obj"), "model_call_details", None)
    if isinstance(record, dict) and not record.get("response_cost"):
        record.pop("response_cost", None)


_KEPT = frozenset({"model", "metadata", "litellm_metadata"})
"""Of an entry: the first is ours to set, and the Router notes an attempt in the others."""


def _group_of(entry: Any) -> str:
    name = entry.get("model") if isinstance(entry, Mapping) else entry
    return name if isinstance(name, str) else ""


def unchecked_retries(original: Any) -> Any:
    """Let marked attempts pass the Router's check of windows (`enable_pre_call_checks`): they are fitted after it."""

    def checks(self: Any, *args: Any, **kwargs: Any) -> Any:
        if _is_ours(mapping_or_empty(kwargs.get("request_kwargs")).get(RETRY_MARK_KEY)):
            kwargs |= {"messages": None, "input": None}
        return original(self, *args, **kwargs)

    return checks


def _is_ours(mark: Any) -> TypeGuard[Mapping[str, Any]]:
    return isinstance(mark, Mapping) and mark.get("secret") == _digest(mark.get("group"), mark.get("number"))


def _digest(group: Any, number: Any) -> str:
    return blake2b(f"{number}:{group}".encode("utf-8", "replace"), key=SECRET, digest_size=16).hexdigest()


def _fallbacks_of(group: str, fallbacks: Sequence[Any]) -> Sequence[Any]:
    """Return the fallbacks of a group, in the Router's order: its name, the name without its provider, every group's."""
    for key in (group, group.split("/", 1)[-1], "*"):
        for entry in map(mapping_or_empty, fallbacks):
            if isinstance(entry.get(key), (list, tuple)):
                return listed(entry[key])
    return []


def spare_deployment(fields: Mapping[str, Any]) -> None:
    """Prevent the Router's cooldown for the deployment of a failed attempt, whatever status its error has.

    After the failure hooks `Router.deployment_callback_on_failure` reads it from the attempt's log record, from `model_info`
    and then from `litellm_params`; the next attempt gets a new record.
    """
    record: Any = getattr(fields.get("litellm_logging_obj"), "model_call_details", None)
    parameters = mapping_or_empty(record.get("litellm_params") if isinstance(record, dict) else None)
    deployment = parameters.get("model_info")
    if isinstance(deployment, Mapping):
        record["litellm_params"] = {**parameters, "cooldown_time": 0, "model_info": {**deployment, "cooldown_time": 0}}
