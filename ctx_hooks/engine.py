"""From a request and where it goes to a decision. Whatever goes wrong in here, the request goes on as it came."""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from ctx_hooks import cost, last_resort, lessons
from ctx_hooks.budget import Budget
from ctx_hooks.deadline import CompressionTimeoutError, Deadline
from ctx_hooks.decision import Compressed, Decision, Figures, GaveUp, Rescued, Untouched
from ctx_hooks.errors import MalformedConversationError
from ctx_hooks.extensions import CompactionEvent, emit, extra_steps
from ctx_hooks.ledger import entries
from ctx_hooks.logs import warn_once
from ctx_hooks.overflow.ladder import LEAST_OUTPUT_TOKENS, Rung, rung_of
from ctx_hooks.replay import History, Marks, history_of, replay
from ctx_hooks.store.attempts import Attempt, Attempts
from ctx_hooks.store.learned import Learned, LearnedFigures, SharedCache
from ctx_hooks.tokens.counter import Counter
from ctx_hooks.tokens.vocabulary import vocabulary_of
from ctx_hooks.tokens.window import DYNAMIC_MESSAGES, budget_tokens_of, target_tokens_of
from ctx_hooks.wire import CODECS
from ctx_hooks.worker import Workers

if TYPE_CHECKING:
    from collections.abc import Callable

    from ctx_hooks.conversation import Conversation
    from ctx_hooks.destination import Destination
    from ctx_hooks.overflow.recognise import Overflow
    from ctx_hooks.pipeline import Outcome
    from ctx_hooks.request import Request
    from ctx_hooks.tokens.window import Window

T = TypeVar("T")
logger = logging.getLogger("ctx_hooks")

LOOP_BYTES = 16_000
"""A larger request is worked on in a thread, so that the proxy's event loop goes on."""
ESTIMATE_ERROR_FRACTION = 0.05
"""How far a calibrated figure may be off (its 95th percentile): an output that is lowered leaves this free."""


