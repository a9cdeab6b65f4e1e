"""Logs of requests: JSON lines of the bodies that clients sent, with or without their answers.

A row is a body, or has it under a name such as `request`; the answer is beside it, under `response`.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ctx_hooks.cli.files import request_of_body
from ctx_hooks.cli.replay.recorded import LeftOut, Recorded, Row, json_of
from ctx_hooks.formats.fields import mapping_or_empty, text_or_empty
from ctx_hooks.overflow.recognise import recognise_overflow
from ctx_hooks.request.request import Request
from ctx_hooks.tokens.usage import billed_of

NAME = "request log"
ENVELOPES = ("request", "body", "payload", "json", "request_body")
"""Names under which logs have the body of a request, or of an answer."""
ANSWERS = ("response", "response_body")
FIRST_ERROR_STATUS = 400
NO_REQUEST = "rows that hold no request of a known format"
FAILED = "requests that failed for another reason than their length"


def recognises(fields: Mapping[str, Any]) -> bool:
    """Whether a row contains a request."""
    return _request_in(fields) is not None


def requests(rows: Iterable[Row]) -> Iterator[Recorded | LeftOut]:
    """Yield the request of each row."""
    for row in rows:
        yield _recorded(row.fields)


def _recorded(row: Mapping[str, Any]) -> Recorded | LeftOut:
    request = _request_in(row)
    if request is None:
        return LeftOut(NO_REQUEST)
    answer = _inner(mapping_or_empty(next((json_of(row[name]) for name in ANSWERS if row.get(name)), None)))
    error = answer.get("error") or row.get("error")
    status = row.get("status") if isinstance(row.get("status"), int) else row.get("status_code")
    was_refused = bool(error) or (isinstance(status, int) and status >= FIRST_ERROR_STATUS)
    if (
        was_refused
        and recognise_overflow(error if isinstance(error, str) else str(mapping_or_empty(error).get("message"))) is None
    ):
        return LeftOut(FAILED)
    return Recorded(
        request,
        session=_session(row, request),
        model=text_or_empty(request.fields.get("model")) or text_or_empty(answer.get("model")),
        billed=billed_of(answer.get("usage") or row.get("usage")),
        was_refused=was_refused,
        started=str(row.get("timestamp") or row.get("created_at") or ""),
    )


def _request_in(row: Mapping[str, Any]) -> Request | None:
    """Return the request of a row, whose body may be in an envelope, or in an envelope of an envelope."""
    return request_of_body(row) or request_of_body(_inner(row)) or request_of_body(_inner(_inner(row)))


def _inner(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    found = (mapping_or_empty(json_of(fields[name])) for name in ENVELOPES if fields.get(name))
    return next(filter(None, found), fields)


def _session(row: Mapping[str, Any], request: Request) -> str:
    """Return the session's name in a row or its request: OpenAI's cache field is the same for all requests of a session."""
    metadata = mapping_or_empty(request.fields.get("metadata"))
    named = (row.get("session_id"), metadata.get("session_id"), request.fields.get("prompt_cache_key"))
    return next(filter(None, map(text_or_empty, named)), "")
