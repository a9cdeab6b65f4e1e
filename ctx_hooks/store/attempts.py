"""What the running requests have tried so far, so that a retry knows what it has to undercut."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ctx_hooks.overflow.recognise import Overflow

RUNNING_REQUESTS = 10_000
"""Requests remembered at once; the oldest are forgotten first and would then be rescued without figures."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt: our count of what was received and of what was sent, the window assumed, and the overflow it met."""

    received_tokens: int
    sent_tokens: int
    window_tokens: int
    overflow: Overflow | None = None


class Attempts:
    """The last attempt of each running request, by LiteLLM's call id. Thread-safe."""

    def __init__(self) -> None:
        self._last: OrderedDict[str, Attempt] = OrderedDict()
        self._lock = threading.Lock()

    def sent(self, call_id: str, attempt: Attempt) -> None:
        """Note what is about to be sent."""
        with self._lock:
            self._last[call_id] = attempt
            self._last.move_to_end(call_id)
            if len(self._last) > RUNNING_REQUESTS:
                self._last.popitem(last=False)

    def failed(self, call_id: str, overflow: Overflow) -> None:
        """Note what the provider said of the last attempt."""
        with self._lock:
            attempt = self._last.get(call_id)
            if attempt is not None:
                self._last[call_id] = replace(attempt, overflow=overflow)

    def last(self, call_id: str) -> Attempt | None:
        """Return the last attempt of a request."""
        with self._lock:
            return self._last.get(call_id)
