"""Writes one summary: asks the model for each part of the history, and checks what it answers."""

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal, NamedTuple, TypeVar

from ctx_hooks.addons.summaries import call
from ctx_hooks.addons.summaries.call import Answer
from ctx_hooks.addons.summaries.candidates import Asking, SummaryTask
from ctx_hooks.addons.summaries.check import Checked, checked, rejected
from ctx_hooks.addons.summaries.prompt import parts_of, prompt_of
from ctx_hooks.learning.learned import Learned
from ctx_hooks.litellm_compat.call import Deployment
from ctx_hooks.litellm_compat.deployments import deployment_key_of, deployments
from ctx_hooks.overflow.recognise import Overflow, recognise_overflow
from ctx_hooks.overflow.retry_plan import limit_for_retry
from ctx_hooks.policy.addon_settings import SummarySettings
from ctx_hooks.policy.settings import DEFAULT_POLICY
from ctx_hooks.request.target import window_at
from ctx_hooks.runtime.deadline import Deadline
from ctx_hooks.runtime.worker import pool
from ctx_hooks.tokens.counter import Counter, VocabularyName, vocabulary_of
from ctx_hooks.tokens.units import ProviderTokens, to_local

T = TypeVar("T")

ATTEMPTS = 3
"""So often a summary is begun whose calls are refused as too large."""
LESS_FRACTION = 0.75
"""What a refusal leaves at most of what the model was taken to hold."""


class Room(NamedTuple):
    """What a model holds, by its stated window or the lower limit that refusals have shown, and how it counts.

    `factor` is of provider tokens per local token, `other_weight` of what a local token of other scripts counts as.
    """

    tokens: ProviderTokens
    factor: float
    vocabulary: VocabularyName
    other_weight: float


@dataclass(slots=True)
class Writing:
    """What has come of a summary so far: it is filled in while it is written, and says what was paid whatever happens.

    Attributes:
        text: the summary, "" until it is accepted.
        reason: why it was not accepted, or why entries of it are left out; "" where neither is.
        answers: what the model has answered, one for each part.
    """

    text: str = ""
    outcome: Literal["accepted", "rejected", "failed", "cancelled"] = "cancelled"
    reason: str = ""
    answers: list[Answer] = field(default_factory=list)

    def end(self, found: Checked) -> None:
        """Note what the check has found of the summary."""
        self.text, self.outcome = found.text, "accepted" if found.text else "rejected"
        self.reason = " and ".join(dict.fromkeys(found.reasons))


async def write(
    writing: Writing,
    task: SummaryTask,
    asking: Asking,
    learned: Learned,
    renewed: Callable[[], Awaitable[bool]],
) -> None:
    """Have a summary written and checked, and tell `writing` what comes of it; it raises nothing but a cancellation.

    `renewed` renews the lease before each call: False where another worker has taken the flight over.
    """
    try:
        room = await _room_of(asking.settings.model, learned, asking.to.tenant)
        for number in range(1, ATTEMPTS + 1):
            overflow = await _write_in_parts(writing, task, asking, room, renewed)
            if overflow is None:
                return
            writing.outcome, writing.reason = "failed", "overflow"
            limit = limit_for_retry(overflow, room.tokens, room.tokens, number)
            room = room._replace(tokens=ProviderTokens(min(limit, int(room.tokens * LESS_FRACTION))))
    except Exception as error:  # noqa: BLE001 - a provider, a budget, a rate limit: without a summary all goes on
        writing.outcome, writing.reason = "failed", type(error).__name__


async def _write_in_parts(
    writing: Writing, task: SummaryTask, asking: Asking, room: Room, renewed: Callable[[], Awaitable[bool]]
) -> Overflow | None:
    """Have each part summarised behind the one before; return the overflow that a call was refused for."""
    settings = asking.settings

    async def away(work: Callable[[Counter], T]) -> T:
        deadline = Deadline(settings.timeout_seconds)  # work that takes longer outlasts the lease
        return await pool.run(
            asking.to.tenant, lambda: work(Counter(room.vocabulary, deadline, room.other_weight)), deadline
        )

    found = Checked(task.before, ())
    for part in await away(lambda counter: parts_of(task, settings, to_local(room.tokens, room.factor), counter)):
        if not await renewed():
            writing.outcome, writing.reason = "failed", "its lease was over"
            return None
        messages = prompt_of(part, found.text, settings)
        try:
            answer = await call.ask(settings.model, messages, settings.max_tokens, settings.timeout_seconds, asking.payer)
        except Exception as error:
            overflow = recognise_overflow(error)
            if overflow is None:
                raise
            return overflow
        writing.answers.append(answer)
        part_found = await away(partial(_accepted, answer, task, settings))
        found = replace(part_found, reasons=(*found.reasons, *part_found.reasons)) if part_found.text else part_found
        if not found.text:
            break
    writing.end(found)
    return None


def _accepted(answer: Answer, task: SummaryTask, settings: SummarySettings, counter: Counter) -> Checked:
    """Return what of an answer is used: one that was cut off is no summary."""
    return checked(answer.text, task, settings, counter) if answer.is_whole else rejected("too_long")


async def _room_of(group: str, learned: Learned, tenant: str) -> Room:
    """Return what every deployment of a group holds: the Router may choose any."""
    rooms = []
    for deployment in deployments(group) or (Deployment(group, {}),):
        stats = await learned.of(deployment_key_of(deployment))
        seen, model = stats.seen_by(tenant, time.time()), deployment.model
        window = window_at(deployment, DEFAULT_POLICY).tokens
        limit = min(window, seen.limit_tokens(window) or window)
        rooms.append(Room(limit, seen.factor(model), vocabulary_of(model), seen.other_weight(model)))
    return min(rooms, key=lambda room: to_local(room.tokens, room.factor))