class Engine:
    """Decides what to send. It remembers attempts of running requests, and what it learned of each deployment."""

    def __init__(self, shared: Callable[[], SharedCache | None] = lambda: None) -> None:
        self.attempts = Attempts()
        self.learned = Learned(shared)
        self._warned: set[str] = set()
        self._counted: set[str] = set()
        self._workers = Workers()

    async def decide(self, request: Request, destination: Destination) -> Decision:
        """Return the request fitted before the call, compressed harder on a retry, or untouched.

        Never raises: any failure leaves the request untouched and logs one warning.
        """
        if not destination.policy.enabled:
            return Untouched("switched off")
        try:
            if self._was_fitted(request, destination):
                return Untouched("fitted before it was translated")
            if destination.rung:
                await self._count_refused(request, destination)
            figures = await self.learned.of(destination.deployment_id)
            most = self._budget_tokens(request, destination, figures)
            self._warn_of_small(destination)
            size = request.most_tokens(most)
            if size <= most and not self._counts_anyway(destination):
                window = destination.window_with(figures, time.time())
                attempt = _attempt(request, destination, figures, window, None)
                self.attempts.sent(destination.call_id, replace(attempt, most_tokens=size))
                return _untouched("fits by its size alone", _lower_output(request, figures.output_limit_tokens))
            return await self._decided_in_time(request, destination, figures)
        except MalformedConversationError as error:
            return Untouched(str(error))
        except Exception as error:
            # A proxy must not lose a request to us, whatever is wrong here.
            logger.warning("ctx_hooks failed and forwards the request unchanged", exc_info=error)
            return Untouched(f"failed: {type(error).__name__}")

    async def failed(self, call_id: str, overflow: Overflow | None) -> None:
        """Note that an attempt failed; learn from an overflow what the next attempt, and the next request, must keep to."""
        attempt = self.attempts.failed(call_id, overflow)
        if attempt is not None and overflow is not None:
            await self._learn_refusal(attempt, overflow)

    async def answered(self, call_id: str, billed_tokens: int | None) -> None:
        """Learn from an answer what the provider bills for what was sent."""
        attempt = self.attempts.done(call_id)
        if attempt is None or billed_tokens is None:
            return
        if lessons.may_be_truncated(attempt, billed_tokens):
            self._counted.add(attempt.deployment_id)
        event = lessons.truncation(attempt, billed_tokens)
        if event is not None:
            emit(event)
            logger.warning(
                "deployment %s refuses nothing that is too long: it was sent about %d tokens and read %d, in a window of %d",
                event.deployment_id,
                event.sent_tokens,
                event.read_tokens,
                event.window_tokens,
            )
        await self.learned.learn(
            attempt.deployment_id, lambda figures: lessons.of_answer(figures, attempt, billed_tokens, time.time())
        )

    async def _learn_refusal(self, attempt: Attempt, overflow: Overflow) -> None:
        await self.learned.learn(
            attempt.deployment_id, lambda figures: lessons.of_refusal(figures, attempt, overflow, time.time())
        )

    async def _count_refused(self, request: Request, to: Destination) -> None:
        """Count what was sent without counting and then refused, and learn from the refusal now."""
        last = self.attempts.last(to.call_id)
        if last is None or last.sent_tokens is not None or last.overflow is None:
            return
        deadline = Deadline(to.policy.compression_timeout_seconds)
        counter = Counter(vocabulary_of(to.model), deadline)
        try:
            counted = await self._away(request, lambda: _history(request, counter).tokens, deadline)
        except CompressionTimeoutError:
            return  # what cannot be counted in time teaches nothing
        last = replace(last, received_tokens=counted, sent_tokens=counted)
        self.attempts.sent(to.call_id, last)
        if last.overflow is not None:
            await self._learn_refusal(last, last.overflow)

    async def _decided_in_time(self, request: Request, to: Destination, learned: LearnedFigures) -> Decision:
        """Return the decision, by the last resort where it is not there in time or the request is too large."""
        if not last_resort.is_too_large(request):
            deadline = Deadline(to.policy.compression_timeout_seconds)
            try:
                return await self._away(request, lambda: self._decide(request, to, learned, deadline), deadline)
            except CompressionTimeoutError:
                warn_once(f"a request to {to.model} took too long to compress and lost its oldest turns instead")
        forever = Deadline()
        return await self._away(request, lambda: self._decide(request, to, learned, forever, in_time=False), forever)

    async def _away(self, request: Request, work: Callable[[], T], deadline: Deadline) -> T:
        """Do short work here, and long work in a thread; so is what runs the steps of other packages."""
        if not request.exceeds(LOOP_BYTES) and not extra_steps():
            return work()
        return await self._workers.run(work, deadline)

    def _warn_of_small(self, to: Destination) -> None:
        """Warn once of each model whose window is small."""
        if to.window.tokens < to.policy.warn_below_tokens and to.model not in self._warned:
            self._warned.add(to.model)
            logger.warning("the window of %s is small: %d tokens (%s)", to.model, to.window.tokens, to.window.source)

    def _counts_anyway(self, to: Destination) -> bool:
        """Whether a request is counted however small it is."""
        return bool(to.rung) or to.policy.looks_at_every_request or to.deployment_id in self._counted

    def _was_fitted(self, request: Request, to: Destination) -> bool:
        """Whether this is the same attempt again: LiteLLM asks twice where it translates a request to another format."""
        last = self.attempts.last(to.call_id)
        return last is not None and not last.failed and last.number == to.rung and last.format != request.format

    def _budget_tokens(
        self, request: Request, to: Destination, figures: LearnedFigures, recent_tokens: float = 0.0, fixed_tokens: int = 0
    ) -> int:
        """Return what the request may have in our count."""
        window = to.window_with(figures, time.time())
        factor = to.factor_with(figures.calibration)
        output, recent, fixed = request.max_output_tokens, recent_tokens * factor, fixed_tokens * factor
        return int(budget_tokens_of(window, to.policy, output, recent, fixed) / factor)

    def _decide(
        self, request: Request, to: Destination, learned: LearnedFigures, deadline: Deadline, *, in_time: bool = True
    ) -> Decision:
        counter = Counter(vocabulary_of(to.model), deadline)
        history = _history(request, counter) if in_time else last_resort.history_of(request)
        received = history.tokens
        newest = request.newest_turns(history.entries, to.policy.max_turns)
        if newest is not request:
            history = _history(newest, counter) if in_time else last_resort.history_of(newest)
        window = to.window_with(learned, time.time())
        rung = self._rung(request, history, to, learned, window)
        if newest is request and received <= rung.most_tokens and rung.max_output_tokens is None:
            return self._fitting(request, history, to, learned, window)
        budget = Budget(rung.most_tokens, window.tokens, counter, to.policy, rung.cut_newest)
        outcome = self._compressed(newest, history, budget, to) if in_time else last_resort.applied(newest, budget, to.model)
        deadline.check()  # whoever is no longer waited for notes nothing
        lowered = rung.max_output_tokens is not None
        attempt = _attempt(request, to, learned, window, history)
        attempt = replace(attempt, received_tokens=received, sent_tokens=outcome.tokens_after, lowered=lowered)
        self.attempts.sent(to.call_id, attempt)
        changes = newest.changes(outcome.conversation) if outcome.tokens_after < received else {}
        if to.policy.repair == "always" and not changes:
            changes = request.repaired()
        if rung.max_output_tokens is not None:
            changes |= request.with_output(rung.max_output_tokens)
        else:
            changes |= _lower_output(request, learned.output_limit_tokens, window, attempt)
        before, after, most = (int(n * attempt.factor) for n in (received, outcome.tokens_after, rung.most_tokens))
        figures = Figures(before, after, most, window.tokens)
        if not changes:
            return Untouched("nothing to do", figures)
        if not outcome.fits:
            return GaveUp(changes, figures, outcome.reason or "", outcome.steps)
        if to.rung:
            return Rescued(changes, figures, outcome.steps, to.rung)
        return Compressed(changes, figures, outcome.steps)

    def _rung(self, request: Request, history: History, to: Destination, learned: LearnedFigures, window: Window) -> Rung:
        """Return what this attempt has to be: within the budget, and on a retry smaller than what was refused."""
        recent = history.entries[-DYNAMIC_MESSAGES:]
        mean = sum(e.tokens for e in recent) / max(1, len(recent))
        most = self._budget_tokens(request, to, learned, mean, history.fixed_tokens)
        # Where the provider has named its limit, what does not fit will be refused: no rung would be saved for it.
        named = window.source == "learned"
        if not to.rung:
            return Rung(most, cut_newest=named)
        rung = rung_of(to.rung, to.policy.rescue_attempts, self.attempts.last(to.call_id), request.max_output_tokens)
        if rung.max_output_tokens is None:
            rung = replace(rung, most_tokens=max(1, min(most, rung.most_tokens)))
        return replace(rung, cut_newest=rung.cut_newest or named)

    def _fitting(
        self, request: Request, history: History, to: Destination, learned: LearnedFigures, window: Window
    ) -> Decision:
        """Return the decision about a request that fits as it came."""
        attempt = _attempt(request, to, learned, window, history)
        self.attempts.sent(to.call_id, attempt)
        changes = request.repaired() if to.policy.repair == "always" else {}
        return _untouched("fits", changes | _lower_output(request, learned.output_limit_tokens, window, attempt))

    def _compressed(self, request: Request, history: History, budget: Budget, to: Destination) -> Outcome:
        """Return the history as it is to be sent, and tell the listeners."""
        event = CompactionEvent(
            "before_compaction", to.model, request.format, history.tokens, budget.goal_tokens, budget.window_tokens, to.rung
        )
        emit(event)
        low_tokens = target_tokens_of(budget.goal_tokens, to.policy, history.fixed_tokens)
        if self._does_not_pay(history.tokens, low_tokens, budget, to):
            outcome, _ = replay(history, Marks(budget.with_goal(history.tokens), history.tokens), repair=False)
        else:
            outcome, _ = replay(history, Marks(budget, low_tokens), repair=to.policy.repair != "off")
        steps = tuple(step.name for step in outcome.steps)
        emit(replace(event, name="after_compaction", tokens_after=outcome.tokens_after, steps=steps))
        return outcome

    def _does_not_pay(self, received: int, low_tokens: int, budget: Budget, to: Destination) -> bool:
        """Whether the window would hold the request uncompressed, and compacting costs more than it saves."""
        if not to.policy.cost_aware or to.prices is None or to.rung or received > budget.window_tokens:
            return False
        return not cost.pays(received, low_tokens, to.policy.expected_turns, to.prices)


