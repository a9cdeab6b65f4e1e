"""The Router's context-window fallbacks, through which a request comes back to the same model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ctx_hooks.litellm_compat.deployments import group_of, proxy_router

RETRY_MARK_KEY = "ctx_hooks_rung"
"""Marks a retry of ours. The Router merges it into the attempt's arguments; the deployment hook takes it out again."""
MOST_FALLBACKS = 5
"""The Router stops after this many fallbacks (its `max_fallbacks`)."""


class Mark(dict[str, Any]):
    """The marker's value. Its class says that it is ours: a body is JSON and holds plain dictionaries."""


def arrange_rescue(data: Mapping[str, Any], retries: int) -> dict[str, Any]:
    """Return the request's data with so many `retries` on its own model group before its context-window fallbacks.

    What the operator and the caller configured stays in force behind them: the operator's context-window fallbacks (or,
    as LiteLLM does where there are none, the general ones), a caller's list of fallbacks, and `disable_fallbacks`, which
    then allows our retries on the same model and nothing else.
    """
    group = data.get("model")
    if not isinstance(group, str) or retries <= 0:
        return dict(data)
    router = proxy_router()
    own = _list(data.get("context_window_fallbacks"), getattr(router, "context_window_fallbacks", None))
    general = _list(data.get("fallbacks"), getattr(router, "fallbacks", None))
    ours = [{"model": group, RETRY_MARK_KEY: Mark(group=group, number=n)} for n in range(1, retries + 1)]
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


def take_retry_mark(kwargs: dict[str, Any]) -> int:
    """Take our mark out of an attempt's arguments and return its number; 0 when this is no retry of ours.

    The Router keeps a mark through later fallbacks: on another group it says nothing. What a caller sends under the same
    name is a field like any other, and stays.
    """
    mark = kwargs.get(RETRY_MARK_KEY)
    if not isinstance(mark, Mark):
        return 0
    del kwargs[RETRY_MARK_KEY]
    return int(mark["number"]) if mark["group"] == group_of(kwargs) else 0


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
