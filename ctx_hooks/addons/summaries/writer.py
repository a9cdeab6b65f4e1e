"""Writes one summary: asks the model for each part of the history, and checks what it answers."""

from collections.abc import Callable
from functools import partial
from typing import TypeVar

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


async def write(task: SummaryTask, asking: Asking, answers: list[Answer]) -> Checked:
    """Return what is used of a summary, each part of which is written after the one before; add the answers to `answers`.

    Raises:
        Exception: what the checks of the call, the Router or the provider raise.
    """
    settings = asking.settings
    listed = deployments(settings.model) or (Deployment(settings.model, {}),)  # the Router may choose any
    window_tokens, model = min((window_at(each, DEFAULT_POLICY).tokens, each.model) for each in listed)

    async def off_loop(work: Callable[[Counter], T]) -> T:
        deadline = Deadline(settings.timeout_seconds)
        return await pool.run(asking.to.tenant, lambda: work(Counter(vocabulary_of(model), deadline)), deadline)

    text, reason = task.before, ""
    for part in await off_loop(lambda counter: parts_of(task, settings, window_tokens, counter)):
        answer = await call.ask(settings, prompt_of(part, text, settings), asking.payer)
        answers.append(answer)
        found = await off_loop(partial(checked, answer.text, task, settings)) if answer.is_whole else Checked("", "too_long")
        if not found.text:
            return found
        text, reason = found.text, reason or found.reason
    return Checked(text, reason)
