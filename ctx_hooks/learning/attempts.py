"""What the running requests have tried so far, so that a retry knows what it has to undercut."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, replace

from ctx_hooks.conversation.model import Format
from ctx_hooks.overflow.recognise import Overflow
from ctx_hooks.tokens.window import Window

RUNNING_REQUESTS = 10_000
"""Requests remembered at once; the oldest are forgotten first and would then be retried without figures."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt: what was received and sent, in local tokens, what was assumed, and how it ended.

    `sent_tokens` is None when a look at its size was enough and nothing was counted; `most_tokens` is that size. `factor`
    is the assumed provider tokens per local token, `guessed_tokens` how much of the count is a guess.
    `counts_all` is False for a request with content that cannot be counted here, such as a history that the provider
    keeps. `window` is the one that was fitted to, `window_tokens` the one that configuration or LiteLLM state.
    `first_tokens` is what the first attempt of the request sent, `output_tokens` the output that it asked for. `number`
    counts from 0; `failed` says that the attempt is over, `spent` that no retry could make the request smaller.
    `refusal` is the provider's own text. `billed` is False when its answer states no usage: any figure is an estimate.
    """

    deployment: str
    model: str
    tenant: str
    format: Format
    received_tokens: int | None
    sent_tokens: int | None
    window: Window
    factor: float
    window_tokens: int = 0
    number: int = 0
    first_tokens: int | None = None
    output_tokens: int | None = None
    most_tokens: int = 0
    guessed_tokens: int = 0
    counts_all: bool = True
    lowered: bool = False
    failed: bool = False
    spent: bool = False
    overflow: Overflow | None = None
    refusal: str = ""
    billed: bool = True

    @property
    def sent_provider_tokens(self) -> int:
        """The estimate of what was sent, in provider tokens; 0 where it was not counted."""
        return int((self.sent_tokens or 0) * self.factor)


class Attempts:
    """The last attempt of each running request, by an id that this process has given it. Thread-safe."""

    def __init__(self) -> None:
        self._last: OrderedDict[str, Attempt] = OrderedDict()
        self._lock = threading.Lock()

    def sent(self, request_id: str, attempt: Attempt) -> None:
        """Note what is about to be sent; a request without an id could be taken for another, and is not remembered."""
        if not request_id:
            return
        with self._lock:
            before = self._last.get(request_id)
            first = before.first_tokens if before is not None else None
            self._last[request_id] = replace(attempt, first_tokens=first or attempt.sent_tokens)
            self._last.move_to_end(request_id)
            if len(self._last) > RUNNING_REQUESTS:
                self._last.popitem(last=False)

    def failed(self, request_id: str, overflow: Overflow | None, refusal: str = "") -> Attempt | None:
        """Note that the last attempt is over, and the overflow if it was one; return it, None when that was known.

        LiteLLM tells of one failure twice where it translates a request to another format.
        """
        with self._lock:
            attempt = self._last.get(request_id)
            if attempt is None or attempt.failed:
                return None
            self._last[request_id] = replace(attempt, overflow=overflow, failed=True, refusal=refusal)
            return self._last[request_id]

    def unbilled(self, request_id: str) -> Attempt | None:
        """Note that the answer to the last attempt states no usage, and return the attempt."""
        with self._lock:
            attempt = self._last.get(request_id)
            if attempt is not None:
                attempt = self._last[request_id] = replace(attempt, billed=False)
            return attempt

    def last(self, request_id: str) -> Attempt | None:
        """Return the last attempt of a request."""
        with self._lock:
            return self._last.get(request_id)

    def done(self, request_id: str) -> Attempt | None:
        """Forget a request that was answered, and return its last attempt."""
        with self._lock:
            return self._last.pop(request_id, None)
