"""Has summaries written: one flight a conversation over all workers, in the background or while requests wait for it.

A flight is a task of its own. A request that waits for it gives up after `timeout_seconds`, and a client that leaves takes
only its own request along; a worker that dies leaves a lease that ends. Nothing here fails a request: where there is no
summary the deterministic form is sent.
"""

import asyncio
import logging
import time
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import TypeVar
from uuid import uuid4

from ctx_hooks.addons.summaries import record
from ctx_hooks.addons.summaries.call import start_apart
from ctx_hooks.addons.summaries.candidates import Asking, SummaryTask, asking_of, is_due, task_of
from ctx_hooks.addons.summaries.record import Flight
from ctx_hooks.addons.summaries.stored import FLIGHT_TIMEOUT_SECONDS, StoredSummaries
from ctx_hooks.addons.summaries.writer import Writing, write
from ctx_hooks.compaction.message_index import settled_length
from ctx_hooks.compaction.summary.model_written import Choice, Summaries, WrittenSummary
from ctx_hooks.engine.engine import Decided
from ctx_hooks.learning.attempts import Attempt
from ctx_hooks.litellm_compat.errors import failing_open
from ctx_hooks.request.request import counted_history
from ctx_hooks.runtime.deadline import Deadline
from ctx_hooks.runtime.worker import pool
from ctx_hooks.serving.addons import Addon, Core, Decide, Undecided
from ctx_hooks.serving.recorder import names_of
from ctx_hooks.telemetry.events import SummaryEvent
from ctx_hooks.telemetry.listeners import emit
from ctx_hooks.tokens.counter import Counter, vocabulary_of
from ctx_hooks.tokens.usage import Billed

NAME = "summaries"
T = TypeVar("T", int, float)
logger = logging.getLogger("ctx_hooks")

MOST_FLIGHTS = 64
"""At once in this process. A history waits in memory for each; further ones are begun after a later answer."""
LEASE_MARGIN_SECONDS = 2.0
"""What a call may take beyond `timeout_seconds`: the check of its answer, and writes to Redis."""
POLL_SECONDS = 0.1
"""How often a request that waits looks for the end of another worker's flight: half of what it may be late by."""


