"""Histories that the provider keeps: responses that later requests continue by their id."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class StoredResponses:
    """The items of each answered request and of its answer, by the id of the response."""

    items: dict[str, list[Any]] = field(default_factory=dict)

    def joined(self, payload: Mapping[str, Any]) -> dict[str, Any]:
        """Return a request with the items that it continues in front of its own; as it came where the id was never given."""
        whole = dict(payload)
        if payload.get("previous_response_id") in self.items:
            before = self.items[whole.pop("previous_response_id")]
            whole["input"] = [*before, *_listed(payload.get("input"))]
        return whole

    def keep(self, request: Mapping[str, Any], response: Mapping[str, Any]) -> None:
        """Keep the items of a request, which `joined` has completed, and those of the answer to it."""
        if request.get("store") is not False:
            self.items[response["id"]] = [*_listed(request.get("input")), *response["output"]]


def truncated(payload: Mapping[str, Any], fits: Callable[[Mapping[str, Any]], bool]) -> dict[str, Any]:
    """Return a request without as many of its oldest items as its window demands, as `truncation: "auto"` asks for.

    What the request itself brings behind a stored history may go too. A call goes with its result.
    """
    items = _listed(payload.get("input"))
    while len(items) > 1 and not fits({**payload, "input": items}):
        first, *items = items
        called = first.get("call_id") if str(first.get("type", "")).endswith("_call") else None
        if called is not None:
            items = [i for i in items if i.get("call_id") != called]
    return {**payload, "input": items}


def _listed(value: Any) -> list[Any]:
    if isinstance(value, list):
        return value
    return [] if value is None else [{"role": "user", "content": value}]
