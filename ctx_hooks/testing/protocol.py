"""How a provider is asked and answers: the part of the fake provider that differs from one protocol to the next."""

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
    """Yield nothing: the rules of the format are all there are."""
    yield from ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Protocol:
    """A provider's requests and answers, beside the rules and the token count of the format that they carry.

    `read` is given a request's body and path, and returns a payload of the format with its `model`, `stream` and
    `max_tokens`. `violations` yields the texts for what the body, with its headers, breaks of the protocol's own rules. `refused` makes the
    body of an error from its text; None leaves it to the wording. `whole` and `stream` answer a payload with a reply, and
    with the input tokens and those of them that were cached; `told` streams an error's body.
    """

    paths: tuple[str, ...]
    fmt: Format
    read: Callable[[Payload, str], dict[str, Any]]
    violations: Callable[[Payload, Mapping[str, str]], Iterator[str]] = no_rules
    refused: Callable[[str], Any] | None = None
    whole: Callable[[Payload, Reply, int, int], Any]
    stream: Callable[[Payload, Reply, int, int], Sent]
    told: Callable[[Payload, Any, ProviderSettings], Sent]
    media_type: str = SERVER_SENT


def as_sent(body: Payload, _path: str) -> dict[str, Any]:
    """Return a request that is a payload of its format."""
    return dict(body)


def _named_by_path(body: Payload, path: str) -> dict[str, Any]:
    """Return Google's request, whose model and method stand in the path."""
    model, _, method = path.rsplit("/", 1)[1].partition(":")
    return {**body, "model": model, "stream": method == "streamGenerateContent"}


def _own(fmt: Format, *paths: str) -> Protocol:
    return Protocol(
        paths=paths,
        fmt=fmt,
        read=_named_by_path if fmt == "gemini" else as_sent,
        whole=partial(streams.whole, fmt),
        stream=partial(streams.stream, fmt),
        told=partial(streams.error_stream, fmt),
    )


FOUR_FORMATS = (
    _own("openai-chat", "/v1/chat/completions", "/chat/completions"),
    _own("anthropic", "/v1/messages"),
    _own("openai-responses", "/v1/responses", "/responses"),
    _own("gemini", "/v1beta/models/{name}:{method}"),
)
"""The formats as their own providers speak them."""
