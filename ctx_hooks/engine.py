"""From a request and where it goes to a decision. Whatever goes wrong in here, the request goes on as it came."""

from __future__ import annotations

import asyncio
import logging
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from ctx_hooks import cost
from ctx_hooks.budget import Budget
from ctx_hooks.decision import Compressed, Decision, Figures, GaveUp, Rescued, Untouched
from ctx_hooks.errors import MalformedConversationError
from ctx_hooks.extensions import CompactionEvent, emit
from ctx_hooks.ledger import digest_of, entries
from ctx_hooks.overflow.ladder import LEAST_OUTPUT_TOKENS, Rung, limit_shown, rung_of
from ctx_hooks.replay import History, Marks, replay
from ctx_hooks.request import OUTPUT_FIELDS
from ctx_hooks.store.attempts import RUNNING_REQUESTS, Attempt, Attempts
from ctx_hooks.store.learned import Learned, LearnedFigures, SharedCache
from ctx_hooks.tokens.counter import Counter
from ctx_hooks.tokens.vocabulary import vocabulary_of
from ctx_hooks.tokens.window import DYNAMIC_MESSAGES, budget_tokens_of, target_tokens_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from ctx_hooks.destination import Destination
    from ctx_hooks.overflow.recognise import Overflow
    from ctx_hooks.request import Request

T = TypeVar("T")
logger = logging.getLogger("ctx_hooks")

LOOP_BYTES = 16_000
"""A larger request is worked on in a thread, so that the proxy's event loop goes on."""
LEAST_TRUNCATED_TOKENS = 1_024
TRUNCATED_FRACTION = 0.45
"""No tokenizer is so far off: below this share of our estimate something was cut away."""
WORKERS = 1
"""Python runs one of them at a time anyway; more would only take turns away from the event loop."""


