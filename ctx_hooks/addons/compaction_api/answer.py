"""Answers of the Responses API with one compaction item as their output, streamed or whole."""

import time
import uuid
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict

from ctx_hooks.formats.fields import mapping_or_empty, text_or_empty

ENDED = ("response.completed", "response.incomplete", "response.failed")
OPENING = ("response.created", "response.in_progress")


class Event(BaseModel):
    """An event of a streamed response: LiteLLM writes models as JSON."""

    model_config = ConfigDict(extra="allow")

    type: str


class CompactionStream:
    """A stream of events in place of LiteLLM's, whose notes for headers it keeps."""

    def __init__(self, events: AsyncIterator[Mapping[str, Any]], original: Any) -> None:
        self._events = events
        self._hidden_params: Any = getattr(original, "_hidden_params", {})

    def __aiter__(self) -> "CompactionStream":
        return self

    async def __anext__(self) -> Event:
        return Event(**await anext(self._events))

    async def aclose(self) -> None:
        """Close the stream below, if the client has left."""
        await self._events.aclose()  # type: ignore[attr-defined]  # an asynchronous generator


def plain(answer: Any) -> Mapping[str, Any]:
    """Return an answer or an event as a mapping, empty for anything else."""
    return answer.model_dump(mode="json", exclude_none=True) if isinstance(answer, BaseModel) else mapping_or_empty(answer)


def kind_of(event: Mapping[str, Any]) -> str:
    """Return the type of an event; LiteLLM's are members of an enum."""
    kind = event.get("type")
    return str(getattr(kind, "value", kind))


def text_of(response: Mapping[str, Any]) -> str:
    """Return the text of a completed response, "" if it was cut off, or called a tool."""
    if response.get("status") not in (None, "completed"):
        return ""
    texts = []
    for item in map(mapping_or_empty, response.get("output") or ()):
        if text_or_empty(item.get("type")).endswith("_call"):
            return ""
        if item.get("type") == "message":
            texts += [text_or_empty(mapping_or_empty(part).get("text")) for part in item.get("content") or ()]
    return "".join(texts)


def response_of(below: Mapping[str, Any], model: str, item: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """Return the response whose only output is a compaction item, with the usage of the response `below`, if any."""
    new = {"id": f"resp_{uuid.uuid4().hex}", "created_at": int(time.time()), "model": model}
    kept = {name: value for name, value in below.items() if name not in ("error", "incomplete_details", "tools")}
    return {**new, **kept, "object": kind, "status": "completed", "output": [dict(item)]}


def opening_of(model: str) -> Iterator[dict[str, Any]]:
    """Yield the events that open a streamed response, before anything of it is known."""
    begun = {**response_of({}, model, {}, "response"), "status": "in_progress", "output": []}
    for number, kind in enumerate(OPENING):
        yield {"type": kind, "response": begun, "sequence_number": number}


def ending_of(response: Mapping[str, Any], number: int) -> Iterator[dict[str, Any]]:
    """Yield the events with a response's one output item, and its end; the first has this `number`."""
    item = response["output"][0]
    yield {"type": "response.output_item.added", "output_index": 0, "item": item, "sequence_number": number}
    yield {"type": "response.output_item.done", "output_index": 0, "item": item, "sequence_number": number + 1}
    yield {"type": "response.completed", "response": dict(response), "sequence_number": number + 2}
