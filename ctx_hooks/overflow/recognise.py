"""Whether an error says that the request was too long for the model, and which figures it gives."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ctx_hooks.overflow.families import FAMILIES
from ctx_hooks.overflow.hosted_models import CODES, HOSTED_MODELS
from ctx_hooks.overflow.inference_servers import INFERENCE_SERVERS
from ctx_hooks.overflow.other_errors import NOT_OVERFLOW, RATE_TOO_LARGE
from ctx_hooks.overflow.output_limits import OUTPUT_LIMITS
from ctx_hooks.overflow.pattern import NUMBER, Kind, Pattern

PATTERNS = (*HOSTED_MODELS, *INFERENCE_SERVERS, *OUTPUT_LIMITS, *FAMILIES)
"""In the order in which they are tried: wordings whose figures have a known meaning before families of wordings."""
MOST_CHARS = 20_000
"""An error's own words stand at its start; what follows is the request echoed back."""
MOST_DEPTH = 9
LEAST_WINDOW_TOKENS = 512
"""No model has a smaller window: smaller figures are error numbers, indices and statuses."""
_FIGURE = re.compile(rf"(?<![\w.\-]){NUMBER}(?![\w\-]|\.\d)", re.IGNORECASE)
_LIMIT = re.compile(
    rf"(?:limit|maximum|max|allowed|window|length|size|only|most|than|exceeds?|<=?|≤|上限|限制|最大\w{{0,8}}长度|长度)"
    rf"(?: (?:of|is|is only|size|length|tokens?|for this model is|to|:|=)){{0,3}}[ :=(\[]{{0,3}}(?P<limit>{NUMBER})(?![\w\-]|\.\d)",
    re.IGNORECASE,
)
MESSAGE_KEYS = (
    "message",
    "error",
    "detail",
    "errorMessage",
    "error_message",
    "msg",
    "response",
    "errors",
    "param",
    "raw",
)
"""Where bodies keep their own words; everything else may be an echo of the request."""


@dataclass(frozen=True, slots=True)
class Overflow:
    """What an overflow error says. Figures are in the provider's tokens, None where the text has none.

    `kind` is "input" when the input alone is too long, "input_plus_output" when input and requested output together are,
    "output_limit" when the requested output is above the model's own cap and a lower `max_tokens` is the only remedy.
    """

    kind: Kind
    pattern: str
    limit_tokens: int | None = None
    input_tokens: int | None = None
    requested_output_tokens: int | None = None
    at_least: bool = False
    """Whether `input_tokens` is a lower bound and says nothing of the tokenizer."""


def recognise_overflow(
    error: Any, *, status: int | None = None, body: Any = None, provider: str | None = None
) -> Overflow | None:
    """Return what the error says of an overflow, None when it is about something else.

    `error` is an exception, a text, or a body (mapping or JSON text). Only the error's own message and code count: a
    prompt or tool result that is echoed in it does not. `provider` decides texts that mean an overflow at one provider
    only. Time is linear in the text, of which the first 20,000 characters are read.
    """
    status = status if status is not None else _status(error)
    texts = _texts(error, body)
    for text in texts:
        found = _match(text, status, provider)
        if found is not None:
            return found
    if any(p.regex.search(t) for t in texts for p in NOT_OVERFLOW):
        return None
    code = next((c for source in (error, body) for c in _codes(source, MOST_DEPTH) if c in CODES), None)
    return Overflow("input", f"code:{code}") if code else None


def too_large_for_rate(error: Any, *, body: Any = None) -> Overflow | None:
    """Return the overflow of a single request that is larger than the rate limit itself, None for other rate limits."""
    for text in _texts(error, body):
        found = RATE_TOO_LARGE.regex.search(text)
        if found:
            limit, asked = _number(found["limit"]), _number(found["input"])
            if limit and asked and asked > limit:
                return Overflow("input", RATE_TOO_LARGE.name, limit)
    return None


def _texts(error: Any, body: Any) -> list[str]:
    return list(dict.fromkeys(t for source in (error, body) for t in _own_texts(source, MOST_DEPTH)))


def _match(text: str, status: int | None, provider: str | None) -> Overflow | None:
    refused: bool | None = None
    for pattern in PATTERNS:
        if pattern.only and not (provider or "").lower().startswith(pattern.only):
            continue
        if pattern.statuses and status not in pattern.statuses:
            continue
        found = pattern.regex.search(text)
        if not found:
            continue
        if pattern.family:
            if refused is None:
                refused = any(p.regex.search(text) for p in NOT_OVERFLOW)
            return None if refused else _of_family(pattern, text, found.groupdict())
        overflow = _read(pattern, found.groupdict())
        if overflow is not None:
            return overflow
    return None


