"""What happened, told to listeners of other packages: figures, never text."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

from ctx_hooks.conversation.model import Format
from ctx_hooks.tokens.units import LocalTokens, ProviderTokens

logger = logging.getLogger("ctx_hooks")

EventName = Literal["before_compaction", "after_compaction", "silent_truncation", "limit_learned", "compression_timeout"]


@dataclass(frozen=True, slots=True)
class CompactionEvent:
    """A compaction that is about to happen, or has happened.

    Attributes:
        name: "before_compaction" or "after_compaction".
        model: the model whose vocabulary counts.
        format: the format of the request.
        tokens_before: the request as it came, in local tokens.
        budget_tokens: what it may have, in local tokens.
        window_tokens: the model's window, in provider tokens.
        attempt: 0 for the first attempt of a request; retries count from 1.
        tokens_after: what is sent, in local tokens; None before.
        steps: the steps that changed something; none before.
    """

    name: Literal["before_compaction", "after_compaction"]
    model: str
    format: Format
    tokens_before: LocalTokens
    budget_tokens: LocalTokens
    window_tokens: ProviderTokens
    attempt: int = 0
    tokens_after: LocalTokens | None = None
    steps: tuple[str, ...] = ()

    @property
    def rung(self) -> int:
        """The former name of `attempt`, for listeners that read it."""
        return self.attempt


@dataclass(frozen=True, slots=True)
class TruncationEvent:
    """A deployment that answered a request that was too long for it.

    `sent_tokens` is an estimate of what was sent, `read_tokens` what the provider's usage states. In provider tokens.
    """

    name: Literal["silent_truncation"]
    deployment_id: str
    sent_tokens: ProviderTokens
    read_tokens: ProviderTokens
    window_tokens: ProviderTokens


@dataclass(frozen=True, slots=True)
class LimitEvent:
    """A limit that a deployment has shown to one tenant, beside the window that configuration or LiteLLM state.

    `kind` is "limit" for one that the provider named, "refused" for the size of what was refused without a figure,
    "output_limit" for the largest output. In provider tokens.
    """

    name: Literal["limit_learned"]
    deployment: str
    kind: str
    limit_tokens: ProviderTokens
    window_tokens: ProviderTokens


@dataclass(frozen=True, slots=True)
class CompressionTimeoutEvent:
    """A request whose compression took too long, or that is too large for one: its oldest turns were dropped instead.

    The figures are local tokens, and estimates; `timeout_seconds` is None where the request was too large to begin with.
    """

    name: Literal["compression_timeout"]
    model: str
    format: Format
    tokens_before: LocalTokens
    tokens_after: LocalTokens
    budget_tokens: LocalTokens
    timeout_seconds: float | None


Event: TypeAlias = CompactionEvent | TruncationEvent | LimitEvent | CompressionTimeoutEvent
Listener: TypeAlias = Callable[[Any], object]
"""Called with the event of the name it listens to."""
_listeners: dict[EventName, list[Listener]] = {name: [] for name in get_args(EventName)}


def on(name: EventName, listener: Listener) -> Callable[[], None]:
    """Call `listener` with each event of that name, in the thread where it happens; return a function that ends it.

    Raises ValueError for a name that is none. What a listener raises is logged and harms no request.
    """
    if name not in _listeners:
        raise ValueError(f"{name!r} is no event; there are {', '.join(_listeners)}")
    _listeners[name].append(listener)
    return lambda: _listeners[name].remove(listener)


def emit(event: Event) -> None:
    """Tell the listeners."""
    for listener in tuple(_listeners[event.name]):
        try:
            listener(event)
        except Exception as error:
            # A listener is somebody else's code and may not cost a request.
            logger.warning("a listener to %s failed", event.name, exc_info=error)