class Engine:
    """Decides what to send. It remembers attempts of running requests, and what it learned of each deployment."""

    def __init__(self, shared: Callable[[], SharedCache | None] = lambda: None) -> None:
        self.attempts = Attempts()
        self.learned = Learned(shared)
        self._warned: set[str] = set()
        self._told: dict[str, str] = {}
        self._threads = ThreadPoolExecutor(WORKERS, thread_name_prefix="ctx_hooks")

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
            if not destination.rung and not destination.policy.looks_at_every_request and not request.exceeds(most):
                self.attempts.sent(destination.call_id, _attempt(request, destination, figures, None, None))
                lowered = _untouched("fits by its size alone", _lower_output(request, figures, None))
                return self._tell(destination.call_id, lowered)
            decision = await self._away(request, lambda: self._decide(request, destination, figures))
            return self._tell(destination.call_id, decision)
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
            await self._learn_limit(attempt, overflow)

    async def answered(self, call_id: str, billed_tokens: int | None) -> None:
        """Learn from an answer what the provider bills for what was sent."""
        attempt = self.attempts.done(call_id)
        if attempt is None or attempt.sent_tokens is None or billed_tokens is None:
            return
        counted = attempt.sent_tokens
        if _was_truncated(int(counted * attempt.factor), billed_tokens):
            logger.warning(
                "deployment %s answered to %d of about %d tokens: it truncates silently, and is sent no more from now on",
                attempt.deployment_id,
                billed_tokens,
                int(counted * attempt.factor),
            )
            await self.learned.learn(attempt.deployment_id, lambda figures: figures.limited(billed_tokens, time.time()))
            return
        await self.learned.learn(attempt.deployment_id, lambda figures: figures.billed(counted, billed_tokens, time.time()))

    async def _learn_limit(self, attempt: Attempt, overflow: Overflow) -> None:
        counted = attempt.sent_tokens
        if counted is None:
            return
        sent, first = (int(tokens * attempt.factor) for tokens in (counted, attempt.first_tokens or counted))

        def learn(figures: LearnedFigures) -> LearnedFigures:
            if overflow.input_tokens and not overflow.at_least:
                figures = figures.billed(counted, overflow.input_tokens, 0.0)
            if overflow.kind == "output_limit":
                return replace(figures, output_limit_tokens=overflow.limit_tokens)
            if overflow.kind == "input_plus_output":
                figures = replace(figures, holds_output=True)
            return figures.limited(limit_shown(overflow, sent, first, attempt.number + 1), time.time())

        await self.learned.learn(attempt.deployment_id, learn)

    async def _count_refused(self, request: Request, to: Destination) -> None:
        """Count what was sent without counting and then refused, and learn from the refusal now."""
        last = self.attempts.last(to.call_id)
        if last is None or last.sent_tokens is not None or last.overflow is None:
            return
        counter = Counter(vocabulary_of(to.model))
        counted = await self._away(request, lambda: _history(request, counter).tokens)
        last = replace(last, received_tokens=counted, sent_tokens=counted)
        self.attempts.sent(to.call_id, last)
        if last.overflow is not None:
            await self._learn_limit(last, last.overflow)

    async def _away(self, request: Request, work: Callable[[], T]) -> T:
        """Do short work here, and long work in a thread."""
        if not request.exceeds(LOOP_BYTES):
            return work()
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    def _warn_of_small(self, to: Destination) -> None:
        """Warn once of each model whose window is small."""
        if to.window.tokens < to.policy.warn_below_tokens and to.model not in self._warned:
            self._warned.add(to.model)
            logger.warning("the window of %s is small: %d tokens (%s)", to.model, to.window.tokens, to.window.source)

    def _was_fitted(self, request: Request, to: Destination) -> bool:
        """Whether this is the same attempt again: LiteLLM asks twice where it translates a request to another format."""
        last = self.attempts.last(to.call_id)
        return last is not None and not last.failed and last.number == to.rung and last.format != request.format

    def told(self, call_id: str) -> str:
        """Return in a few words what was done with a request, for a response header."""
        return self._told.get(call_id, "untouched")

    def _tell(self, call_id: str, decision: Decision) -> Decision:
        if not isinstance(decision, Untouched):
            words = [type(decision).__name__.lower()]
            if decision.figures is not None:
                words.append(f"before={decision.figures.tokens_before}; after={decision.figures.tokens_after}")
            words += [f"{name}={decision.changes[name]}" for name in OUTPUT_FIELDS if name in decision.changes]
            self._told[call_id] = "; ".join(words)
            if len(self._told) > RUNNING_REQUESTS:
                self._told.pop(next(iter(self._told)))
        return decision

    def _budget_tokens(self, request: Request, to: Destination, figures: LearnedFigures, recent_tokens: float = 0.0) -> int:
        """Return what the request may have in our count."""
        window = to.window_with(figures.limit_at(time.time()))
        factor = to.factor_with(figures.calibration)
        return int(budget_tokens_of(window, to.policy, request.max_output_tokens, recent_tokens * factor) / factor)

    def _decide(self, request: Request, to: Destination, learned: LearnedFigures) -> Decision:
        counter = Counter(vocabulary_of(to.model))
        history = _history(request, counter)
        received = history.tokens
        whole = request
        if to.policy.max_turns is not None:
            request = request.newest_turns(history.entries, to.policy.max_turns)
            history = history if request is whole else _history(request, counter)
        recent = history.entries[-DYNAMIC_MESSAGES:]
        mean = sum(e.tokens for e in recent) / max(1, len(recent))
        most = self._budget_tokens(request, to, learned, mean)
        window = to.window_with(learned.limit_at(time.time()))
        rung = Rung(most, cut_newest=False)
        if to.rung:
            rung = rung_of(to.rung, to.policy.rescue_attempts, self.attempts.last(to.call_id), request.max_output_tokens)
            most = max(1, min(most, rung.most_tokens)) if rung.max_output_tokens is None else rung.most_tokens
        if request is whole and received <= most and rung.max_output_tokens is None and to.policy.repair != "always":
            attempt = _attempt(request, to, learned, received, received)
            self.attempts.sent(to.call_id, attempt)
            room = window.tokens - int(received * attempt.factor)
            return _untouched("fits", _lower_output(request, learned, room))
        budget = Budget(most, window.tokens, counter, to.policy, cut_newest=rung.cut_newest)
        event = CompactionEvent("before_compaction", to.model, request.format, received, most, window.tokens, to.rung)
        emit(event)
        repair = to.policy.repair != "off"
        if self._does_not_pay(history.tokens, budget, to):
            outcome, _ = replay(history, Marks(budget.with_goal(history.tokens), history.tokens), repair=False)
        else:
            outcome, _ = replay(history, Marks(budget, target_tokens_of(most, to.policy)), repair=repair)
        steps = tuple(step.name for step in outcome.steps)
        emit(replace(event, name="after_compaction", tokens_after=outcome.tokens_after, steps=steps))
        lowered = rung.max_output_tokens is not None
        attempt = _attempt(request, to, learned, received, outcome.tokens_after)
        self.attempts.sent(to.call_id, replace(attempt, lowered=lowered))
        factor = attempt.factor
        figures = Figures(int(received * factor), int(outcome.tokens_after * factor), int(most * factor), window.tokens)
        changes = request.changes(outcome.conversation) if outcome.tokens_after < received else {}
        if to.policy.repair == "always" and not changes:
            changes = request.repaired()
        room = window.tokens - figures.tokens_after
        if rung.max_output_tokens is not None:
            changes |= request.with_output(rung.max_output_tokens)
        else:
            changes |= _lower_output(request, learned, room)
        if not changes:
            return Untouched("nothing to do", figures)
        if not outcome.fits:
            return GaveUp(changes, figures, outcome.reason or "", outcome.steps)
        if to.rung:
            return Rescued(changes, figures, outcome.steps, to.rung)
        return Compressed(changes, figures, outcome.steps)

    def _does_not_pay(self, received: int, budget: Budget, to: Destination) -> bool:
        """Whether the window would hold the request uncompressed, and compacting costs more than it saves."""
        if not to.policy.cost_aware or to.prices is None or to.rung or received > budget.window_tokens:
            return False
        after = target_tokens_of(budget.goal_tokens, to.policy)
        return not cost.pays(received, after, to.policy.expected_turns, to.prices)