class SummaryFlights(Addon):
    """The summaries of conversations, and the tasks that write them."""

    def __init__(self, core: Core) -> None:
        self._store = StoredSummaries(core.store)
        self._learned = core.learned
        self._flights: dict[str, asyncio.Task[None]] = {}
        self._running = core.running

    async def decided(self, undecided: Undecided, decide: Decide) -> Decided:
        """Return the decision about a request, made with the summary that its newest compaction holds for all workers.

        Raises:
            MalformedConversationError: the request holds no conversation.
        """
        asking = None if undecided.fits_by_size else await asking_of(undecided.request, undecided.to)
        if asking is None:
            return await decide(undecided)
        decided = await self._decided(asking, undecided, decide)
        if asking.settings.mode == "background" and asking.to.request_id:
            state = self._running.open(asking.to.request_id)
            state.held[NAME, asking.to.deployment] = asking
            self._running.hold(asking.to.request_id, state)
        return decided

    async def _decided(self, asking: Asking, undecided: Undecided, decide: Decide) -> Decided:
        async def with_summaries(summaries: Summaries) -> Decided:
            return await decide(undecided._replace(known=replace(undecided.known, summaries=summaries)))

        summaries = (await self._store.of(asking.conversation)).summaries(asking.conversation)
        decided = await with_summaries(summaries)
        choice = decided.attempt.choice
        if choice is None or choice.compaction in summaries.chosen:
            return decided
        if asking.settings.mode == "blocking" and choice.is_new and not asking.to.attempt:
            asking = asking.fitted(decided.attempt)
            decided = await with_summaries(await self._waited_for(asking, choice))
            choice = decided.attempt.choice or choice
        if await self._store.choose(asking.conversation, choice) == choice.prefix:
            return decided
        return await with_summaries((await self._store.of(asking.conversation)).summaries(asking.conversation))

    def ended(self, attempt: Attempt, billed: Billed | None) -> None:
        """Have a summary written in the background if the next compaction would hold it, and is near.

        The request of a failed attempt is kept no longer; a retry brings it again.
        """
        state = self._running.of(attempt.to.request_id)
        asking = state.held.pop((NAME, attempt.to.deployment), None)
        self._running.hold(attempt.to.request_id, state)
        if not isinstance(asking, Asking) or billed is None:
            return
        if is_due(attempt, billed.input_tokens, asking.settings.soft_fraction):
            self._start(asking.fitted(attempt), None, attempt.choice.length - 1 if attempt.choice is not None else 0)

    async def _waited_for(self, asking: Asking, choice: Choice) -> Summaries:
        """Return what is known once the flight of a conversation is over, whoever has it, or `timeout_seconds` are."""
        end = time.monotonic() + asking.settings.timeout_seconds
        flight = self._start(asking, choice.length, choice.length - 1)
        if flight is not None:
            await asyncio.wait({flight}, timeout=asking.settings.timeout_seconds)
        while (left_seconds := end - time.monotonic()) > 0:
            stored = await self._store.of(asking.conversation, left_seconds)
            if not stored.flight.is_under_way(time.time()):
                return stored.summaries(asking.conversation)
            await asyncio.sleep(POLL_SECONDS)
        return (await self._store.of(asking.conversation)).summaries(asking.conversation)

    def _start(self, asking: Asking, length: int | None, after: int) -> asyncio.Task[None] | None:
        """Return the task of a conversation's flight, begun now where there is none; None where there are too many."""
        conversation = asking.conversation
        flight = self._flights.get(conversation)
        if flight is None and len(self._flights) < MOST_FLIGHTS:
            flight = self._flights[conversation] = start_apart(self._fly(asking, length, after))
            flight.add_done_callback(lambda _: self._flights.pop(conversation, None))
        return flight

    async def _fly(self, asking: Asking, length: int | None, after: int) -> None:
        """Have a summary written of the first `length` messages of a request, None for all that the next one begins with."""
        with failing_open("writes no summary"):
            stored = await self._store.of(asking.conversation, FLIGHT_TIMEOUT_SECONDS)
            if stored.flight.is_held(time.time()):
                return
            deadline = Deadline(asking.settings.timeout_seconds)

            def next_task() -> SummaryTask | None:
                history = counted_history(asking.request, Counter(vocabulary_of(asking.to.model), deadline))
                settled = settled_length(history.index, len(history.index)) if length is None else length
                return task_of(history, stored.summaries(asking.conversation), settled, after)

            task = await pool.run(asking.to.tenant, next_task, deadline)
            if task is None:
                return
            lease = _Lease(self._store, asking)
            if await lease.begin(stored.flight):
                await self._write(asking, task, lease)

    async def _write(self, asking: Asking, task: SummaryTask, lease: "_Lease") -> None:
        """Write a summary and store it where it is accepted; what becomes of the flight is stored in any case."""
        settings, names = asking.settings, names_of(asking.request.call, asking.to)
        began = SummaryEvent("before_summary", time.time(), names, settings.model, settings.mode, task.length)
        emit(began)
        writing, start = Writing(), time.monotonic()
        try:
            await write(writing, task, asking, self._learned, lease.renew)
            if writing.text:
                summary = WrittenSummary(task.prefix, task.length, writing.text)
                await self._store.write(asking.conversation, summary)
        finally:
            failed = record.given_up if writing.outcome == "cancelled" else partial(record.failed, now=time.time())
            await lease.end(record.IDLE if writing.text else failed(lease.flight))
            emit(_ended(began, writing, time.monotonic() - start))
        if not writing.text:
            logger.warning("no summary by %s: %s (%s)", asking.settings.model, writing.outcome, writing.reason)


class _Lease:
    """The hold that this process has of a conversation's flight, as it has stored that last."""

    def __init__(self, store: StoredSummaries, asking: Asking) -> None:
        self.flight = record.IDLE
        self._store = store
        self._conversation = asking.conversation
        self._seconds = asking.settings.timeout_seconds + LEASE_MARGIN_SECONDS

    async def begin(self, found: Flight) -> bool:
        """Take the flight, and return whether no other worker was first."""
        begun = record.begun(found, uuid4().hex, time.time(), self._seconds)
        if begun is None or not await self._store.fly(self._conversation, found, begun):
            return False
        self.flight = begun
        return True

    async def renew(self) -> bool:
        """Hold the flight for another part, which has a lease of its own; return whether it still was this process's."""
        return await self.end(replace(self.flight, until_seconds=time.time() + self._seconds))

    async def end(self, flight: Flight) -> bool:
        """Store the next state, and return whether the flight still was this process's."""
        held = await self._store.fly(self._conversation, self.flight, flight)
        self.flight = flight
        return held


def _ended(began: SummaryEvent, writing: Writing, seconds: float) -> SummaryEvent:
    answers = writing.answers
    return replace(
        began,
        name="after_summary",
        time_seconds=time.time(),
        calls=len(answers),
        outcome=writing.outcome,
        reason=writing.reason,
        input_tokens=_sum(a.input_tokens for a in answers),
        output_tokens=_sum(a.output_tokens for a in answers),
        dollars=_sum(a.dollars for a in answers),
        milliseconds=seconds * 1e3,
    )


def _sum(figures: Iterable[T | None]) -> T | None:
    """Return the sum of the figures that are known, None where none is."""
    known = [figure for figure in figures if figure is not None]
    return sum(known[1:], known[0]) if known else None
