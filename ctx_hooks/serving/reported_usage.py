"""The usage that clients see, where a policy has it state the size of what they sent.

What LiteLLM bills and logs, and what is learned, stays what the provider stated: answers are copied. An attempt is forgotten
once its answer is logged, which may be before the client gets it; so the growth is remembered in the request's state.
"""

from collections.abc import AsyncIterator, Mapping
from typing import Any

from ctx_hooks import litellm_compat
from ctx_hooks.engine.decision import Decision, NotRetried, ShownAgain, Untouched
from ctx_hooks.learning.attempts import Attempt
from ctx_hooks.request.target import Target
from ctx_hooks.serving.running import RequestState
from ctx_hooks.tokens.usage import grown, unfinished_line

BEFORE_CHOICE = ""
"""Stands in the place of a deployment's key for what was cut before the Router chose one."""


def note(state: RequestState, to: Target, decision: Decision, attempt: Attempt | None) -> None:
    """Remember by how much an attempt was cut."""
    growth, reports = state.growth, to.policy.report_usage == "original"
    if (reports or growth) and not isinstance(decision, (NotRetried, ShownAgain)):
        is_cut = reports and not isinstance(decision, Untouched)
        _set(growth, to.deployment, _growth_of(attempt) if is_cut else 1.0)


def note_failed(state: RequestState, deployment: str) -> None:
    """Forget what was cut for a deployment that failed: the next one may get the whole request."""
    if state.growth:
        _set(state.growth, deployment, 1.0)


def note_fitted_before_choice(state: RequestState) -> None:
    """Remember that what was cut so far is gone from what each attempt receives."""
    state.growth = {BEFORE_CHOICE: _growth_at(state.growth, "")} if state.growth else {}


def whole(state: RequestState, fields: Mapping[str, Any], answer: Any) -> Any:
    """Return an answer as the client is to see it."""
    growth, state.growth = state.growth, {}
    if not growth:
        return answer
    with litellm_compat.failing_open("leaves the usage of an answer as it was billed"):
        litellm_compat.price(fields, answer)
        return _grown(answer, growth)
    return answer


async def streamed(state: RequestState, stream: AsyncIterator[Any]) -> AsyncIterator[Any]:
    """Yield the chunks of a stream as the client is to see them, each at once.

    Bytes come as the network cuts them: a line of an event is yielded whole, with the chunk that ends it, before
    which no client can read it.
    """
    unfinished = b""
    try:
        async for chunk in stream:
            growth = state.growth  # each time: the Router may change the deployment in mid-stream
            ready = chunk
            if isinstance(chunk, bytes) and (unfinished or growth):
                text = unfinished + chunk
                unfinished = unfinished_line(text)
                ready = text[: len(text) - len(unfinished)]
                if not ready:
                    continue
            yield _grown(ready, growth) if growth else ready
    finally:
        state.growth = {}
    if unfinished:
        yield unfinished


def _set(growth: dict[str, float], deployment: str, factor: float) -> None:
    """Note what was cut for a deployment, the newest; nothing at all where nothing is cut for any."""
    growth.pop(deployment, None)
    growth[deployment] = factor
    if set(growth.values()) == {1.0}:
        growth.clear()


def _growth_at(growth: Mapping[str, float], deployment_id: str) -> float:
    """Return the growth at the deployment that answers; at the newest if its id is "", which some answers do not state."""
    found = [g for key, g in growth.items() if key and (not deployment_id or key.startswith(f"{deployment_id}:"))]
    return growth.get(BEFORE_CHOICE, 1.0) * (found[-1] if found else 1.0)


def _growth_of(attempt: Attempt | None) -> float:
    """Return what an attempt received as a multiple of what it sends; 1 where either is not known as a whole."""
    if attempt is None or attempt.stored or not attempt.counts_all:
        return 1.0
    received, sent = attempt.received_tokens, attempt.sent_tokens
    return max(1.0, received / sent) if received and sent else 1.0


def _grown(answer: Any, growth: Mapping[str, float]) -> Any:
    with litellm_compat.failing_open("leaves the usage of an answer as it was billed"):
        return grown(answer, _growth_at(growth, litellm_compat.answering_id_of(answer)))
    return answer
