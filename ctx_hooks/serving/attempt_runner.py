"""Runs the attempts of requests: gathers what is known, decides in a thread where it is long, and learns how it ended."""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from ctx_hooks import engine
from ctx_hooks.compaction.steps.installed import extra_steps
from ctx_hooks.decision import Decision, NotRetried, Untouched
from ctx_hooks.errors import MalformedConversationError
from ctx_hooks.learning import updates
from ctx_hooks.learning.attempts import Attempts
from ctx_hooks.learning.learned import Learned
from ctx_hooks.runtime.deadline import CompressionTimeoutError, Deadline
from ctx_hooks.runtime.warnings import warn_once
from ctx_hooks.runtime.worker import Workers
from ctx_hooks.telemetry.events import emit
from ctx_hooks.tokens.counter import Counter
from ctx_hooks.tokens.vocabulary import vocabulary_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from ctx_hooks.engine import Decided, Known
    from ctx_hooks.learning.attempts import Attempt
    from ctx_hooks.learning.redis_store import SharedCache
    from ctx_hooks.overflow.recognise import Overflow
    from ctx_hooks.request.request import Request
    from ctx_hooks.request.target import Target

T = TypeVar("T")
logger = logging.getLogger("ctx_hooks")

LOOP_BYTES = 16_000
"""A larger request is worked on in a thread, so that the proxy's event loop goes on."""
TRANSLATED = "fitted before it was translated"


class AttemptRunner:
    """Remembers the attempts of running requests, and what was learned of each deployment."""

    def __init__(self, shared: Callable[[], SharedCache | None] = lambda: None) -> None:
        self.attempts = Attempts()
        self.learned = Learned(shared)
        self._workers = Workers()

    async def decide(self, request: Request, to: Target) -> Decision:
        """Return what to send, and remember the attempt.

        Never raises: any failure leaves the request untouched and logs one warning. A retry that would send again what
        was refused is NotRetried, whatever the reason.
        """
        to = replace(to, attempt=_number_of(to, self.attempts.last(to.request_id)))
        decision = await self._decided(request, to)
        if to.attempt and isinstance(decision, Untouched) and decision.reason != TRANSLATED:
            return NotRetried(decision.reason, decision.figures)
        return decision

    async def failed(self, request_id: str, overflow: Overflow | None, refusal: str = "") -> None:
        """Note that an attempt failed; learn from an overflow what the next attempt, and the next request, must keep to."""
        attempt = self.attempts.failed(request_id, overflow, refusal)
        if attempt is not None:
            await self._learn_refusal(attempt)

    async def answered(self, request_id: str, billed_tokens: int | None) -> None:
        """Learn from the provider tokens that an answer states for what was sent."""
        attempt = self.attempts.done(request_id)
        if attempt is None or billed_tokens is None:
            return
        stats, now = await self.learned.of(attempt.deployment), time.time()
        event = updates.truncation(stats, attempt, billed_tokens, now)
        if event is not None:
            emit(event)
            logger.warning(
                "deployment %s refuses nothing that is too long: it was sent about %d tokens and read %d, in a window of %d",
                event.deployment_id,
                event.sent_tokens,
                event.read_tokens,
                event.window_tokens,
            )
        await self._learn(attempt, updates.of_answer(stats, attempt, billed_tokens, now))

    async def _decided(self, request: Request, to: Target) -> Decision:
        if not to.policy.enabled:
            return Untouched("switched off")
        previous = self.attempts.last(to.request_id)
        if previous is not None and _was_translated(previous, request, to):
            return Untouched(TRANSLATED)
        if to.attempt and (previous is None or previous.spent):
            return Untouched("what was refused before is not known, or cannot be made smaller")
        try:
            if to.attempt and previous is not None:
                previous = await self._counted(request, to, previous)
            known = engine.known_of(to, await self.learned.of(to.deployment), time.time(), previous if to.attempt else None)
            if to.window.tokens < to.policy.warn_below_tokens:
                warn_once(f"the window of {to.model} is small: {to.window.tokens} tokens ({to.window.source})")
            decided = engine.decide_by_size(request, to, known) or await self._decided_in_time(request, to, known)
        except MalformedConversationError as error:
            return Untouched(str(error))
        except Exception as error:
            # A proxy must not lose a request to us, whatever is wrong here.
            logger.warning("ctx_hooks failed and forwards the request unchanged", exc_info=error)
            return Untouched(f"failed: {type(error).__name__}")
        self.attempts.sent(to.request_id, decided.attempt)
        return decided.decision

    async def _counted(self, request: Request, to: Target, previous: Attempt) -> Attempt:
        """Return the refused attempt with what it sent counted, in the vocabulary of the model that refused it.

        A request that looked small was sent without counting; its refusal teaches from here on.
        """
        if previous.sent_tokens is not None or previous.overflow is None:
            return previous
        deadline = Deadline(to.policy.compression_timeout_seconds)
        counter = Counter(vocabulary_of(previous.model), deadline)
        try:
            history = await self._away(request, lambda: engine.history_in(request, counter), deadline)
        except CompressionTimeoutError:
            return previous  # what cannot be counted in time teaches nothing
        guessed = sum(m.guessed_tokens for m in history.index)
        previous = replace(
            previous,
            received_tokens=history.tokens,
            sent_tokens=history.tokens,
            first_tokens=history.tokens,
            guessed_tokens=guessed,
            counts_all=not request.has_uncounted_content,
        )
        self.attempts.sent(to.request_id, previous)
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

    async def _decided_in_time(self, request: Request, to: Target, known: Known) -> Decided:
        """Return the decision, by the last resort where it is not there in time or the request is too large."""
        if not request.is_too_large:
            deadline = Deadline(to.policy.compression_timeout_seconds)
            try:
                return await self._away(request, lambda: engine.decide(request, to, known, deadline), deadline)
            except CompressionTimeoutError:
                warn_once(f"a request to {to.model} took too long to compress and lost its oldest turns instead")
        return await self._away(request, lambda: engine.decide(request, to, known), Deadline())

    async def _away(self, request: Request, work: Callable[[], T], deadline: Deadline) -> T:
        """Do short work here, and long work in a thread; so is what runs the steps of other packages."""
        if not request.exceeds(LOOP_BYTES) and not extra_steps():
            return work()
        return await self._workers.run(work, deadline)


def _number_of(to: Target, previous: Attempt | None) -> int:
    """Return the number of the retry that an attempt is.

    An operator's `retry_policy` for bad requests makes the Router ask the deployment that refused again, before any
    fallback and without a mark: the same request would be refused again.
    """
    if to.attempt or previous is None or previous.overflow is None or previous.deployment != to.deployment:
        return to.attempt
    return min(previous.number + 1, to.policy.rescue_attempts)


def _was_translated(previous: Attempt, request: Request, to: Target) -> bool:
    """Whether this is the same attempt again: LiteLLM asks twice where it translates a request to another format.

    The second time it carries no mark of a retry: the first has taken it out.
    """
    return not previous.failed and to.attempt in (0, previous.number) and previous.format != request.format