def _was_truncated(sent_tokens: int, billed_tokens: int) -> bool:
    """Whether an answer's own figure says that the provider has read only a part of what was sent, as Ollama does."""
    return billed_tokens >= LEAST_TRUNCATED_TOKENS and billed_tokens < TRUNCATED_FRACTION * sent_tokens


def _untouched(reason: str, changes: dict[str, Any]) -> Decision:
    return Compressed(changes, None, ()) if changes else Untouched(reason)


def _lower_output(request: Request, learned: LearnedFigures, room_tokens: int | None) -> dict[str, Any]:
    """Return the lower output for a deployment that has refused more, nothing where it would not refuse this one."""
    asked = request.max_output_tokens
    limits = [learned.output_limit_tokens, room_tokens if learned.holds_output else None]
    allowed = min((limit for limit in limits if limit is not None and limit >= LEAST_OUTPUT_TOKENS), default=None)
    return request.with_output(allowed) if asked is not None and allowed is not None and allowed < asked else {}


def _attempt(request: Request, to: Destination, learned: LearnedFigures, received: int | None, sent: int | None) -> Attempt:
    window = to.window_with(learned.limit_at(time.time()))
    factor = to.factor_with(learned.calibration)
    return Attempt(to.deployment_id, request.format, received, sent, window.tokens, factor, to.rung)


def _history(request: Request, counter: Counter) -> History:
    preamble = request.preamble()
    return History(
        request.part,
        entries(request.format, request.items, counter),
        sum(counter.text(t) for t in preamble),
        digest_of(preamble),
        continues=request.continues_stored_history,
    )
