"""What the running requests have tried so far, so that a retry knows what it has to undercut."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ctx_hooks.conversation import Format
    from ctx_hooks.overflow.recognise import Overflow
    from ctx_hooks.tokens.window import Window

RUNNING_REQUESTS = 10_000
"""Requests remembered at once; the oldest are forgotten first and would then be rescued without figures."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt, in our count: what was received and sent, the window assumed, and how it ended.

    `sent_tokens` is None when a look at its size was enough and nothing was counted; `most_tokens` is that size. `factor`
    is what the provider was thought to bill per token of our count, `guessed_tokens` how much of the count is a guess.
    `first_tokens` is what the first attempt of the request sent, `output_tokens` the output that it asked for. `number`
    counts from 0; `failed` says that the attempt is over.
    """

    deployment_id: str
    format: Format
    received_tokens: int | None
    sent_tokens: int | None
    window: Window
    factor: float
    number: int = 0
    first_tokens: int | None = None
    output_tokens: int | None = None
    most_tokens: int = 0
    guessed_tokens: int = 0
    lowered: bool = False
    failed: bool = False
    overflow: Overflow | None = None


class Attempts:
    """The last attempt of each running request, by LiteLLM's call id. Thread-safe."""

    def __init__(self) -> None:
        self._last: OrderedDict[str, Attempt] = OrderedDict()
        self._lock = threading.Lock()

    def sent(self, call_id: str, attempt: Attempt) -> None:
        """Note what is about to be sent; a request without an id could be taken for another, and is not remembered."""
        if not call_id:
            return
        with self._lock:
            before = self._last.get(call_id)
            first = before.first_tokens if before is not None else None
            self._last[call_id] = replace(attempt, first_tokens=first or attempt.sent_tokens)
            self._last.move_to_end(call_id)
            if len(self._last) > RUNNING_REQUESTS:
                self._last.popitem(last=False)

    def failed(self, call_id: str, overflow: Overflow | None) -> Attempt | None:
        """Note that the last attempt is over, and the overflow if it was one; return it."""
        with self._lock:
            attempt = self._last.get(call_id)
            if attempt is None:
                return None
            self._last[call_id] = replace(attempt, overflow=overflow, failed=True)
            return self._last[call_id]

    def last(self, call_id: str) -> Attempt | None:
        """Return the last attempt of a request."""
        with self._lock:
            return self._last.get(call_id)

    def done(self, call_id: str) -> Attempt | None:
        """Forget a request that was answered, and return its last attempt."""
        with self._lock:
            return self._last.pop(call_id, None)
