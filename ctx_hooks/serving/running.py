"""The requests that run, one state each: what their hooks note for one another, until they have ended, or by age."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from ctx_hooks import litellm_compat
from ctx_hooks.learning.attempts import Attempts

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from ctx_hooks.learning.attempts import Attempt
    from ctx_hooks.telemetry.events import DecisionEvent

RUNNING_REQUESTS = 10_000
"""Requests remembered at once, 3 KB each (measured), 5 KB with refusals of the longest kind (2,000 characters). The oldest
is forgotten first, and is then not retried."""
MOST_HELD = 256
"""Requests held whole until their answer. What the oldest are held for is then done by what else is known, or not at all."""
MOST_HELD_BYTES = 64_000_000
"""Twice the largest request that is compressed, or some sixty that fill a window of 200,000 tokens. LiteLLM does not say
that a client has left: its request stays until later ones take its place."""


class Holder(Protocol):
    """What holds a request whole."""

    @property
    def size_bytes(self) -> int:
        """About how much memory the request's messages take."""


@dataclass(slots=True, eq=False)
class RequestState:
    """What is known of one request while it runs.

    Attributes:
        attempts: what was sent of it, and how that ended.
        decided: the record of the last decision about it.
        before_choice: the record and the attempt of what was fitted before the Router chose a deployment.
        awaits_attempt: whether it has come to no deployment yet, which of a request that is not known is not known.
        is_given_up: whether it is recorded that no retry follows.
        headers: of its answer, so far.
        growth: what its client sent as a multiple of what was sent on, by the key of each deployment, the newest last;
            under "" by what was cut before the Router chose one. Nothing where nothing was cut.
        addons: the names of those that take part in it.
        notes: what add-ons note of it, by the name of the add-on.
        held: what holds it whole, by whatever its holder finds it by.
        awaited_by: the add-ons that need its state until the client has the answer, which may be after that is logged.
        is_over: whether it is answered or has failed in the end.
        headers_sent: whether its caller has the headers.
    """

    attempts: Attempts = field(default_factory=Attempts)
    decided: DecisionEvent | None = None
    before_choice: tuple[DecisionEvent, Attempt] | None = None
    awaits_attempt: bool = False
    is_given_up: bool = False
    headers: dict[str, str] = field(default_factory=dict)
    growth: dict[str, float] = field(default_factory=dict)
    addons: frozenset[str] = frozenset()
    notes: dict[str, Any] = field(default_factory=dict)
    held: dict[Hashable, Holder] = field(default_factory=dict)
    awaited_by: frozenset[str] = frozenset()
    is_over: bool = False
    headers_sent: bool = False

    @property
    def held_bytes(self) -> int:
        """About how much memory the request takes where it is held whole; all that holds it has the same messages."""
        return max((holder.size_bytes for holder in self.held.values()), default=0)


class Running:
    """The state of each running request, by an id that this process has given it. Thread-safe.

    Args:
        asks_for_headers: whether each answer gets headers: a proxy asks for them, the Router does not.
    """

    def __init__(self, asks_for_headers: Callable[[], bool] = litellm_compat.is_proxy) -> None:
        self._asks_for_headers = asks_for_headers
        self._states: OrderedDict[str, RequestState] = OrderedDict()
        self._holding: OrderedDict[RequestState, int] = OrderedDict()
        self._lock = threading.Lock()

    def open(self, request_id: str) -> RequestState:
        """Return the state of a request, begun where there is none.

        A request without an id could be taken for another: its state is not remembered.
        """
        if not request_id:
            return RequestState()
        with self._lock:
            state = self._states.setdefault(request_id, RequestState())
            self._states.move_to_end(request_id)
            if len(self._states) > RUNNING_REQUESTS:
                _, oldest = self._states.popitem(last=False)
                self._holding.pop(oldest, None)
            return state

    def of(self, request_id: str) -> RequestState:
        """Return the state of a request, an empty one where there is none."""
        return self._states.get(request_id) or RequestState()

    def hold(self, request_id: str, state: RequestState) -> None:
        """Note that what a state holds of its request has changed: the oldest beyond the bounds are held no longer."""
        with self._lock:
            self._holding.pop(state, None)
            if size_bytes := state.held_bytes:
                self._holding[state] = size_bytes
            while len(self._holding) > MOST_HELD or sum(self._holding.values()) > MOST_HELD_BYTES:
                oldest, _ = self._holding.popitem(last=False)
                oldest.held.clear()
        self._close(request_id, state)

    def end(self, request_id: str) -> None:
        """Note that a request is answered or has failed in the end, unless another attempt at it runs.

        Nothing but its headers is kept until these are asked for, which LiteLLM does not for every error.
        """
        state = self.of(request_id)
        state.before_choice = None
        state.is_given_up = False
        state.is_over = not state.attempts.are_running
        if state.is_over:
            state.attempts = Attempts()
        state.headers_sent |= not self._asks_for_headers()
        self._close(request_id, state)

    def headers_of_answer(self, request_id: str) -> dict[str, str]:
        """Return the headers that the answer gets now, none of a request that was not treated."""
        state = self.of(request_id)
        state.headers_sent = True
        self._close(request_id, state)
        return state.headers

    def _close(self, request_id: str, state: RequestState) -> None:
        """Forget a request that nothing more is needed of."""
        if state.is_over and state.headers_sent and not state.awaited_by:
            with self._lock:
                self._states.pop(request_id, None)
                self._holding.pop(state, None)
