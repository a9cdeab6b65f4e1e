"""Decides about attempts: gathers the engine's inputs, calls it within the time limit, and remembers the attempt."""

import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from typing import Any, TypeVar

from ctx_hooks.attempts.attempt import Attempt, Limits, limits_of, sent_unchanged, with_counts
from ctx_hooks.attempts.learned import Learned
from ctx_hooks.attempts.request import Request, counted_history
from ctx_hooks.attempts.target import Target
from ctx_hooks.errors import MalformedConversationError
from ctx_hooks.flow.addons import Addons, Undecided
from ctx_hooks.flow.decision import (
    TOOK_TOO_LONG,
    Decided,
    Decision,
    FailedOpen,
    LeftToFallback,
    NotRetried,
    ShownAgain,
    Untouched,
)
from ctx_hooks.flow.running import Running
from ctx_hooks.flow.uncounted import decide_by_plain_cut, decide_by_size
from ctx_hooks.litellm_compat.errors import note_fault
from ctx_hooks.runtime.deadline import CompressionTimeoutError, Deadline, Timings, compression_deadline
from ctx_hooks.runtime.warnings import warn_once
from ctx_hooks.runtime.worker import pool
from ctx_hooks.tokens.budget import SMALL_WINDOW_TOKENS
from ctx_hooks.tokens.counter import Counter, vocabulary_of

T = TypeVar("T")

ENGINE = "ctx_hooks.flow.engine"
"""Loaded, with most of `compaction/`, in the thread of the first request that is counted: it takes 0.1 to 0.3 seconds."""
LOOP_BYTES = 16_000
"""A thread handles a larger request: text of this size blocks the event loop for at most 3 ms (40 to 190 ms a million
characters, `tokens/counter.py`)."""


