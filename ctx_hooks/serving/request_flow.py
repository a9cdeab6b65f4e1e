"""A request from its first hook to its end: what is done with it before the Router, before each attempt, and after one."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Mapping
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from ctx_hooks import litellm_compat
from ctx_hooks.compaction.steps import extra_steps
from ctx_hooks.engine import engine
from ctx_hooks.engine.decision import Decision, NotRetried, ShownAgain, Untouched
from ctx_hooks.engine.engine import Decided
from ctx_hooks.errors import MalformedConversationError
from ctx_hooks.formats.caller_flags import are_many, without_flags
from ctx_hooks.learning.attempts import Attempt, counted, known_of, sent_unchanged
from ctx_hooks.learning.calibration import LEAST_RATIO
from ctx_hooks.learning.learned import Learned
from ctx_hooks.learning.stored_histories import StoredHistories
from ctx_hooks.policy.resolve import Policies
from ctx_hooks.policy.settings import Settings
from ctx_hooks.request import target
from ctx_hooks.request.request import Request, counted_history
from ctx_hooks.request.target import Target
from ctx_hooks.runtime.deadline import CompressionTimeoutError, Deadline, Timings
from ctx_hooks.runtime.warnings import warn_once
from ctx_hooks.runtime.worker import Workers
from ctx_hooks.serving import reported_usage
from ctx_hooks.serving.addons import Addons, Core, Undecided
from ctx_hooks.serving.attempt_ends import AttemptEnds
from ctx_hooks.serving.recorder import Recorder
from ctx_hooks.serving.running import Running, holds_more
from ctx_hooks.store.shared_store import SharedCache, SharedStore
from ctx_hooks.telemetry.headers import of_ignored
from ctx_hooks.telemetry.listeners import emit
from ctx_hooks.telemetry.process_events import FaultEvent
from ctx_hooks.tokens.budget import SMALL_WINDOW_TOKENS
from ctx_hooks.tokens.counter import Counter, vocabulary_of
from ctx_hooks.tokens.units import ProviderTokens, to_local

T = TypeVar("T")
logger = logging.getLogger("ctx_hooks")

LOOP_BYTES = 16_000
"""A larger request is worked on in a thread: the event loop is held up for the 3 ms at most that so much text takes
(40 to 190 ms a million characters, `tokens/counter.py`)."""
LEAST_WINDOW_TOKENS = 4_096
"""Hardly any model in use has a smaller window: no worker has learned of a refusal that a shorter request has to know."""


class RequestFlow:
    """What each hook does with a request; it raises nothing but what their callers are to see."""

    def __init__(
        self, settings: Settings | None = None, shared: Callable[[], SharedCache | None] = litellm_compat.shared_cache
    ) -> None:
        store = SharedStore(shared, lambda: emit(FaultEvent("fault", time.time(), "goes on without Redis")))
        self.policies = Policies(settings or Settings())
        self.running = Running()
        self.learned = Learned(store)
        self.stored = StoredHistories(store)
        self.recorder = Recorder()
        self._short_workers = Workers()
        self.addons = Addons(Core(store, self.running, self.learned, self.fitted_before_choice, self._short_workers))
        self.ends = AttemptEnds(self)
        self._engine_workers = Workers()

    async def before_choice(self, request: Request) -> dict[str, Any]:
        """Return a request with its retries arranged, and fitted where the Router would refuse it itself."""
        group = target.of_group(request.call, self.policies)
        fields = litellm_compat.without_request_key(request.fields)
        if group.ignored:
            self.recorder.ignored(request.call, group)
        if group.policy.mode == "off":
            return fields
        fields = litellm_compat.with_request_id(fields)
        if group.policy.mode == "observe":
            return fields
        state = self.running.open(litellm_compat.Call(fields).request_id)
        state.awaits_attempt = True
        if group.ignored:
            state.headers |= of_ignored(group.ignored)
        least_tokens = group.policy.block_below_tokens or 0
        if group.window.tokens < least_tokens:
            served = f"the least that is served here, {least_tokens} tokens"
            raise litellm_compat.refusal(f"The model's window of {group.window.tokens} tokens is below {served}.")
        if group.policy.addon_names:
            fields = await self.addons.received(replace(request, fields=fields), group.policy)
        fields = litellm_compat.arrange_rescue(fields, group.policy.rescue_attempts)
        if litellm_compat.checks_before_deployment():
            return await self.fitted_before_choice(replace(request, fields=fields), group)
        return fields

    async def fitted_before_choice(self, request: Request, group: Target | None = None) -> dict[str, Any]:
        """Return a request fitted to its group where the Router would refuse it before it chooses a deployment."""
        if not litellm_compat.checks_before_deployment():
            return dict(request.fields)
        to, request_id = group or target.of_group(request.call, self.policies), request.call.request_id
        fitted = await self._fitted(request, replace(to, request_id=request_id, checked=True))
        state = self.running.of(request_id)
        reported_usage.note_fitted_before_choice(state)
        state.note_fitted_before_choice()
        return fitted

    async def before_attempt(self, request: Request, to: Target) -> dict[str, Any]:
        """Return the arguments of an attempt as they are to be sent.

        Raises:
            ContextWindowExceededError: a retry that would send again what was refused.
        """
        sent = await self._fitted(request, to)
        if to.policy.mode != "enforce":
            return sent
        name = request.wire.messages_field
        items = request.wire.items(sent.get(name))
        if are_many(items):  # they have threads of their own: nobody waits for another's compression
            bare = await self._short_workers.run(partial(without_flags, items), Deadline())
        else:
            bare = without_flags(items)
        return sent if bare is None else {**sent, name: bare}

    async def _fitted(self, request: Request, to: Target) -> dict[str, Any]:
        """Begin an attempt, decide about it, record the decision and return the arguments with its changes.

        The caller's flags stay: a request that is fitted before the choice is fitted once more.
        """
        if to.policy.mode == "off":
            return dict(request.fields)
        state = self.running.open(to.request_id)
        to = state.numbered(to)
        decision = await self.decide(request, to)
        attempt = state.attempts.last(to.deployment)
        self.recorder.decided(state, request, to, decision, attempt)
        sent = litellm_compat.with_forwarded_metadata(request.call)
        if to.policy.mode == "observe":
            return sent
        reported_usage.note(state, to, decision, attempt)
        if isinstance(decision, NotRetried):
            raise litellm_compat.as_overflow(attempt.refusal if attempt is not None else "", sent)
        return {**sent, **decision.changes}

    async def decide(self, request: Request, to: Target) -> Decision:
        """Return what to send, and remember the attempt.

        Raises nothing: any failure leaves the request untouched and logs one warning. A retry that would send again what
        was refused is NotRetried, whatever the reason. `to` has the number that its `RequestState` gives it.
        """
        attempts, timings = self.running.of(to.request_id).attempts, Timings()
        previous = attempts.last(to.deployment)
        is_marked_anew = previous is not None and to.attempt not in (0, previous.to.attempt)
        if previous is not None and not previous.failed and previous.format != request.format and not is_marked_anew:
            return ShownAgain()  # if LiteLLM translates a request it asks twice, the second time without a retry's mark
        if to.attempt and (previous is None or previous.spent or (previous.failed and previous.overflow is None)):
            return NotRetried(reason="what was refused before is not known, or cannot be made smaller")
        try:
            with timings.phase("total"):
                decision, attempt, *_ = await self._decided(request, to, previous, timings)
        except MalformedConversationError as error:
            decision = Untouched(reason=str(error))
        except Exception as error:  # noqa: BLE001 - it is logged there
            # A proxy must not lose a request to us, whatever is wrong here.
            litellm_compat.note_fault("forwards the request unchanged", error)
            decision = Untouched(reason=f"failed: {type(error).__name__}")
        else:
            attempt = replace(attempt, milliseconds=dict(timings))
            if to.policy.mode == "observe":
                attempt = sent_unchanged(request, attempt)
            self.running.open(to.request_id).attempts.sent(attempt)
        if to.attempt and isinstance(decision, Untouched):
            return NotRetried(figures=decision.figures, reason=decision.reason)
        return decision

    async def _decided(self, request: Request, to: Target, previous: Attempt | None, timings: Timings) -> Decided:
        most_tokens = request.most_tokens(max(LOOP_BYTES, to_local(to.window.tokens, LEAST_RATIO)))
        if previous is not None and previous.sent_tokens is None and (to.attempt or holds_more(to, previous)):
            previous = await self._counted(request, to, previous, most_tokens)
        with timings.phase("known"):
            read = self.learned.of(to.deployment, may_be_refused=most_tokens > LEAST_WINDOW_TOKENS)
            # Both at once, since each may wait for Redis.
            both = asyncio.gather(read, self.stored.tokens_of(to.tenant, to.continued)) if to.continued else None
            stats, stored_tokens = await both if both is not None else (await read, ProviderTokens(0))
            known = known_of(to, stats, time.time(), previous if to.attempt else None, stored_tokens)
        if to.window.tokens < SMALL_WINDOW_TOKENS and to.policy.block_below_tokens != 0:
            warn_once(f"the window of {to.model} is small: {to.window.tokens} tokens ({to.window.source})")
        by_size = engine.decide_by_size(request, to, known, most_tokens)
        undecided = Undecided(request, to, known, by_size is not None)
        decide = partial(self._decided_in_time, by_size, most_tokens, timings)
        return await (self.addons.decided(undecided, decide) if to.policy.addon_names else decide(undecided))

    async def _counted(self, request: Request, to: Target, refused: Attempt, most_tokens: int) -> Attempt:
        """Return the refused attempt with what it sent counted, in the vocabulary of the model that refused it.

        A request that looked small was sent without counting; its refusal teaches from here on.
        """
        if refused.overflow is None:
            return refused
        deadline = Deadline(to.policy.compression_timeout_seconds)
        counter = Counter(vocabulary_of(refused.to.model), deadline, refused.known.other_weight)

        def work() -> Attempt:
            own = copy(request)  # the thread frees what it has read
            return counted(refused, own, counted_history(own, counter))

        try:
            found = await self.off_loop(most_tokens, work, deadline)
        except CompressionTimeoutError:
            return refused  # what cannot be counted in time teaches nothing
        refused = replace(found, first_tokens=found.sent_tokens)
        self.running.open(to.request_id).attempts.sent(refused)
        await self.learned.from_refusal(refused)
        return refused

    async def _decided_in_time(
        self, by_size: Decided | None, most_tokens: int, timings: Timings, undecided: Undecided
    ) -> Decided:
        """Return the decision, by the size if that is enough, by the last resort if it is not there in time."""
        if by_size is not None:
            return by_size
        request, to, known, _ = undecided
        deadline = Deadline(to.policy.compression_timeout_seconds)
        try:
            work = partial(engine.decide, request, to, known, deadline, timings)
            return await self.off_loop(most_tokens, work, deadline)
        except CompressionTimeoutError:
            warn_once(f"a request to {to.model} took too long to compress and lost its oldest turns instead")
        work = partial(engine.decide_by_last_resort, request, to, known)
        decided = await self.off_loop(most_tokens, work, Deadline())
        return decided._replace(attempt=replace(decided.attempt, timed_out=True))

    async def off_loop(self, most_tokens: int, work: Callable[[], T], deadline: Deadline) -> T:
        """Do long work in a thread, and short work here; the steps of other packages run in a thread always."""
        if most_tokens <= LOOP_BYTES and not extra_steps():
            return work()
        return await self._engine_workers.run(work, deadline)

    async def whole(self, fields: Mapping[str, Any], answer: Any) -> Any:
        """Return an answer as the client is to see it; raise what a further call raises where it is all there is."""
        state = self.running.of(litellm_compat.Call(fields).request_id)
        answer = reported_usage.whole(state, fields, answer)
        return await self.addons.whole(state, fields, answer) if state.addons else answer

    def streamed(self, fields: Mapping[str, Any], stream: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """Return a stream as the client is to see it."""
        state = self.running.of(litellm_compat.Call(fields).request_id)
        return self.addons.streamed(state, fields, reported_usage.streamed(state, stream))
