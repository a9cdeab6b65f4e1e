"""LiteLLM's spend log: rows of the table LiteLLM_SpendLogs, as JSON.

Texts are there only with `store_prompts_in_spend_logs: true`, and LiteLLM shortens each that is longer than
MAX_STRING_LENGTH_PROMPT_IN_DB, by default 2,048 characters.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from math import isfinite
from typing import Any

import orjson

from ctx_hooks.cli.files import request_of_body
from ctx_hooks.cli.replay.recorded import LeftOut, Recorded, Row, json_of
from ctx_hooks.formats import FORMAT_OF_CALL_TYPE
from ctx_hooks.formats.fields import mapping_or_empty, text_or_empty
from ctx_hooks.overflow.recognise import recognise_overflow
from ctx_hooks.request.request import Request
from ctx_hooks.tokens.usage import Billed, billed_of

NAME = "LiteLLM spend log"
COLUMNS = frozenset({"request_id", "call_type", "prompt_tokens"})
SHORTENED = b"(litellm_truncated skipped "
"""The note that LiteLLM puts into a shortened text (`_sanitize_request_body_for_spend_logs_payload`)."""
REDACTED = b'"redacted-by-litellm"'
"""The text that replaces each one under `turn_off_message_logging`."""
NO_CONVERSATION = "requests without a conversation, as embeddings"
FROM_CACHE = "answers from LiteLLM's own response cache"
FAILED = "requests that failed for another reason than their length"
TOO_DEEP = "rows that are nested too deeply"
NO_TEXTS = "requests without texts: LiteLLM keeps them with `store_prompts_in_spend_logs: true`"
SHORTENED_TEXTS = (
    "requests with shortened texts: LiteLLM keeps `MAX_STRING_LENGTH_PROMPT_IN_DB` characters, by default 2,048"
)


def recognises(fields: Mapping[str, Any]) -> bool:
    """Whether a row is one of a spend log."""
    return fields.keys() >= COLUMNS


def requests(rows: Iterable[Row]) -> Iterator[Recorded | LeftOut]:
    """Yield the request of each row."""
    for row in rows:
        try:
            yield _request(row.fields)
        except RecursionError:
            yield LeftOut(TOO_DEEP)


def _request(row: Mapping[str, Any]) -> Recorded | LeftOut:
    metadata = mapping_or_empty(json_of(row.get("metadata")))
    if str(row.get("call_type")) not in FORMAT_OF_CALL_TYPE:
        return LeftOut(NO_CONVERSATION)
    if str(row.get("cache_hit")).lower() == "true":
        return LeftOut(FROM_CACHE)
    was_refused = "failure" in (row.get("status"), metadata.get("status"))
    if was_refused and not _is_overflow(metadata):
        return LeftOut(FAILED)
    request = _text(row)
    if isinstance(request, LeftOut):
        return request
    team = (row.get("team_id"), metadata.get("user_api_key_team_alias"))
    return Recorded(
        request,
        session=text_or_empty(row.get("session_id")),
        model=text_or_empty(row.get("model")),
        group=text_or_empty(row.get("model_group")),
        team_names=tuple(filter(None, map(text_or_empty, team))),
        key_names=tuple(filter(None, [text_or_empty(metadata.get("user_api_key_alias"))])),
        model_info=mapping_or_empty(mapping_or_empty(metadata.get("model_map_information")).get("model_map_value")),
        billed=_billed(row, metadata),
        dollars=_number(row.get("spend")),
        was_refused=was_refused,
        started=str(row.get("startTime") or ""),
    )


def _text(row: Mapping[str, Any]) -> Request | LeftOut:
    """Return the request of a row, or the reason why its texts are missing."""
    body = mapping_or_empty(json_of(row.get("proxy_server_request")))
    request = request_of_body(body) or request_of_body({"messages": json_of(row.get("messages"))})
    if request is None:
        return LeftOut(NO_TEXTS)
    text = _dumped(request.fields)
    if REDACTED in text:
        return LeftOut(NO_TEXTS)
    return LeftOut(SHORTENED_TEXTS) if SHORTENED in text else request


def _dumped(fields: Mapping[str, Any]) -> bytes:
    try:
        return orjson.dumps(fields)
    except TypeError:  # lone surrogates, huge integers, and values nested deeper than 254 levels
        return json.dumps(fields).encode()


def _is_overflow(metadata: Mapping[str, Any]) -> bool:
    error = mapping_or_empty(json_of(metadata.get("error_information")))
    if error.get("error_class") == "ContextWindowExceededError":
        return True
    return recognise_overflow(text_or_empty(error.get("error_message"))) is not None


def _billed(row: Mapping[str, Any], metadata: Mapping[str, Any]) -> Billed | None:
    """Return the usage that LiteLLM has noted; older versions note only the sums."""
    found = billed_of(metadata.get("usage_object"))
    if found is not None:
        return found
    sums = {name: int(_number(row.get(name)) or 0) for name in ("prompt_tokens", "completion_tokens")}
    return billed_of(sums | dict(mapping_or_empty(metadata.get("additional_usage_values"))))


def _number(value: Any) -> float | None:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if isfinite(number) else None
