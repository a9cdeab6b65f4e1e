"""Has a summary written behind an answer, of the messages that the next compaction will remove.

Each is a task of its own: a request neither waits for it nor fails because of it, and a client that leaves does not end it.
"""

import asyncio
import time
from contextvars import Context
from dataclasses import replace
from typing import Literal, TypeAlias

from ctx_hooks.addons.summaries.call import Answer
from ctx_hooks.addons.summaries.candidates import Asking, SummaryTask, asking_of, fitted, is_due, task_of
from ctx_hooks.addons.summaries.stored import StoredSummaries
from ctx_hooks.addons.summaries.writer import write
from ctx_hooks.compaction.history import settled_length
from ctx_hooks.compaction.summary.model_written import WrittenSummary
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
Outcome: TypeAlias = Literal["accepted", "rejected", "failed"]
MOST_TASKS = 64
"""At once in this process: a history waits in memory for each. A later answer begins what is not begun."""


class ModelSummaries(Addon):
    """The summaries of conversations, and the tasks that have them written."""

    def __init__(self, core: Core) -> None:
        self._stored = StoredSummaries(core.store)
        self._running = core.running
        self._tasks: set[asyncio.Task[None]] = set()

    async def decided(self, undecided: Undecided, decide: Decide) -> Decided:
        """Return the decision about a request, made with the summary that its newest compaction has for all workers.

        Raises:
            MalformedConversationError: the request holds no conversation.
        """
        request, to, _, fits_by_size = undecided
        asking = None if fits_by_size else await asking_of(request, to)
        if asking is None:
            return await decide(undecided)
        summaries = await self._stored.of(asking.conversation)
        decided = await decide(undecided._replace(to=replace(to, summaries=summaries)))
        choice = decided.attempt.choice
        if choice is not None and choice.compaction not in summaries.chosen:
            settled = await self._stored.choose(asking.conversation, choice)
            if settled.chosen[choice.compaction] != choice.prefix:
                decided = await decide(undecided._replace(to=replace(to, summaries=settled)))
        if to.request_id:
            state = self._running.open(to.request_id)
            state.held[NAME, to.deployment] = asking
            self._running.hold(to.request_id, state)
        return decided

    def ended(self, attempt: Attempt, billed: Billed | None) -> None:
        """Begin a summary if the next compaction would have it, and is near.

        The request of a failed attempt is kept no longer; a retry brings it again.
        """
        state = self._running.of(attempt.to.request_id)
        asking = state.held.pop((NAME, attempt.to.deployment), None)
        self._running.hold(attempt.to.request_id, state)
        if not isinstance(asking, Asking) or billed is None or len(self._tasks) >= MOST_TASKS:
            return
        if is_due(attempt, billed.input_tokens):
            after = 0 if attempt.choice is None else attempt.choice.length - 1
            asking = asking._replace(settings=fitted(asking.settings, attempt))
            # LiteLLM keeps what belongs to the caller's request in context variables.
            task = Context().run(asyncio.get_running_loop().create_task, self._summarise(asking, after))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _summarise(self, asking: Asking, after: int) -> None:
        """Have the next summary of a conversation written, unless a worker has begun it; store it if it is accepted.

        What is not accepted is not ended: the conversation is paused.
        """
        with failing_open("writes no summary"):
            if not await self._stored.begin(asking.conversation):
                return
            summaries = await self._stored.of(asking.conversation)
            deadline = Deadline(asking.settings.timeout_seconds)

            def next_task() -> SummaryTask | None:
                history = counted_history(asking.request, Counter(vocabulary_of(asking.to.model), deadline))
                return task_of(history, summaries, settled_length(history.index, len(history.index)), after)

            task = await pool.run(asking.to.tenant, next_task, deadline)
            if task is None or await _is_written(task, asking, self._stored):
                await self._stored.end(asking.conversation)


async def _is_written(task: SummaryTask, asking: Asking, stored: StoredSummaries) -> bool:
    """Have a summary written, store it as far as it is accepted, and report it then; return whether it is accepted."""
    start, answers = time.monotonic(), list[Answer]()
    try:
        text, reason = await write(task, asking, answers)
    except Exception as error:  # noqa: BLE001 - a provider, a budget, a rate limit: the extract is sent instead
        text, reason = "", type(error).__name__
        outcome: Outcome = "failed"
    else:
        outcome = "accepted" if text else "rejected"
    milliseconds = (time.monotonic() - start) * 1e3
    if text:
        await stored.write(asking.conversation, WrittenSummary(task.prefix, task.length, text))
    dollars = [answer.dollars for answer in answers if answer.dollars is not None]
    emit(
        SummaryEvent(
            name="summary",
            time_seconds=time.time(),
            call=names_of(asking.request.call, asking.to),
            summary_model=asking.settings.model,
            messages=task.length,
            calls=len(answers),
            outcome=outcome,
            reason=reason,
            dollars=sum(dollars) if dollars else None,
            milliseconds=milliseconds,
        )
    )
    return bool(text)
