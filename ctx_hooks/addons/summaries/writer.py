"""Writes one summary: asks the model for each part of the history, and checks what it answers."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal, TypeVar

from ctx_hooks.addons.summaries import call
from ctx_hooks.addons.summaries.call import Answer
from ctx_hooks.addons.summaries.candidates import Asking, SummaryTask
from ctx_hooks.addons.summaries.check import Checked, checked
from ctx_hooks.addons.summaries.prompt import parts_of, prompt_of
from ctx_hooks.litellm_compat.call import Deployment
from ctx_hooks.litellm_compat.deployments import deployments
from ctx_hooks.policy.settings import DEFAULT_POLICY
from ctx_hooks.request.target import window_at
from ctx_hooks.runtime.deadline import Deadline
from ctx_hooks.runtime.worker import pool
from ctx_hooks.tokens.counter import Counter, vocabulary_of

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Written:
    """What has come of a summary.

    Attributes:
        found: what of it is used.
        outcome: "failed" if the model has not answered.
        reason: why it is not accepted, or why points of it are left out; "" if neither.
        answers: what the model has answered, and what is paid.
    """

    found: Checked
    outcome: Literal["accepted", "rejected", "failed"]
    reason: str
    answers: list[Answer]


async def write(task: SummaryTask, asking: Asking) -> Written:
    """Have a summary written and checked. It raises nothing but a cancellation."""
    answers: list[Answer] = []
    try:
        found = await _written_in_parts(task, asking, answers)
    except Exception as error:  # noqa: BLE001 - a provider, a budget, a rate limit: the extract is sent instead
        return Written(Checked(""), "failed", type(error).__name__, answers)
    return Written(found, "accepted" if found.text else "rejected", found.reason, answers)


async def _written_in_parts(task: SummaryTask, asking: Asking, answers: list[Answer]) -> Checked:
    """Have each part summarised after the one before; raises what a call raises."""
    settings = asking.settings
    listed = deployments(settings.model) or (Deployment(settings.model, {}),)  # the Router may choose any
    window_tokens, model = min((window_at(each, DEFAULT_POLICY).tokens, each.model) for each in listed)

    async def off_loop(work: Callable[[Counter], T]) -> T:
        deadline = Deadline(settings.timeout_seconds)
        return await pool.run(asking.to.tenant, lambda: work(Counter(vocabulary_of(model), deadline)), deadline)

    found = Checked(task.before)
    left_out = 0
    for part in await off_loop(lambda counter: parts_of(task, settings, window_tokens, counter)):
        messages = prompt_of(part, found.text, settings)
        answer = await call.ask(settings.model, messages, settings.max_tokens, settings.timeout_seconds, asking.payer)
        answers.append(answer)
        found = await off_loop(partial(checked, answer.text, task, settings)) if answer.is_whole else Checked("", "too_long")
        if not found.text:
            return found
        left_out += found.left_out
    return Checked(found.text, "unknown_names" if left_out else "", left_out)