@dataclass(frozen=True, slots=True)
class Deciding:
    """Decides about attempts, from running requests, learned figures and the add-ons of their policies."""

    running: Running
    learned: Learned
    addons: Addons

    async def decide(self, request: Request, to: Target, timings: Timings | None = None) -> Decision:
        """Return the decision about an attempt, and remember the attempt.

        Raises nothing: after any failure a request that may be too long loses its oldest turns, with one warning. A retry
        that would repeat the refused request is NotRetried. `to` has the number that its `RequestState` gives it.
        `timings` gets the time of each phase.
        """
        timings = Timings() if timings is None else timings
        attempts = self.running.open(to.request_id).attempts
        previous = attempts.last(to)
        if previous is not None and to.attempt in (0, previous.to.attempt):
            # If LiteLLM translates a request, it calls twice, the second time without a retry's mark.
            if not previous.failed and previous.format != request.format:
                return ShownAgain()
            if to.attempt and previous.failed and previous.overflow is None:
                previous = previous.limits.previous  # LiteLLM repeats a retry that failed for another reason
        if to.attempt and (reason := _never_retried(to, previous)):
            return NotRetried(reason=reason)
        started = time.perf_counter()
        try:
            decision, attempt, *_ = await self._decided(request, to, previous, timings)
        except MalformedConversationError as error:
            decision = Untouched(reason=str(error))
        else:
            if to.policy.mode == "observe":
                attempt = sent_unchanged(request, attempt)
            if to.policy.mode == "observe" or not isinstance(decision, LeftToFallback):
                attempts.sent(attempt)
        finally:
            timings.add("total", started)
        if to.attempt and isinstance(decision, Untouched):
            return NotRetried(figures=decision.figures, reason=decision.reason)
        return decision

    async def _decided(self, request: Request, to: Target, previous: Attempt | None, timings: Timings) -> Decided:
        """Return the decision: by size if that is enough, by the last resort if the time is over or anything fails."""
        refused, limits = previous if to.attempt else None, None
        try:
            most_tokens = request.bound.tokens
            if previous is not None and previous.sent_tokens is None and (to.attempt or to.defers):
                previous = await self.counted(request, to, previous, most_tokens)
                refused = previous if to.attempt else None
            started = time.perf_counter()
            limits = limits_of(to, await self.learned.of(to.deployment), time.time(), refused)
            timings.add("known", started)
            if to.window.tokens < SMALL_WINDOW_TOKENS and to.policy.block_below_tokens != 0:
                warn_once(f"the window of {to.model} is small: {to.window.tokens} tokens ({to.window.source})")
            by_size = decide_by_size(request, to, limits, most_tokens)
            undecided = Undecided(request, to, limits, by_size is not None)

            async def decide(undecided: Undecided) -> Decided:
                return by_size or await self._decided_in_time(undecided, most_tokens, timings)

            if not to.policy.addon_names:
                return await decide(undecided)
            left = await decide(undecided) if to.defers else None  # else an add-on may have a summary written
            if left is not None and isinstance(left.decision, LeftToFallback):
                return left
            return await self.addons.decided(undecided, decide)
        except MalformedConversationError:
            raise
        except Exception as error:  # noqa: BLE001 - it is logged there
            return await self._by_last_resort(request, to, limits or Limits(to.window, previous=refused), error)

    async def _decided_in_time(self, undecided: Undecided, most_tokens: int, timings: Timings) -> Decided:
        request, to, limits, _ = undecided
        # What goes to the last resort at once has no time limit: it would go there again.
        deadline = Deadline() if request.is_too_long else compression_deadline()
        try:
            work = partial(_by_engine, "decide", request, to, limits, deadline, timings)
            return await off_loop(to, most_tokens, work, deadline, gives_way=request.is_too_long)
        except CompressionTimeoutError:
            warn_once(f"a request to {to.model} took too long to compress and lost its oldest turns instead")
            return await self._by_last_resort(request, to, limits)
        except MalformedConversationError:
            raise
        except Exception as error:  # noqa: BLE001 - it is logged there
            return await self._by_last_resort(request, to, limits, error)

    async def _by_last_resort(self, request: Request, to: Target, limits: Limits, fault: Exception | None = None) -> Decided:
        """Return the decision to drop the oldest turns, after a failure or at the deadline: it needs less of our code."""
        reason = TOOK_TOO_LONG if fault is None else f"failed: {type(fault).__name__}"
        try:
            work = partial(_by_engine, "decide_by_last_resort", request, to, limits, reason)
            decided: Decided = await off_loop(to, LOOP_BYTES + 1, work, Deadline())
            if isinstance(decided.decision, Untouched):
                kind = Untouched if fault is None else FailedOpen
                decided = decided._replace(decision=kind(reason=reason))
        except MalformedConversationError:
            raise
        except Exception as error:  # noqa: BLE001 - it is logged below
            fault, reason = error, f"failed: {type(error).__name__}"
            decided = decide_by_plain_cut(request, to, limits.previous, reason)
        if fault is not None:
            note_fault("drops the oldest turns of a request that may be too long", fault)
        return decided

    async def decide_before(
        self,
        request: Request,
        to: Target,
        options: Iterable[Target],
        timings: Timings | None = None,
    ) -> Decision:
        """Return the decision about an attempt before which fallbacks come: the first one that holds the request gets it."""
        decision = await self.decide(request, replace(to, defers=True), timings)
        if not isinstance(decision, LeftToFallback):
            return decision
        for option in options:
            limits = limits_of(option, await self.learned.of(option.deployment), time.time())
            deadline = compression_deadline()
            work = partial(_by_engine, "holds", request, option, limits, deadline)
            # A request that cannot be read or counted in time fails the same way at its attempt, which reports it.
            with suppress(CompressionTimeoutError, MalformedConversationError):
                if await off_loop(option, request.bound.tokens, work, deadline):
                    return replace(decision, reason=f"{option.group} gets all of it")
        return await self.decide(request, replace(to, defers=False), timings)

    async def counted(self, request: Request, to: Target, refused: Attempt, most_tokens: int) -> Attempt:
        """Return the refused attempt with its tokens counted, in the vocabulary of the model that refused it.

        A request that looked small was sent without counting; after the count its refusal teaches.
        """
        if refused.overflow is None:
            return refused
        deadline = compression_deadline()
        counter = Counter(vocabulary_of(refused.to.model), deadline, refused.limits.other_weight)

        def work() -> Attempt:
            own = copy(request)  # the thread frees its cached properties
            return with_counts(refused, own, counted_history(own, counter))

        try:
            refused = await off_loop(to, most_tokens, work, deadline)
        except CompressionTimeoutError:
            return refused  # a request that cannot be counted in time teaches nothing
        self.running.open(to.request_id).attempts.sent(refused)
        await self.learned.from_refusal(refused)
        return refused


def _never_retried(to: Target, previous: Attempt | None) -> str:
    """Return why a retry is not sent, whatever its size; "" if nothing says so."""
    if previous is None or previous.spent or (previous.failed and previous.overflow is None):
        return "what was refused before is not known, or cannot be made smaller"
    return "the policy allows no further retry" if to.attempt > to.policy.rescue_attempts else ""


def _by_engine(name: str, *arguments: Any) -> Any:
    """Return what a function of ENGINE returns."""
    return getattr(import_module(ENGINE), name)(*arguments)


async def off_loop(to: Target, most_tokens: int, work: Callable[[], T], deadline: Deadline, *, gives_way: bool = False) -> T:
    """Run long work in a thread, and short work here, once the engine is loaded."""
    is_short = most_tokens <= LOOP_BYTES and ENGINE in sys.modules
    return work() if is_short else await pool.run(to.tenant, work, deadline, gives_way=gives_way)
