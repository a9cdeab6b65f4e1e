"""Answers in LiteLLM's forms and as plain values: pydantic models, mappings, and bytes of server-sent events."""

import json
import re
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ValidationError

from ctx_hooks.addons.retrieval.hidden_calls.answers import Answers, Turn
from ctx_hooks.litellm_compat.errors import failing_open
from ctx_hooks.litellm_compat.registry import NOTES

EVENT = re.compile(rb".*?(?:\r\n\r\n|\n\n|\r\r)", re.DOTALL)
"""An empty line ends an event (https://html.spec.whatwg.org/multipage/server-sent-events.html)."""


def plain(answer: Any) -> Mapping[str, Any]:
    """Return an answer, or a chunk of a stream, as a mapping; an empty mapping for anything else."""
    if isinstance(answer, BaseModel):
        return answer.model_dump(exclude_none=True)
    return answer if isinstance(answer, Mapping) else {}


def like(answer: Any, fields: Mapping[str, Any]) -> Any:
    """Return `fields` in the form of an answer or a chunk, which is returned itself if they are its own."""
    if fields == plain(answer):
        return answer
    if not isinstance(answer, BaseModel):
        return dict(fields)
    try:
        made = type(answer)(**fields)
    except ValidationError:  # LiteLLM reads fields that its models do not describe in the same way
        made = type(answer).model_construct(**fields)
    if hasattr(answer, NOTES.last):
        setattr(made, NOTES.last, getattr(answer, NOTES.last))
    return made


def data_of(event: bytes) -> Mapping[str, Any] | None:
    r"""Return the JSON object of an event, None if it has none, such as a comment or `[DONE]`.

    >>> data_of(b'event: ping\ndata: {"type": "ping"}\n\n')
    {'type': 'ping'}
    """
    lines = [line[len(b"data:") :] for line in event.splitlines() if line.startswith(b"data:")]
    try:
        found = json.loads(b"\n".join(lines)) if lines else None
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def event_bytes(data: Mapping[str, Any]) -> bytes:
    """Return an event in Anthropic's form, named after the type of its data."""
    return f"event: {data['type']}\ndata: {json.dumps(data, separators=(',', ':'))}\n\n".encode()


class ShownStream:
    """The chunks of one request's streams as the client sees them, each in its original form.

    An event that the network divides is shown with its last chunk: no client can read it before.
    """

    def __init__(self, answers: Answers) -> None:
        self._answers = answers
        self._rest = b""
        self._last: Any = None

    def seen(self, chunk: Any) -> list[Any]:
        """Return what the client sees of a chunk."""
        with failing_open("shows a part of an answer as it came"):
            self._last = chunk
            if isinstance(chunk, (bytes, str)):
                return self._seen_text(chunk.encode() if isinstance(chunk, str) else chunk)
            seen = self._answers.seen(plain(chunk))
            return [] if seen is None else [like(chunk, seen)]
        return [chunk]

    def _seen_text(self, text: bytes) -> list[bytes]:
        shown = []
        self._rest += text
        events = EVENT.findall(self._rest)
        self._rest = self._rest[sum(map(len, events)) :]
        for event in events:
            data = data_of(event)
            seen = None if data is None else self._answers.seen(data)
            if seen is not None:
                shown.append(event if seen == data else event_bytes(seen))
        return shown

    def turn(self) -> Turn | None:
        """Return the provider's turn since its last stream began, None if it cannot be read."""
        with failing_open("shows the end of an answer as it came"):
            return self._answers.turn()
        return None

    def go_on(self) -> None:
        """Begin the stream of a further answer."""
        self._answers.go_on()
        self._rest = b""

    def end(self) -> list[Any]:
        """Return the withheld end of the last stream."""
        is_text, events = isinstance(self._last, (bytes, str)), self._answers.withheld
        with failing_open("shows the end of an answer as it came"):
            events = list(self._answers.end())
        ended = [event_bytes(event) if is_text else like(self._last, event) for event in events]
        return [*ended, self._rest] if self._rest else ended
