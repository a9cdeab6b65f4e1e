"""The usage that clients see, if a policy makes it state the size of the client's own request.

Billing, logs and learning use the provider's figures: answers are copied. An attempt is forgotten once its answer is logged,
perhaps before the client gets it; so the request's state remembers the growth.
"""

from collections.abc import AsyncIterator, Mapping
from typing import Any

from ctx_hooks.engine.decision import Decision, NotRetried, ShownAgain, Untouched
from ctx_hooks.learning.attempts import Attempt
from ctx_hooks.litellm_compat.call import DeploymentName
from ctx_hooks.litellm_compat.deployments import answering_id_of
from ctx_hooks.litellm_compat.errors import failing_open
from ctx_hooks.litellm_compat.logged import price
from ctx_hooks.request.target import Target
from ctx_hooks.serving.running import RequestState
from ctx_hooks.tokens.usage import grown, unfinished_line

BEFORE_CHOICE = DeploymentName("", "")
"""Replaces a deployment for text that was removed before the Router chose a deployment."""


def note(state: RequestState, to: Target, decision: Decision, attempt: Attempt | None) -> None:
    """Remember how much an attempt was compressed."""
    growth, reports = state.growth, to.policy.report_usage == "original"
    if (reports or growth) and not isinstance(decision, (NotRetried, ShownAgain)):
        is_cut = reports and not isinstance(decision, Untouched)
        _set(growth, to.name, _growth_of(attempt) if is_cut else 1.0)


def note_failed(state: RequestState, deployment: DeploymentName) -> None:
    """Forget the growth at a deployment that failed: the next one may get the whole request."""
    if state.growth:
        _set(state.growth, deployment, 1.0)


def note_fitted_before_choice(state: RequestState) -> None:
    """Remember that every attempt now receives the request without the text removed so far."""
    state.growth = {BEFORE_CHOICE: _growth_at(state.growth, "")} if state.growth else {}


def whole(state: RequestState, fields: Mapping[str, Any], answer: Any) -> Any:
    """Return an answer as the client sees it."""
    growth, state.growth = state.growth, {}
    if not growth:
        return answer
    with failing_open("leaves the usage of an answer as it was billed"):
        price(fields, answer)
        return _grown(answer, growth)
    return answer


async def streamed(state: RequestState, stream: AsyncIterator[Any]) -> AsyncIterator[Any]:
    """Yield the chunks of a stream as the client sees them, each at once.

    The network may divide a line of an event into several chunks. The line is yielded whole, with its last chunk; no client
    can read it before.
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


def _set(growth: dict[DeploymentName, float], deployment: DeploymentName, factor: float) -> None:
    """Note the growth at a deployment as the newest; keep nothing if no deployment has any growth."""
    growth.pop(deployment, None)
    growth[deployment] = factor
    if set(growth.values()) == {1.0}:
        growth.clear()


def _growth_at(growth: Mapping[DeploymentName, float], deployment_id: str) -> float:
    """Return the growth at the answering deployment, or at the newest if the answer states no id ("")."""
    found = [g for at, g in growth.items() if at != BEFORE_CHOICE and deployment_id in ("", at.id)]
    return growth.get(BEFORE_CHOICE, 1.0) * (found[-1] if found else 1.0)


def _growth_of(attempt: Attempt | None) -> float:
    """Return the ratio of an attempt's received to its sent size; 1 if either is not fully known."""
    if attempt is None or attempt.stored or attempt.uncounted.holds_any:
        return 1.0
    received, sent = attempt.received_tokens, attempt.sent_tokens
    return max(1.0, received / sent) if received and sent else 1.0


def _grown(answer: Any, growth: Mapping[DeploymentName, float]) -> Any:
    with failing_open("leaves the usage of an answer as it was billed"):
        return grown(answer, _growth_at(growth, answering_id_of(answer)))
    return answer
