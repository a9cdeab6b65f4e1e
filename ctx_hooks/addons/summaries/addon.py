"""Has a summary written behind an answer, of the messages that the next compaction will remove.

Each is a task of its own: a request neither waits for it nor fails because of it, and a client that leaves does not end it.
"""

import asyncio
import math
import time
from collections.abc import Callable
from contextvars import Context
from dataclasses import replace
from functools import partial
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar

from ctx_hooks.addons.summaries.check import Checked, checked
from ctx_hooks.addons.summaries.stored import StoredSummaries, SummaryTask, conversation_key, task_of
from ctx_hooks.addons.summaries.writing import ask, payer_of, prompt_of
from ctx_hooks.attempts.attempt import Attempt
from ctx_hooks.attempts.request import Request, counted_history
from ctx_hooks.attempts.target import Target, window_at
from ctx_hooks.compaction.history import settled_length
from ctx_hooks.compaction.summary.extractive import summary_tokens
from ctx_hooks.compaction.summary.model_written import WrittenSummary
from ctx_hooks.flow.addons import Addon, Core, Decide, Undecided
from ctx_hooks.flow.decision import Decided
from ctx_hooks.flow.recorder import names_of
from ctx_hooks.litellm_compat.call import Deployment
from ctx_hooks.litellm_compat.deployments import deployments
from ctx_hooks.litellm_compat.errors import failing_open
from ctx_hooks.policy.addon_settings import SummarySettings
from ctx_hooks.policy.settings import DEFAULT_POLICY
from ctx_hooks.runtime.deadline import Deadline, compression_deadline
from ctx_hooks.runtime.worker import pool
from ctx_hooks.telemetry.events import SummaryEvent
from ctx_hooks.telemetry.listeners import emit
from ctx_hooks.tokens.counter import Counter, vocabulary_of
from ctx_hooks.tokens.units import LocalTokens, to_provider
from ctx_hooks.tokens.usage import Billed

NAME = "summaries"
MOST_TASKS = 64
"""At once in this process: a history waits in memory for each. A later answer begins what is not begun."""
DUE_FRACTION = 0.8
"""Of the budget: above it an answer's input has the next summary written (pi)."""
Outcome: TypeAlias = Literal["accepted", "rejected", "failed"]
T = TypeVar("T")


class Asking(NamedTuple):
    """A request of a conversation that summaries are written of, as the client sent it, and on whose account they are."""

    request: Request
    to: Target
    settings: SummarySettings
    conversation: str
    payer: Any
    size_bytes: int


class ModelSummaries(Addon):
    """The summaries of conversations, and the tasks that have them written."""

    def __init__(self, core: Core) -> None:
        self._stored = StoredSummaries(core.store)
        self._running = core.running
        self._tasks: set[asyncio.Task[None]] = set()

    async def decided(self, undecided: Undecided, decide: Decide) -> Decided:
        """Return the decision about a request, made with the summary that its newest compaction has for all workers."""
        request, to, _, fits_by_size = undecided
        asking = None if fits_by_size else await _asking_of(request, to)
        if asking is None:
            return await decide(undecided)
        summaries = await self._stored.of(asking.conversation)
        decided = await decide(undecided._replace(to=replace(to, summaries=summaries)))
        choice = decided.attempt.choice
        if choice is not None and choice.compaction not in summaries.chosen:
            settled = await self._stored.choose(asking.conversation, choice)
            if settled.chosen.get(choice.compaction, choice.prefix) != choice.prefix:
                decided = await decide(undecided._replace(to=replace(to, summaries=settled)))
        if to.request_id:
            state = self._running.open(to.request_id)
            state.held[NAME, to.deployment] = asking
            self._running.hold(to.request_id, state)
        return decided

    def ended(self, attempt: Attempt, billed: Billed | None) -> None:
        """Begin a summary if the next compaction would have it, and is near; forget the request of a failed attempt."""
        state = self._running.of(attempt.to.request_id)
        asking = state.held.pop((NAME, attempt.to.deployment), None)
        self._running.hold(attempt.to.request_id, state)
        if not isinstance(asking, Asking) or billed is None or len(self._tasks) >= MOST_TASKS:
            return
        budget_tokens = attempt.budget_tokens
        if budget_tokens is None or not is_due(attempt, budget_tokens, billed.input_tokens):
            return
        # The budget has to have room for it, beside the users' words.
        most_tokens = min(asking.settings.max_tokens, int(summary_tokens(budget_tokens, most_tokens=math.inf)))
        asking = asking._replace(settings=asking.settings.model_copy(update={"max_tokens": most_tokens}))
        after = 0 if attempt.choice is None else attempt.choice.length - 1
        # LiteLLM keeps what belongs to the caller's request in context variables, such as its place in the rate limits.
        task = Context().run(asyncio.get_running_loop().create_task, self._summarise(asking, after))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _summarise(self, asking: Asking, after: int) -> None:
        """Have the next summary of a conversation written, unless one was begun lately; store it if it is accepted."""
        with failing_open("writes no summary"):
            if not await self._stored.begin(asking.conversation):
                return
            summaries = await self._stored.of(asking.conversation)

            def next_task(counter: Counter) -> SummaryTask | None:
                history = counted_history(asking.request, counter)
                return task_of(history, summaries, settled_length(history.index, len(history.index)), after)

            task = await _off_loop(asking, asking.to.model, next_task)
            if task is None:
                return
            text, event = await _written(task, asking)
            if text:
                await self._stored.write(asking.conversation, WrittenSummary(task.prefix, task.length, text))
            emit(event)


