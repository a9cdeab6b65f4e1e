"""An event as one line of JSON, with the fields and the nesting of its record, and the record of such a line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Annotated, Any, Literal, TypeAlias

import orjson
from pydantic import Field, TypeAdapter

from ctx_hooks.telemetry.listeners import Event
from ctx_hooks.tokens.usage import Billed


@dataclass(frozen=True, slots=True)
class DroppedEvents:
    """So many events are missing from the file here: they came faster than it could be written."""

    name: Literal["dropped"]
    events: int


Recorded: TypeAlias = Event | DroppedEvents
_RECORDED: TypeAdapter[Recorded] = TypeAdapter(Annotated[Recorded, Field(discriminator="name")])


def to_json(event: Recorded) -> str:
    """Return an event as one line of JSON, without the line break."""
    try:
        return orjson.dumps(event, default=_plain).decode()
    except TypeError:
        # orjson refuses integers of more than 64 bits, and a caller may ask for that much output.
        return json.dumps(event, default=_plain)


def from_json(line: str | bytes) -> Recorded:
    """Return the event of a line.

    Raises ValueError where the line is no event; a field that this version does not know is left out.
    """
    return _RECORDED.validate_json(line)


def _plain(value: Any) -> dict[str, Any]:
    if isinstance(value, Billed):
        return value._asdict()
    if isinstance(value, Mapping):
        return dict(value)
    if is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    raise TypeError(f"{type(value).__name__} has no JSON")
