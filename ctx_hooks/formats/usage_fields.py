"""The usage that answers state, whole or streamed, with the input of what the client sent instead of what was read.

Nothing here changes an answer in place: LiteLLM logs and bills the same object.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

WHOLE_INPUTS = ("prompt_tokens", "promptTokenCount", "prompt_token_count")
"""Chat's and Google's input, what the prompt cache served included; so is `input_tokens` of the Responses API."""
INPUT = "input_tokens"
BESIDE_INPUT = ("cache_read_input_tokens", "cache_creation_input_tokens")
"""Anthropic states these beside `input_tokens`. They stay as billed."""
TOTALS = ("total_tokens", "totalTokenCount", "total_token_count")
RECORDS = ("usage", "usageMetadata", "usage_metadata")
HOLDERS = ("message", "response")
"""Where `message_start` of Anthropic and the last event of a Responses stream hold the answer."""
LONGEST_LINE_BYTES = 256_000
"""A longer line of an event stream goes on as it is: it holds an image or a file, and to read it would hold up the event
loop for more than 3 ms (JSON is read at about 100 MB a second)."""


def grown(answer: Any, growth: float) -> Any:
    """Return an answer, or a chunk or event of a stream, whose input is `growth` times what was billed.

    The total grows by as many tokens; output and what is said of the cache stay as billed. The object itself is returned
    where it states no input.

    Args:
        answer: a mapping, a pydantic model, or whole lines of server-sent events as bytes.
        growth: the size of what the client sent as a multiple of what was sent on.

    >>> grown({"usage": {"prompt_tokens": 100, "completion_tokens": 5, "total_tokens": 105}}, 2.5)
    {'usage': {'prompt_tokens': 250, 'completion_tokens': 5, 'total_tokens': 255}}
    >>> grown({"usage": {"input_tokens": 20, "cache_read_input_tokens": 80, "output_tokens": 5}}, 2.5)
    {'usage': {'input_tokens': 170, 'cache_read_input_tokens': 80, 'output_tokens': 5}}
    """
    if isinstance(answer, bytes):
        return b"".join(_grown_line(line, growth) for line in answer.splitlines(keepends=True))
    held = {name: _with_grown_records(_field(answer, name), growth) for name in HOLDERS}
    return _with_grown_records(_changed(answer, held), growth)


def unfinished_line(text: bytes) -> bytes:
    """Return what stands behind the last line break of a piece of an event stream, b"" where it is too long to be read."""
    rest = text[text.rfind(b"\n") + 1 :]
    return rest if len(rest) <= LONGEST_LINE_BYTES else b""


def _grown_line(line: bytes, growth: float) -> bytes:
    if not line.startswith(b"data:") or len(line) > LONGEST_LINE_BYTES or not any(n.encode() in line for n in RECORDS):
        return line
    event = json.loads(line[5:])
    changed = grown(event, growth) if isinstance(event, dict) else event
    if changed is event:
        return line
    text = json.dumps(changed, separators=(",", ":")).encode()
    return b"data: " + text + line[len(line.rstrip(b"\r\n")) :]


def _with_grown_records(answer: Any, growth: float) -> Any:
    return _changed(answer, {name: _grown_record(_field(answer, name), growth) for name in RECORDS})


def _grown_record(record: Any, growth: float) -> Any:
    """Return a usage record with a grown input, the same object where it states none."""
    name = next((n for n in WHOLE_INPUTS if _count(record, n)), INPUT)
    billed = _count(record, name) + (sum(_count(record, n) for n in BESIDE_INPUT) if name == INPUT else 0)
    added = round(billed * growth) - billed
    if not added or _field(record, name) is None:
        return record
    totals = {n: _count(record, n) + added for n in TOTALS if _count(record, n)}
    return _changed(record, {name: _count(record, name) + added, **totals})


def _changed(value: Any, fields: Mapping[str, Any]) -> Any:
    """Return a copy of a mapping or model with other values, the same object where all are what it has."""
    new = {name: given for name, given in fields.items() if given is not _field(value, name)}
    if not new:
        return value
    return value.model_copy(update=new) if isinstance(value, BaseModel) else {**value, **new}


def _count(record: Any, name: str) -> int:
    found = _field(record, name)
    return found if isinstance(found, int) and not isinstance(found, bool) and found > 0 else 0


def _field(value: Any, name: str) -> Any:
    if isinstance(value, BaseModel):
        return getattr(value, name, None)
    return value.get(name) if isinstance(value, Mapping) else None