def _untouched(reason: str, changes: dict[str, Any]) -> Decision:
    return Compressed(changes, None, ()) if changes else Untouched(reason)


def _lower_output(
    request: Request, cap_tokens: int | None, window: Window | None = None, attempt: Attempt | None = None
) -> dict[str, Any]:
    """Return the lower output for a deployment that would refuse the requested one, nothing where it would not.

    `cap_tokens` is the most that any answer of the deployment may have; beside it the window may leave less.
    """
    asked = request.max_output_tokens
    if asked is None:
        return {}
    allowed = asked
    if cap_tokens is not None and cap_tokens >= LEAST_OUTPUT_TOKENS:
        allowed = min(asked, cap_tokens)
    if window is not None and window.holds_output and attempt is not None and attempt.sent_tokens is not None:
        sent = int(attempt.sent_tokens * attempt.factor)
        room = window.tokens - int(sent * (1 + ESTIMATE_ERROR_FRACTION))
        if allowed > window.tokens - sent and room >= LEAST_OUTPUT_TOKENS:
            allowed = room
    return request.with_output(allowed) if allowed < asked else {}


def _attempt(request: Request, to: Destination, learned: LearnedFigures, window: Window, history: History | None) -> Attempt:
    """Return the attempt that sends `history` as it came; None where it was not counted."""
    factor = to.factor_with(learned.calibration)
    tokens = history.tokens if history is not None else None
    guessed = sum(e.guessed_tokens for e in history.entries) if history is not None else 0
    return Attempt(
        to.deployment_id,
        request.format,
        tokens,
        tokens,
        window,
        factor,
        to.rung,
        output_tokens=request.max_output_tokens,
        guessed_tokens=guessed,
    )


def _history(request: Request, counter: Counter) -> History:
    found = entries(request.format, request.items, counter)
    preamble = request.preamble()  # read once: the tools may be large, and parts of a conversation are read often

    def part(start: int, end: int) -> Conversation:
        return replace(CODECS[request.format].read(request.items[start:end]), preamble=preamble)

    return history_of(part, found, preamble, counter, continues=request.continues_stored_history)
