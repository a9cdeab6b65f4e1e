"""Requests and answers of a provider: the part of the fake provider that depends on the protocol."""

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

from ctx_hooks.testing import streams
from ctx_hooks.testing.behaviour import Format, ProviderSettings, Reply

Payload: TypeAlias = Mapping[str, Any]
Sent: TypeAlias = AsyncIterator[str] | Iterable[str | bytes]
SERVER_SENT = "text/event-stream"


def no_rules(_body: Payload, _headers: Mapping[str, str]) -> Iterator[str]:
    """Yield nothing: only the rules of the format apply."""
    yield from ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Protocol:
    """A provider's requests and answers, besides the rules and the token count of their format.

    `read` makes a payload of the format from a request's body and path. `violations` yields an error text for each own rule
    that body and headers break. `refused` makes an error's body from its text, by default as the wording does. `whole` and
    `stream` answer a payload with a reply, the input tokens and the cached ones among them; `failed` streams an error's body.
    """

    paths: tuple[str, ...]
    fmt: Format
    read: Callable[[Payload, str], dict[str, Any]]
    violations: Callable[[Payload, Mapping[str, str]], Iterator[str]] = no_rules
    refused: Callable[[str], Any] | None = None
    whole: Callable[[Payload, Reply, int, int], Any]
    stream: Callable[[Payload, Reply, int, int], Sent]
    failed: Callable[[Payload, Any, ProviderSettings], Sent]
    media_type: str = SERVER_SENT


def as_sent(body: Payload, _path: str) -> dict[str, Any]:
    """Return a request that is a payload of its format."""
    return dict(body)


def _named_by_path(body: Payload, path: str) -> dict[str, Any]:
    """Return Google's request, whose model and method are in the path."""
    model, _, method = path.rsplit("/", 1)[1].partition(":")
    return {**body, "model": model, "stream": method == "streamGenerateContent"}


PATHS: Mapping[Format, tuple[str, ...]] = {
    "openai-chat": ("/v1/chat/completions", "/chat/completions"),
    "anthropic": ("/v1/messages",),
    "openai-responses": ("/v1/responses", "/responses"),
    "gemini": ("/v1beta/models/{name}:{method}",),
}
FOUR_FORMATS = tuple(
    Protocol(
        paths=paths,
        fmt=fmt,
        read=_named_by_path if fmt == "gemini" else as_sent,
        whole=partial(streams.whole, fmt),
        stream=partial(streams.stream, fmt),
        failed=partial(streams.error_stream, fmt),
    )
    for fmt, paths in PATHS.items()
)
"""The formats as their own providers speak them."""
