"""A strict model provider: the four formats, its own token count, a window, and the refusals of the real ones."""

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeAlias

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse

from ctx_hooks.testing import streams
from ctx_hooks.testing.behaviour import (
    ITEMS,
    SYSTEM_TEXTS,
    WORDINGS,
    Format,
    ProviderSettings,
    Reply,
    Script,
    Wording,
    count_payload,
    error_body,
)
from ctx_hooks.testing.rules import violations

Payload: TypeAlias = Mapping[str, Any]
Sent: TypeAlias = AsyncIterator[str] | Iterable[str | bytes]


def _as_sent(body: Payload, path: str) -> dict[str, Any]:
    """Return a request that is a payload of its format; Google's has its model and method in the path."""
    model, is_named, method = path.rsplit("/", 1)[1].partition(":")
    return {**body, "model": model, "stream": method == "streamGenerateContent"} if is_named else dict(body)


@dataclass(frozen=True, slots=True, kw_only=True)
class Protocol:
    """A provider's requests and answers, besides the rules and the token count of their format; by default the format's own.

    `read` makes a payload of the format from a request's body and path. `violations` yields an error text for each own rule
    that body and headers break. `refused` makes an error's body from its text, by default as the wording does. `whole` and
    `stream` answer a payload with a reply, the input tokens and the cached ones among them.
    """

    paths: tuple[str, ...]
    fmt: Format
    read: Callable[[Payload, str], dict[str, Any]] = _as_sent
    violations: Callable[[Payload, Mapping[str, str]], Iterable[str]] = lambda _body, _headers: ()
    refused: Callable[[str], Any] | None = None
    whole: Callable[[Payload, Reply, int, int], Any] | None = None
    stream: Callable[[Payload, Reply, int, int], Sent] | None = None
    media_type: str = "text/event-stream"


PATHS: Mapping[Format, tuple[str, ...]] = {
    "openai-chat": ("/v1/chat/completions", "/chat/completions"),
    "anthropic": ("/v1/messages",),
    "openai-responses": ("/v1/responses", "/responses"),
    "gemini": ("/v1beta/models/{name}:{method}",),
}
FOUR_FORMATS = tuple(Protocol(paths=paths, fmt=fmt) for fmt, paths in PATHS.items())
"""The formats as their own providers speak them."""


BROKEN = "The server had an error while processing your request."


@dataclass(slots=True)
class _State:
    settings: ProviderSettings
    records: list[dict[str, Any]] = field(default_factory=list)
    answered: dict[str, int] = field(default_factory=dict)
    prefixes: set[bytes] = field(default_factory=set)
    stored: dict[str, list[Any]] = field(default_factory=dict)
    """The items of each answered Responses request and of its answer, by the id of the response."""


def create_app(
    settings: ProviderSettings | None = None, script: Script | None = None, protocols: Iterable[Protocol] = ()
) -> FastAPI:
    """Return the provider as an ASGI application, with `/_requests`, `/_reset` and `/_settings` for its test. It speaks `protocols` too."""
    app = FastAPI()
    state = _State(settings or ProviderSettings())

    for protocol in (*protocols, *FOUR_FORMATS):  # of two routes for one path, the first answers
        for path in protocol.paths:
            app.add_route(path, partial(_answer, protocol, state, script), methods=["POST"])

    @app.post("/v1/responses/input_tokens")
    async def count(request: Request) -> dict[str, Any]:
        """Count tokens for LiteLLM's OpenAI deployments; no window limits the count, and it is no answered request."""
        counted = await asyncio.to_thread(count_payload, "openai-responses", await request.json(), state.settings)
        return {"object": "response.input_tokens", "input_tokens": counted}

    @app.get("/_requests")
    async def requests() -> list[dict[str, Any]]:
        return state.records

    @app.post("/_reset")
    async def reset() -> None:
        for kept in (state.records, state.answered, state.prefixes, state.stored):
            kept.clear()

    @app.post("/_settings")
    async def configure(request: Request) -> None:
        state.settings = replace(state.settings, **await request.json())

    return app


async def _answer(protocol: Protocol, state: _State, script: Script | None, request: Request) -> Response:
    received = await request.json()
    payload = protocol.read(received, request.url.path)
    fmt, used, sent = protocol.fmt, state.settings, payload
    if fmt == "openai-responses":
        payload = await asyncio.to_thread(_continued, sent, state)
    counted = await asyncio.to_thread(count_payload, fmt, payload, used)
    record = {
        "format": fmt,
        "model": payload.get("model"),
        "input_tokens": counted,
        "max_tokens": _max_tokens(payload),
        "payload": sent,
        "headers": dict(request.headers),
        "status": 200,
        "error": None,
        "left": False,
    }
    state.records.append(record)
    if payload.get("model") in used.held_models:
        while (await request.receive())["type"] != "http.disconnect":
            pass
        record["left"] = True
        return Response()  # nobody reads it
    if payload.get("model") in used.failing_models:
        record.update(status=500, error=BROKEN)
        return JSONResponse({"error": {"message": BROKEN, "type": "server_error"}}, 500)
    own = list(protocol.violations(received, request.headers))
    if (refusal := _refusal(protocol, own, payload, counted, used)) is not None:
        status, message, body = refusal
        record.update(status=status, error=message)
        if not used.refused_body:
            return JSONResponse(body, status)
        raw = used.refused_body.replace("MESSAGE", json.dumps(message)[1:-1])
        is_json = raw.startswith(("{", "["))
        return Response(raw.encode("latin-1"), 200, media_type="application/json" if is_json else protocol.media_type)
    key = _conversation_key(fmt, payload)
    before = state.answered.get(key, 0)
    state.answered[key] = before + 1
    reply = script(fmt, payload, before) if script else Reply(f"Answer to {counted} tokens.")
    cached = _cached_tokens(state, fmt, payload, counted)
    record["cached_tokens"] = cached
    whole = (protocol.whole or partial(streams.whole, fmt))(payload, reply, counted, cached)
    events: Sent = (protocol.stream or partial(streams.stream, fmt))(payload, reply, counted, cached)
    if fmt == "openai-responses":
        if payload.get("store") is not False:
            state.stored[whole["id"]] = [*_listed(payload.get("input")), *whole["output"]]
        events = streams.response_stream(whole)
    return StreamingResponse(events, media_type=protocol.media_type) if payload.get("stream") else JSONResponse(whole)


