"""Whole sessions: JSON lines with `format` and `messages`, and if known `id`, `model`, `system` and `tools`."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ctx_hooks.cli.replay.recorded import LeftOut, Recorded, Row
from ctx_hooks.errors import MalformedConversationError
from ctx_hooks.formats import WIRE_FORMATS
from ctx_hooks.formats.fields import text_or_empty
from ctx_hooks.request.request import Request

NAME = "sessions"
NO_SESSION = "rows that hold no session of a known format"


def recognises(fields: Mapping[str, Any]) -> bool:
    """Whether a row is a session."""
    return text_or_empty(fields.get("format")) in WIRE_FORMATS and isinstance(fields.get("messages"), list)


def requests(rows: Iterable[Row]) -> Iterator[Recorded | LeftOut]:
    """Yield each request of each session: before every answer, and at the end."""
    for row in rows:
        if not recognises(row.fields):
            yield LeftOut(NO_SESSION)
            continue
        try:
            lengths = _request_lengths(row.fields)
        except MalformedConversationError:
            yield LeftOut(NO_SESSION)
            continue
        name = text_or_empty(row.fields.get("id")) or f"line {row.line}"
        for length in lengths:
            yield Recorded(_request(row.fields, length), session=name, model=text_or_empty(row.fields.get("model")))


def _request(session: Mapping[str, Any], length: int) -> Request:
    wire, items, system = WIRE_FORMATS[session["format"]], session["messages"][:length], session.get("system")
    if system and not wire.system_field:
        items = [{"role": "system", "content": system}, *items]
    own = {wire.system_field: system} if system and wire.system_field else {}
    return Request(wire.name, {wire.messages_field: items, "tools": session.get("tools"), **own})


def _request_lengths(session: Mapping[str, Any]) -> list[int]:
    """Return the lengths at which the client must have sent a request."""
    roles = [m.role for m in WIRE_FORMATS[session["format"]].read(session["messages"]).messages]
    answers = [i for i in range(1, len(roles)) if roles[i] == "assistant" and roles[i - 1] != "assistant"]
    return answers if roles and roles[-1] == "assistant" else [*answers, len(roles)]
