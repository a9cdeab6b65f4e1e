"""From a request and where it goes to a decision. Whatever goes wrong in here, the request goes on as it came."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from ctx_hooks import invariants, pipeline
from ctx_hooks.budget import Budget
from ctx_hooks.decision import Compressed, Decision, Figures, GaveUp, Rescued, Untouched
from ctx_hooks.errors import MalformedConversationError
from ctx_hooks.overflow.ladder import rung_of
from ctx_hooks.store.attempts import Attempt, Attempts
from ctx_hooks.tokens.counter import Counter
from ctx_hooks.tokens.vocabulary import vocabulary_of
from ctx_hooks.tokens.window import budget_tokens_of, reserve_tokens_of

if TYPE_CHECKING:
    from ctx_hooks.destination import Destination
    from ctx_hooks.request import Request

logger = logging.getLogger("ctx_hooks")

THREAD_CHARS = 20_000
"""A larger request is worked on in a thread, so that the proxy's event loop goes on."""


class Engine:
    """Decides what to send. `attempts` is what it remembers of running requests."""

    def __init__(self) -> None:
        self.attempts = Attempts()

    async def decide(self, request: Request, destination: Destination) -> Decision:
        """Return the request fitted before the call, compressed harder on a retry, or untouched.

        Never raises: any failure leaves the request untouched and logs one warning.
        """
        if not destination.policy.enabled:
            return Untouched("switched off")
        try:
            if request.is_longer_than(THREAD_CHARS):
                return await asyncio.to_thread(self._decide, request, destination)
            return self._decide(request, destination)
        except MalformedConversationError as error:
            return Untouched(str(error))
        except Exception as error:
            # A proxy must not lose a request to us, whatever is wrong here.
            logger.warning("ctx_hooks failed and forwards the request unchanged", exc_info=error)
            return Untouched(f"failed: {type(error).__name__}")

    def _decide(self, request: Request, to: Destination) -> Decision:
        conversation = request.conversation()
        counter = Counter(vocabulary_of(to.model))
        received = counter.conversation(conversation)
        goal, cut_newest = self._goal(to)
        repaired, repairs = conversation, 0
        if to.policy.repair == "always" or (to.policy.repair == "auto" and received > goal):
            repaired, done = invariants.repair(conversation, continues=request.continues_stored_history)
            repairs = len(done)
        budget = Budget(goal, to.window_tokens, counter, to.policy, cut_newest=cut_newest)
        outcome = pipeline.compress(repaired, budget)
        self.attempts.sent(to.call_id, Attempt(received, outcome.tokens_after, to.window_tokens))
        before, after, allowed = (int(tokens * to.tokens_factor) for tokens in (received, outcome.tokens_after, goal))
        figures = Figures(before, after, allowed, to.window_tokens)
        if outcome.conversation is conversation:
            return Untouched("fits" if outcome.fits else "nothing may be taken away", figures)
        changes = request.changes(outcome.conversation)
        if not outcome.fits:
            return GaveUp(changes, figures, outcome.reason or "", outcome.steps)
        if to.rung:
            return Rescued(changes, figures, outcome.steps, to.rung, repairs)
        return Compressed(changes, figures, outcome.steps, repairs)

    def _goal(self, to: Destination) -> tuple[int, bool]:
        """Return the goal in our count, and whether the newest results may be cut to reach it."""
        allowed = int(budget_tokens_of(to.window_tokens, to.policy) / to.tokens_factor)
        if not to.rung:
            return allowed, False
        reserve = reserve_tokens_of(to.window_tokens, to.policy)
        rung = rung_of(to.rung, to.policy.rescue_attempts, allowed, self.attempts.last(to.call_id), reserve)
        return rung.goal_tokens, rung.cut_newest
