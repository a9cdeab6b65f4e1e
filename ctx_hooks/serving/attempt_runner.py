"""Runs the attempts of requests: gathers what is known, has the engine decide, and learns from how each attempt ended."""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from ctx_hooks import engine
from ctx_hooks.compaction.steps.installed import extra_steps
from ctx_hooks.decision import Decision, NotRetried, ShownAgain, Untouched
from ctx_hooks.errors import MalformedConversationError
from ctx_hooks.learning import updates
from ctx_hooks.learning.calibration import LEAST_RATIO
from ctx_hooks.learning.known import counted, known_of
from ctx_hooks.learning.learned import Learned
from ctx_hooks.learning.stored_histories import StoredHistories, stored_tokens_after
from ctx_hooks.request.request import counted_history
from ctx_hooks.runtime.deadline import CompressionTimeoutError, Deadline
from ctx_hooks.runtime.timings import Timings
from ctx_hooks.runtime.warnings import warn_once
from ctx_hooks.runtime.worker import Workers
from ctx_hooks.serving.addons import Addons, Core, Undecided
from ctx_hooks.serving.earlier_attempts import as_it_came, holds_more, number_of, was_translated
from ctx_hooks.serving.running import Running
from ctx_hooks.store.shared_store import SharedStore
from ctx_hooks.telemetry.listeners import emit
from ctx_hooks.tokens.counter import Counter
from ctx_hooks.tokens.units import ProviderTokens, to_local
from ctx_hooks.tokens.usage import billed_of
from ctx_hooks.tokens.vocabulary import vocabulary_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ctx_hooks.engine import Decided
    from ctx_hooks.learning.attempts import Attempt, DeploymentName
    from ctx_hooks.overflow.recognise import Overflow
    from ctx_hooks.request.request import Request
    from ctx_hooks.request.target import Target
    from ctx_hooks.store.shared_store import SharedCache
    from ctx_hooks.tokens.usage import Billed

T = TypeVar("T")
logger = logging.getLogger("ctx_hooks")

LOOP_BYTES = 16_000
"""A larger request is worked on in a thread: the event loop is held up for the 3 ms at most that so much text takes
(40 to 190 ms a million characters, `tokens/counter.py`)."""
LEAST_WINDOW_TOKENS = 4_096
"""Hardly any model in use has a smaller window: no worker has learned of a refusal that a shorter request has to know."""


class Answered(NamedTuple):
    """The attempt that was answered, and the bill; None where the provider states none."""

    attempt: Attempt
    billed: Billed | None


async def as_it_is(request: Request) -> dict[str, Any]:
    """Return the fields of a request for a Router that refuses none before it chooses a deployment."""
    return dict(request.fields)


