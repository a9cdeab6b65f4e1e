"""Writes one summary: asks the model for each part of the history, and checks what it answers."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Literal, TypeVar

from ctx_hooks import litellm_compat
from ctx_hooks.addons.summaries import call
from ctx_hooks.addons.summaries.check import Rejected, checked
from ctx_hooks.addons.summaries.prompt import parts_of, prompt_of
from ctx_hooks.policy.settings import DEFAULT_POLICY
from ctx_hooks.runtime.deadline import Deadline
from ctx_hooks.tokens.counter import Counter
from ctx_hooks.tokens.units import to_local
from ctx_hooks.tokens.vocabulary import vocabulary_of
from ctx_hooks.tokens.window import window_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ctx_hooks.addons.summaries.call import Answer
    from ctx_hooks.addons.summaries.candidates import Asking, SummaryTask
    from ctx_hooks.learning.learned import Learned
    from ctx_hooks.litellm_compat import Deployment
    from ctx_hooks.policy.addon_settings import SummarySettings
    from ctx_hooks.runtime.worker import Workers
    from ctx_hooks.tokens.units import ProviderTokens

T = TypeVar("T")


@dataclass(slots=True)
class Writing:
    """What has come of a summary so far: it is filled in while it is written, and says what was paid whatever happens.

    Attributes:
        text: the summary, "" until it is accepted.
        outcome: how it ended: "cancelled" until it has.
        reason: why it was not accepted, "" where it was.
        answers: what the model has answered, one for each part.
    """

    text: str = ""
    outcome: Literal["accepted", "rejected", "failed", "cancelled"] = "cancelled"
    reason: str = ""
    answers: list[Answer] = field(default_factory=list)


async def write(
    writing: Writing,
    task: SummaryTask,
    asking: Asking,
    learned: Learned,
    workers: Workers,
    renewed: Callable[[], Awaitable[bool]],
) -> None:
    """Have a summary written and checked; it raises nothing but a cancellation.

    Args:
        writing: is told what comes of it.
        task: what is summarised.
        asking: by which model, how, and on whose account.
        learned: how each deployment counts.
        workers: the threads for what takes long.
        renewed: renews the lease before each call; False where another worker has taken the flight over.
    """
    settings = asking.settings
    try:
        deployment, window_tokens = smallest_of(settings.model)
        stats = await learned.of(litellm_compat.deployment_key_of(deployment))
        seen = stats.seen_by(asking.to.tenant, time.time())
        local_tokens, other_weight = (
            to_local(window_tokens, seen.factor(deployment.model)),
            seen.other_weight(deployment.model),
        )

        async def away(work: Callable[[Counter], T]) -> T:
            deadline = Deadline(settings.timeout_seconds)  # work that takes longer outlasts the lease
            counter = Counter(vocabulary_of(deployment.model), deadline, other_weight)
            return await workers.run(lambda: work(counter), deadline)

        text = task.before
        for part in await away(lambda counter: parts_of(task, settings, local_tokens, counter)):
            if not await renewed():
                writing.outcome, writing.reason = "failed", "its lease was over"
                return
            messages = prompt_of(part, text, settings)
            answer = await call.ask(settings.model, messages, settings.max_tokens, settings.timeout_seconds, asking.payer)
            writing.answers.append(answer)
            found = await away(partial(_accepted, answer, task, settings))
            if isinstance(found, Rejected):
                writing.outcome, writing.reason = "rejected", found.reason
                return
            text = found
        writing.text, writing.outcome = text, "accepted"
    except Exception as error:  # noqa: BLE001 - a provider, a budget, a rate limit: without a summary all goes on
        writing.outcome, writing.reason = "failed", type(error).__name__


def _accepted(answer: Answer, task: SummaryTask, settings: SummarySettings, counter: Counter) -> str | Rejected:
    """Return what the model has written as it is used, or why it is not: an answer that was cut off is no summary."""
    return checked(answer.text, task, settings, counter) if answer.is_whole else Rejected("too_long")


def smallest_of(group: str) -> tuple[Deployment, ProviderTokens]:
    """Return a group's deployment with the smallest window, and that window: the Router may choose any."""
    listed = litellm_compat.deployments(group) or (litellm_compat.Deployment(group, {}),)
    windows = (
        (d, window_of(DEFAULT_POLICY, d.model_info.get("max_input_tokens"), litellm_compat.known_window_tokens(d)))
        for d in listed
    )
    deployment, window = min(windows, key=lambda found: found[1].tokens)
    return deployment, window.tokens