def _read(pattern: Pattern, groups: Mapping[str, str | None]) -> Overflow | None:
    limit, given, output, total, excess, more = (
        _number(groups.get(g)) for g in ("limit", "input", "output", "total", "excess", "more")
    )
    if more is not None and given is not None:
        given += more
    if given is None and limit is not None and excess is not None:
        given = limit + excess
    if given is None and total is not None and output is not None:
        given = total - output
    if total is not None and limit is not None and total <= limit:
        return None  # a request below the limit was refused for something else, such as what others used of it
    kind = pattern.kind
    if kind == "input_plus_output" and limit and given and (given > limit or (pattern.at_least and given >= limit)):
        kind = "input"
    if kind == "input_plus_output" and given is not None and total is None and not output:
        kind = "input"
    return Overflow(kind, pattern.name, limit, given, output, pattern.at_least)


def _of_family(pattern: Pattern, text: str, groups: Mapping[str, str | None]) -> Overflow:
    """Return the overflow of a wording nobody has written down, its figures told apart by arithmetic.

    Where two figures add up to a third, that is input and output; otherwise the input is what is larger than the limit.
    A lone figure is taken only where the words beside it call it a limit; one in brackets only if it is as round as windows
    are, for error numbers stand there as well.
    """
    if groups.get("excess"):
        return Overflow(pattern.kind, pattern.name)
    numbers = list(dict.fromkeys(n for m in _FIGURE.finditer(text) if (n := _number(m[0])) and n >= LEAST_WINDOW_TOKENS))
    for whole in numbers:
        parts = next(((a, whole - a) for a in numbers if a < whole and (whole - a) in numbers and a != whole - a), None)
        limits = [n for n in numbers if parts and n not in (whole, *parts)]
        if parts and limits:
            kind: Kind = "input" if parts[0] > limits[0] else "input_plus_output"
            return Overflow(kind, pattern.name, limits[0], parts[0], parts[1])
    if len(numbers) == 2:  # noqa: PLR2004 - what was sent, and what may be sent
        return Overflow(pattern.kind, pattern.name, min(numbers), max(numbers) if pattern.kind == "input" else None)
    called = _LIMIT.search(text)
    limit = _number(called["limit"]) if called else None
    bare = called is not None and text[called.start("limit") - 1] == "(" and text[called.end("limit") :][:1] == ")"
    if limit is None or limit < LEAST_WINDOW_TOKENS or (bare and limit % 256 and limit % 1000):
        limit = None
    return Overflow(pattern.kind, pattern.name, limit)


def _number(text: str | None) -> int | None:
    if not text:
        return None
    scale = 1000 if text[-1] in "kK" else 1
    return int(float(text.rstrip("kK").replace(",", "").replace("_", ""))) * scale


def _status(error: Any) -> int | None:
    status = getattr(error, "status_code", None)
    return status if isinstance(status, int) else None


def _own_texts(source: Any, depth: int) -> list[str]:
    """Return the messages of an error: its own, and those of the error that caused it."""
    if source is None or depth == 0:
        return []
    if isinstance(source, BaseException):
        texts = [str(getattr(source, "message", "") or ""), str(source)]
        inner = [getattr(source, "body", None), source.__cause__]
        return [t for x in (*texts, *inner) for t in _own_texts(x, depth - 1)]
    if isinstance(source, Mapping):
        return [t for key in MESSAGE_KEYS for t in _own_texts(source.get(key), depth - 1)]
    if isinstance(source, (list, tuple)):
        return [t for item in source[:3] for t in _own_texts(item, depth - 1)]
    if not isinstance(source, str) or not source:
        return []
    text = source[:MOST_CHARS]
    inner_json = _embedded(source)
    return [*_own_texts(inner_json, depth - 1)] if inner_json is not None else [_without_echo(text)]


def _embedded(text: str) -> Any:
    """Return the JSON that an error text is, or carries behind its prefix; None when there is none."""
    start = text.find("{", 0, 300)
    if start < 0 or len(text) > 10 * MOST_CHARS:
        return None
    try:
        value, _ = json.JSONDecoder().raw_decode(text, start)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) and any(k in value for k in MESSAGE_KEYS) else None


_ECHO = re.compile(r"(?:input_value|'input'|\"input\"|\"content\"|'content'|\"messages\"|'messages'|input)\s*[=:]")


def _without_echo(text: str) -> str:
    """Return the text up to where it begins to quote the request."""
    echo = _ECHO.search(text)
    return text[: echo.start()] if echo else text


def _codes(source: Any, depth: int) -> list[str]:
    if source is None or depth == 0:
        return []
    if isinstance(source, BaseException):
        own = [getattr(source, "code", None), getattr(source, "type", None)]
        return [c for c in own if isinstance(c, str)] + _codes(getattr(source, "body", None), depth - 1)
    if isinstance(source, Mapping):
        own = [source.get(k) for k in ("code", "type", "error_type", "status")]
        inner = [c for k in ("error", "response", "detail") for c in _codes(source.get(k), depth - 1)]
        return [c for c in own if isinstance(c, str)] + inner
    if isinstance(source, str):
        return _codes(_embedded(source), depth - 1)
    return []