class AttemptRunner:
    """Remembers the attempts of running requests, and what was learned of each deployment.

    Args:
        shared: returns LiteLLM's Redis cache, None without one.
        fitted_before_choice: as in `Core`.
    """

    def __init__(
        self,
        shared: Callable[[], SharedCache | None] = lambda: None,
        fitted_before_choice: Callable[[Request], Awaitable[dict[str, Any]]] = as_it_is,
    ) -> None:
        self.running = Running()
        store = SharedStore(shared)
        self.learned = Learned(store)
        self.stored = StoredHistories(store)
        self.addons = Addons(Core(store, self.running, self.learned, fitted_before_choice))
        self._workers = Workers()

    async def decide(self, request: Request, to: Target) -> Decision:
        """Return what to send, and remember the attempt.

        Raises nothing: any failure leaves the request untouched and logs one warning. A retry that would send again what
        was refused is NotRetried, whatever the reason. `to` has the number that `numbered` gives it.
        """
        request = replace(request, honors_skip=to.policy.truncation_skip == "honor")
        timings = Timings()
        with timings.phase("total"):
            decision = await self._decided(request, to, timings)
        self.running.of(to.request_id).attempts.timed(to.deployment, timings.milliseconds)
        if to.attempt and isinstance(decision, Untouched) and not isinstance(decision, ShownAgain):
            return NotRetried(decision.reason, decision.figures)
        return decision

    def numbered(self, to: Target) -> Target:
        """Return where an attempt goes with the number of the retry that it is, which not every retry is marked with."""
        return replace(to, attempt=number_of(to, self.last(to)))

    def last(self, to: Target) -> Attempt | None:
        """Return the request's last attempt there, or the one that an attempt there follows; None where it is the first."""
        return self.running.of(to.request_id).attempts.last(to.deployment)

    async def failed(
        self, request_id: str, overflow: Overflow | None, refusal: str = "", name: DeploymentName | None = None
    ) -> Attempt | None:
        """Note that an attempt failed, and learn from its overflow; return the attempt, None where that was known."""
        attempt = self.running.of(request_id).attempts.failed(overflow, refusal, name)
        if attempt is not None:
            self.addons.ended(attempt, None)
            await self._learn_refusal(attempt)
        return attempt

    def estimated_tokens(self, request_id: str) -> ProviderTokens | None:
        """Note that an answer states no usage, and return the estimate of what was sent.

        None where it was not counted, or where nothing is to be changed.
        """
        attempt = self.running.of(request_id).attempts.without_usage()
        return None if attempt is None or attempt.observed else attempt.sent_provider_tokens or None

    async def answered(
        self,
        request_id: str,
        usage: Any,
        response_id: str = "",
        name: DeploymentName | None = None,
        *,
        used_hosted_tools: bool = False,
    ) -> Answered | None:
        """Learn from an answer, and forget its attempt; return the attempt and the bill, None for no known attempt.

        Args:
            request_id: the request's id in this process.
            usage: the usage record of the answer, None where it has none.
            response_id: the provider's id of an answer that it keeps, "" for any other.
            name: of the deployment that has answered; by default it is that of the newest attempt.
            used_hosted_tools: whether the bill holds what a tool of the provider's has read.
        """
        attempt = self.running.of(request_id).attempts.done(name)
        if attempt is None or attempt.failed:
            return None  # after a failed attempt it comes from a model that the plugin is off for
        billed = billed_of(usage) if attempt.states_usage else None
        if billed is not None:
            learned = replace(attempt, counts_all=attempt.counts_all and not used_hosted_tools)
            await self._learn_answer(learned, billed, response_id)
        self.addons.ended(attempt, billed)
        return Answered(attempt, billed)

    async def _learn_answer(self, attempt: Attempt, billed: Billed, response_id: str) -> None:
        provider_tokens, answer_tokens = billed.input_tokens, billed.output_tokens
        if response_id:
            whole_tokens = ProviderTokens(provider_tokens + answer_tokens)
            await self.stored.note(attempt.tenant, response_id, stored_tokens_after(attempt, whole_tokens))
        stats, now = await self.learned.of(attempt.deployment), time.time()
        event = updates.truncation(stats, attempt, provider_tokens, now)
        if event is not None:
            emit(event)
            logger.warning(
                "deployment %s refuses nothing that is too long: it was sent about %d tokens and read %d, in a window of %d",
                event.deployment_id,
                event.sent_tokens,
                event.read_tokens,
                event.window_tokens,
            )
        await self._learn(attempt, updates.of_answer(stats, attempt, provider_tokens, now, answer_tokens))

    async def _decided(self, request: Request, to: Target, timings: Timings) -> Decision:
        if not to.policy.enabled:
            return Untouched("switched off")
        previous = self.last(to)
        if previous is not None and was_translated(previous, request, to):
            return ShownAgain()
        if to.attempt and (previous is None or previous.spent or (previous.failed and previous.overflow is None)):
            return Untouched("what was refused before is not known, or cannot be made smaller")
        try:
            most_tokens = request.most_tokens(max(LOOP_BYTES, to_local(to.window.tokens, LEAST_RATIO)))
            if previous is not None and (to.attempt or holds_more(to, previous)):
                previous = await self._counted(request, to, previous, most_tokens)
            with timings.phase("known"):
                read = self.learned.of(to.deployment, may_be_refused=most_tokens > LEAST_WINDOW_TOKENS)
                # Both at once, since each may wait for Redis.
                both = asyncio.gather(read, self.stored.tokens_of(to.tenant, to.continued)) if to.continued else None
                stats, stored_tokens = await both if both is not None else (await read, ProviderTokens(0))
            refused = previous if to.attempt else None
            known = known_of(to, stats, time.time(), refused, stored_tokens)
            if to.window.tokens < to.policy.warn_below_tokens:
                warn_once(f"the window of {to.model} is small: {to.window.tokens} tokens ({to.window.source})")
            by_size = engine.decide_by_size(request, to, known, most_tokens)

            async def decide(undecided: Undecided) -> Decided:
                return by_size or await self._decided_in_time(undecided, most_tokens, timings)

            decided = await self.addons.decided(Undecided(request, to, known, by_size is not None), decide)
        except MalformedConversationError as error:
            return Untouched(str(error))
        except Exception as error:
            # A proxy must not lose a request to us, whatever is wrong here.
            logger.warning("ctx_hooks failed and forwards the request unchanged", exc_info=error)
            return Untouched(f"failed: {type(error).__name__}")
        attempt = decided.attempt if to.policy.enforces else as_it_came(request, decided.attempt)
        self.running.open(to.request_id).attempts.sent(attempt)
        return decided.decision

    async def _counted(self, request: Request, to: Target, previous: Attempt, most_tokens: int) -> Attempt:
        """Return the refused attempt with what it sent counted, in the vocabulary of the model that refused it.

        A request that looked small was sent without counting; its refusal teaches from here on.
        """
        if previous.sent_tokens is not None or previous.overflow is None:
            return previous
        deadline = Deadline(to.policy.compression_timeout_seconds)
        counter = Counter(vocabulary_of(previous.model), deadline, previous.other_weight)
        try:
            history = await self.away(most_tokens, lambda: counted_history(request, counter), deadline)
        except CompressionTimeoutError:
            return previous  # what cannot be counted in time teaches nothing
        previous = replace(counted(previous, request, history), first_tokens=history.tokens)
        self.running.open(to.request_id).attempts.sent(previous)
        await self._learn_refusal(previous)
        return previous

    async def _learn_refusal(self, attempt: Attempt) -> None:
        if attempt.overflow is not None:
            stats = await self.learned.of(attempt.deployment)
            await self._learn(attempt, updates.of_refusal(stats, attempt, attempt.overflow, time.time()))

    async def _learn(self, attempt: Attempt, shown: updates.Shown) -> None:
        if not shown:
            return
        event = updates.limit_learned(shown, attempt)
        if event is not None:
            emit(event)
            logger.info(
                "deployment %s has shown a limit (%s) of %d tokens to one tenant; its window is stated as %d",
                event.deployment,
                event.kind,
                event.limit_tokens,
                event.window_tokens,
            )
        await self.learned.learn(attempt.deployment, shown)

    async def _decided_in_time(self, undecided: Undecided, most_tokens: int, timings: Timings) -> Decided:
        """Return the decision, by the last resort where it is not there in time or the request is too large.

        What is read of the request is that of a copy, which the thread lets go of: to free so much takes the loop 30 ms.
        """
        request, to, known, _ = undecided
        timeout_seconds: float | None = to.policy.compression_timeout_seconds
        deadline = Deadline(to.policy.compression_timeout_seconds)

        def work() -> Decided | None:
            return None if request.is_too_large else engine.decide(replace(request), to, known, deadline, timings)

        try:
            decided = await self.away(most_tokens, work, deadline)
            if decided is not None:
                return decided
            timeout_seconds = None
        except CompressionTimeoutError:
            warn_once(f"a request to {to.model} took too long to compress and lost its oldest turns instead")

        def last_resort() -> Decided:
            return engine.decide_by_last_resort(replace(request), to, known, timeout_seconds)

        return await self.away(most_tokens, last_resort, Deadline())

    async def away(self, most_tokens: int, work: Callable[[], T], deadline: Deadline) -> T:
        """Do short work here, and long work in a thread; so is what runs the steps of other packages."""
        if most_tokens <= LOOP_BYTES and not extra_steps():
            return work()
        return await self._workers.run(work, deadline)