async def _asking_of(request: Request, to: Target) -> Asking | None:
    """Return a request as one of a conversation that summaries are written of; None if none are."""
    settings = to.policy.summary_in_use
    payer = payer_of(request.call) if settings is not None and to.policy.mode == "enforce" else None
    if settings is None or payer is None:
        return None

    def asking() -> Asking:
        key = conversation_key(request.messages, to.tenant, settings)
        return Asking(request, to, settings, key, payer, request.size_bytes)

    found = await pool.run(to.tenant, asking, compression_deadline())
    return found if found.conversation else None


def is_due(attempt: Attempt, budget_tokens: int, input_tokens: int) -> bool:
    """Whether the input is above DUE_FRACTION of the budget; of a compacted request what the next compaction has to hold."""
    free_tokens = budget_tokens - input_tokens
    if attempt.choice is not None:
        if attempt.choice.free_tokens is None:
            return False
        free_tokens = to_provider(LocalTokens(attempt.choice.free_tokens), attempt.limits.factor)
    return free_tokens < (1 - DUE_FRACTION) * budget_tokens


async def _written(task: SummaryTask, asking: Asking) -> tuple[str, SummaryEvent]:
    """Have a summary written; return what is used of it, "" if it is rejected or fails, and its record."""
    start, settings, answer = time.monotonic(), asking.settings, None
    outcome: Outcome = "rejected"
    listed = deployments(settings.model) or (Deployment(settings.model, {}),)  # the Router may choose any
    window_tokens, model = min((window_at(each, DEFAULT_POLICY).tokens, each.model) for each in listed)
    try:
        messages = await _off_loop(asking, model, partial(prompt_of, task, settings, window_tokens))
        answer = await ask(settings, messages, asking.payer) if messages else None
        if answer is None:
            text, reason = Checked("", "history_too_long")
        elif not answer.is_whole:
            text, reason = Checked("", "too_long")
        else:
            text, reason = await _off_loop(asking, model, partial(checked, answer.text, task, settings))
    except Exception as error:  # noqa: BLE001 - a provider, a budget, a rate limit: the extract is sent instead
        text, reason, outcome = "", type(error).__name__, "failed"
    event = SummaryEvent(
        name="summary",
        time_seconds=time.time(),
        call=names_of(asking.request.call, asking.to),
        summary_model=settings.model,
        messages=task.length,
        outcome="accepted" if text else outcome,
        reason=reason,
        dollars=None if answer is None else answer.dollars,
        milliseconds=(time.monotonic() - start) * 1e3,
    )
    return text, event


async def _off_loop(asking: Asking, model: str, work: Callable[[Counter], T]) -> T:
    deadline = Deadline(asking.settings.timeout_seconds)
    return await pool.run(asking.to.tenant, lambda: work(Counter(vocabulary_of(model), deadline)), deadline)