def _continued(payload: Mapping[str, Any], state: _State) -> dict[str, Any]:
    """Return a Responses request with the history that it continues; unchanged if that history's id is unknown.

    `truncation: "auto"` leaves out as many of the oldest items as the window requires, its own too; a call goes with its
    result.
    """
    whole, items = dict(payload), _listed(payload.get("input"))
    if payload.get("previous_response_id") in state.stored:
        items = [*state.stored[whole.pop("previous_response_id")], *items]
        whole["input"] = items
    if payload.get("truncation") != "auto":
        return whole
    window = _window(payload, state.settings)
    while len(items) > 1 and count_payload("openai-responses", {**whole, "input": items}, state.settings) > window:
        first, *items = items
        called = first.get("call_id") if str(first.get("type", "")).endswith("_call") else None
        items = [i for i in items if called is None or i.get("call_id") != called]
    return {**whole, "input": items}


def _listed(value: Any) -> list[Any]:
    if isinstance(value, list):
        return value
    return [] if value is None else [{"role": "user", "content": value}]


def _window(payload: Mapping[str, Any], settings: ProviderSettings) -> int:
    return settings.windows.get(str(payload.get("model")), settings.window_tokens)


def _refusal(
    protocol: Protocol, own_violations: list[str], payload: Mapping[str, Any], counted: int, settings: ProviderSettings
) -> tuple[int, str, Any] | None:
    unknown, output, cap = payload.get("previous_response_id"), _max_tokens(payload) or 0, settings.max_output_tokens
    broken = [*own_violations, *violations(protocol.fmt, payload)] if settings.strict else []
    if unknown:
        text, code = f"Previous response with id '{unknown}' not found.", "previous_response_not_found"
    elif broken:
        text, code = broken[0].replace("{", "{{").replace("}", "}}"), "invalid_value"
    elif cap is not None and output > cap:
        text = f"max_tokens is too large: {output}. This model supports at most {cap} completion tokens, whereas you provided {output}."
        code = "invalid_value"
    else:
        text, code = "", ""
    window = _window(payload, settings)
    total = counted + (output if settings.counts_output else 0)
    if not text and total <= window:
        return None
    found = Wording(text, code=code) if text else WORDINGS[settings.wording]
    figures = {"limit": window, "input": counted, "output": output, "total": counted + output, "excess": total - window}
    message, body = error_body(found, protocol.fmt, **figures)
    return found.status, message, protocol.refused(message) if protocol.refused else body


def _max_tokens(payload: Mapping[str, Any]) -> int | None:
    limits = {**payload, **(payload.get("generationConfig") or {})}
    names = ("max_completion_tokens", "max_tokens", "max_output_tokens", "maxOutputTokens")
    return next((limits[name] for name in names if isinstance(limits.get(name), int)), None)


def _conversation_key(fmt: Format, payload: Mapping[str, Any]) -> str:
    """Distinguish conversations by their tools and session field, which no compression changes."""
    session = payload.get("user") or payload.get("metadata") or payload.get("prompt_cache_key")
    names = [t.get("name") or (t.get("function") or {}).get("name") for t in payload.get("tools") or []]
    return hashlib.sha256(json.dumps([fmt, payload.get("model"), session, names]).encode()).hexdigest()


def _cached_tokens(state: _State, fmt: Format, payload: Mapping[str, Any], read_tokens: int) -> int:
    """Return how many tokens a prefix cache would serve: tools, system text and the leading messages seen before."""
    items = payload.get(ITEMS[fmt])
    parts = [payload.get("tools"), *map(payload.get, SYSTEM_TEXTS), *(items if isinstance(items, list) else [items])]
    running = hashlib.sha256()
    served = total = 0
    matching = True
    for text in (json.dumps(_without_markers(p), sort_keys=True) for p in parts if p):
        running.update(text.encode("utf-8", "surrogatepass"))
        total += len(text)
        matching = matching and running.digest() in state.prefixes
        served = total if matching else served
        state.prefixes.add(running.digest())
    return int(read_tokens * served / max(1, total))


def _without_markers(value: Any) -> Any:
    """Return the JSON value without `cache_control`: the places of markers are not part of the cached text."""
    if isinstance(value, Mapping):
        return {k: _without_markers(v) for k, v in value.items() if k != "cache_control"}
    return [_without_markers(v) for v in value] if isinstance(value, list) else value
