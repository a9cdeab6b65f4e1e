"""The running requests, one state each: hooks leave notes there for later hooks, until the request ends or gets too old."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from typing import Any

from ctx_hooks.attempts.attempt import Attempt
from ctx_hooks.attempts.target import Target
from ctx_hooks.litellm_compat.call import DeploymentName
from ctx_hooks.litellm_compat.registry import is_proxy
from ctx_hooks.overflow.recognise import Overflow
from ctx_hooks.telemetry.events import DecisionEvent

RUNNING_REQUESTS = 10_000
"""Requests remembered at once, 3 KB each (measured), 5 KB with refusals of the longest kind (2,000 characters). The oldest
is forgotten first, and then not retried."""
MOST_HELD = 256
"""Requests kept whole until their answer. For the oldest, their holders then use other knowledge, or do nothing."""
MOST_HELD_BYTES = 64_000_000
"""Twice the largest request that is compressed, or some sixty that fill a window of 200,000 tokens. LiteLLM does not report
that a client has left: its request stays until later ones replace it."""


@dataclass(slots=True, eq=False)
class Attempts:
    """The newest attempt of one request at each deployment: LiteLLM may send it to several at once. Thread-safe."""

    _newest: dict[DeploymentName, Attempt] = field(default_factory=dict)
    _lock: threading.RLock = field(default_factory=threading.RLock)

    @property
    def are_running(self) -> bool:
        """Whether any attempt is neither answered nor refused."""
        return not all(attempt.failed for attempt in self._all())

    @property
    def overflowed(self) -> bool:
        """Whether the newest attempt at any deployment was refused as too long."""
        return any(attempt.overflow is not None for attempt in self._all())

    def sent(self, attempt: Attempt) -> None:
        """Note an attempt before it is sent."""
        with self._lock:
            own = self._newest.pop(attempt.to.name, None)
            before = own or next((a for a in reversed(self._newest.values()) if a.failed), attempt)
            self._newest[attempt.to.name] = replace(attempt, rereads=before.rereads)

    def failed(self, overflow: Overflow | None, refusal: str = "", name: DeploymentName | None = None) -> Attempt | None:
        """Note that an attempt has failed, and its overflow if any; return it, None if this was known.

        LiteLLM reports one failure twice if it translates a request to another format. `refusal` is the provider's text;
        without the `name` of a deployment, the newest attempt has failed.
        """
        with self._lock:
            attempt = self.at(name)
            if attempt is None or attempt.failed:
                return None
            failed = replace(attempt, overflow=overflow, failed=True, refusal=refusal)
            self._newest[attempt.to.name] = failed
            return failed

    def without_usage(self) -> Attempt | None:
        """Note that an answer to the request states no usage, and return its newest attempt.

        It is unknown which of several concurrent attempts was answered: the plugin learns from none of them.
        """
        with self._lock:
            self._newest = {key: replace(attempt, states_usage=False) for key, attempt in self._newest.items()}
            return self.at(None)

    def last(self, to: Target | None = None) -> Attempt | None:
        """Return the last attempt at a target's deployment, else the last failed one, its group's first; else the last."""
        with self._lock:
            if to is not None and to.name in self._newest:
                return self._newest[to.name]
            newest = self._all()
            failed = [a for a in newest if a.failed and to is not None]
            of_group = [a for a in failed if to is not None and a.to.group == to.group]
            return next(reversed(of_group or failed or newest), None)

    def done(self, name: DeploymentName | None = None) -> Attempt | None:
        """Forget the answered attempt, and all others that do not run; return the answered one.

        None if no attempt went to the deployment that LiteLLM names.
        """
        with self._lock:
            answered = self.at(name)
            others = self._newest.items()
            self._newest = {k: a for k, a in others if a is not answered and not a.failed and answered is not None}
            return answered

    def at(self, name: DeploymentName | None) -> Attempt | None:
        """Return the newest attempt at a deployment as LiteLLM names it; the newest of all if it names none."""
        found = self._all()
        if name is not None and name.id:
            found = [a for a in found if a.to.deployment_id == name.id]
            if len(found) > 1:
                found = [a for a in found if a.to.model == name.model or a.to.model.endswith(f"/{name.model}")]
        return found[-1] if found else None

    def _all(self) -> list[Attempt]:
        with self._lock:
            return list(self._newest.values())


@dataclass(slots=True, eq=False)
class RequestState:
    """The state of one request while it runs.

    Attributes:
        decided: the record of the last decision about it.
        before_choice: record and attempt of the fit before the Router chose a deployment.
        awaits_attempt: whether it has reached no deployment yet; False for an unknown request.
        requested: the target in the requested model group, before the Router's choice; None without a proxy.
        fallbacks: the model groups that come before compression, if the policy says so; the rescue ends with retries.
        is_left: whether the request was left to one of them without a call.
        is_given_up: whether it is recorded that no retry follows.
        retry_error: the error of its last retry, if that is no overflow.
        other_fallbacks: the Router's fallbacks before its last attempt, without retries; None before the first retry.
        headers: the headers of its answer, so far.
        addons: the names of the add-ons that take part in it; `notes` are theirs, by that name.
        route: the Router's method that answers it in place of the one for the client's route; "" for that one.
        held: objects that keep the whole request, by their holder's key; all share the same messages, of about `size_bytes`.
        awaited_by: the add-ons that need its state until the client has the answer, possibly after its log record.
        is_over: whether it is answered or has finally failed.
    """

    attempts: Attempts = field(default_factory=Attempts)
    decided: DecisionEvent | None = None
    before_choice: tuple[DecisionEvent, Attempt] | None = None
    awaits_attempt: bool = False
    requested: Target | None = None
    fallbacks: tuple[str, ...] = ()
    is_left: bool = False
    is_given_up: bool = False
    retry_error: Exception | None = None
    other_fallbacks: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    addons: frozenset[str] = frozenset()
    route: str = ""
    notes: dict[str, Any] = field(default_factory=dict)
    held: dict[Hashable, Any] = field(default_factory=dict)
    awaited_by: frozenset[str] = frozenset()
    is_over: bool = False
    headers_sent: bool = False

    @property
    def group(self) -> str:
        """The requested model group; "" without a proxy."""
        return "" if self.requested is None else self.requested.group

    def numbered(self, to: Target, *, continues: bool) -> Target:
        """Return the target of an attempt with its retry number, and whether it defers to a fallback.

        A request that `continues` a history of its provider's defers to none: a fallback lacks that history.

        Not every retry is marked with a number. With fallbacks before compression an unmarked attempt is none, and the first
        marked one may be the first that reaches its model group.

        If an operator's `retry_policy` covers bad requests, the Router calls the refusing deployment again, before any
        fallback and without a mark: the same request would be refused again. A marked attempt is no retry if the Router
        itself has refused the request before any deployment hook: a complexity router does so if it cannot compact a request
        to fit.
        """
        first, self.awaits_attempt = self.awaits_attempt, False
        previous, number = self.attempts.last(to), to.attempt
        defers = bool(self.fallbacks) and not number and not continues
        if first or to.policy.mode != "enforce":
            number = 0
        elif self.fallbacks:
            number = min(number, previous.to.attempt + 1 if previous is not None and previous.to.group == to.group else 0)
        elif (
            not number and previous is not None and previous.overflow is not None and previous.to.deployment == to.deployment
        ):
            number = min(previous.to.attempt + 1, to.policy.rescue_attempts)
        return to if number == to.attempt and not defers else replace(to, attempt=number, defers=defers)


class Running:
    """The state of each running request, by an id that this process has given it. Thread-safe.

    `asks_for_headers` says whether each answer gets headers: a proxy requests them, the Router does not.
    """

    def __init__(self, asks_for_headers: Callable[[], bool] = is_proxy) -> None:
        self._asks_for_headers = asks_for_headers
        self._states: OrderedDict[str, RequestState] = OrderedDict()
        self._holding: OrderedDict[RequestState, int] = OrderedDict()
        self._lock = threading.Lock()

    def open(self, request_id: str) -> RequestState:
        """Return the state of a request, a new one if there is none.

        A request without an id could be mistaken for another: its state is not remembered.
        """
        if not request_id:
            return RequestState()
        with self._lock:
            state = self._states.get(request_id)
            if state is None:
                state = self._states[request_id] = RequestState()
                if len(self._states) > RUNNING_REQUESTS:
                    _, oldest = self._states.popitem(last=False)
                    self._holding.pop(oldest, None)
            self._states.move_to_end(request_id)
            return state

    def of(self, request_id: str) -> RequestState:
        """Return the state of a request, an empty one if there is none."""
        return self._states.get(request_id) or RequestState()

    def hold(self, request_id: str, state: RequestState) -> None:
        """Note that a state keeps more or less of its request; release the oldest requests beyond the bounds."""
        with self._lock:
            self._holding.pop(state, None)
            if state.held:
                self._holding[state] = max(holder.size_bytes for holder in state.held.values())
            while len(self._holding) > MOST_HELD or sum(self._holding.values()) > MOST_HELD_BYTES:
                oldest, _ = self._holding.popitem(last=False)
                oldest.held.clear()
        self._close(request_id, state)

    def end(self, request_id: str) -> None:
        """Note that a request is answered or has finally failed, unless another attempt at it runs.

        Only its headers are kept until LiteLLM requests them, which it does not do for every error.
        """
        state = self.of(request_id)
        state.before_choice = state.retry_error = None
        state.is_given_up = False
        state.is_over = not state.attempts.are_running
        if state.is_over:
            state.attempts = Attempts()
        state.headers_sent |= not self._asks_for_headers()
        self._close(request_id, state)

    def headers_of_answer(self, request_id: str) -> dict[str, str]:
        """Return the headers that the answer gets now, none if the plugin did not handle the request."""
        state = self.of(request_id)
        state.headers_sent = True
        self._close(request_id, state)
        return state.headers

    def _close(self, request_id: str, state: RequestState) -> None:
        """Forget a request whose state nobody needs any more."""
        if state.is_over and state.headers_sent and not state.awaited_by:
            with self._lock:
                self._states.pop(request_id, None)
                self._holding.pop(state, None)
