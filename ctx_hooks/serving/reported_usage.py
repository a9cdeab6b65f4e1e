"""The usage that clients see, where a policy has it state the size of what they sent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ctx_hooks import litellm_compat
from ctx_hooks.engine.decision import Decision, NotRetried, ShownAgain, Untouched
from ctx_hooks.litellm_compat.failing_open import failing_open
from ctx_hooks.serving.running import Growth
from ctx_hooks.tokens.usage import grown, unfinished_line

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from ctx_hooks.learning.attempts import Attempt
    from ctx_hooks.request.target import Target
    from ctx_hooks.serving.running import RequestState, Running


class ReportedUsage:
    """Raises the input that the usage of an answer states to the size of what the client sent.

    What LiteLLM bills and logs, and what is learned, stays what the provider stated: answers are copied. An attempt is
    forgotten once its answer is logged, which may be before the client gets it; so the growth is remembered here.
    """

    def __init__(self, running: Running) -> None:
        self._running = running

    def note(self, to: Target, decision: Decision, attempt: Attempt | None) -> None:
        """Remember by how much an attempt was cut."""
        state, reports = self._running.of(to.request_id), to.policy.report_usage == "original"
        if isinstance(decision, (NotRetried, ShownAgain)) or not (reports or state.growth):
            return
        growth = _growth_of(attempt) if reports and not isinstance(decision, Untouched) else 1.0
        self._set(self._running.open(to.request_id), to.deployment, growth)

    def failed(self, request_id: str, deployment: str) -> None:
        """Forget what was cut for a deployment that failed: the next one may get the whole request."""
        state = self._running.of(request_id)
        if state.growth is not None:
            self._set(state, deployment, 1.0)

    def note_fitted_before_choice(self, request_id: str) -> None:
        """Remember that what was cut so far is gone from what each attempt receives."""
        state = self._running.of(request_id)
        growth = (state.growth or Growth()).at("")
        state.growth = Growth(growth) if growth > 1 else None

    def whole(self, fields: Mapping[str, Any], answer: Any) -> Any:
        """Return an answer as the client is to see it."""
        state = self._running.of(litellm_compat.Call(fields).request_id)
        growth, state.growth = state.growth, None
        if growth is None:
            return answer
        with failing_open("leaves the usage of an answer as it was billed"):
            litellm_compat.price(fields, answer)
            return _grown(answer, growth)
        return answer

    async def streamed(self, fields: Mapping[str, Any], stream: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """Yield the chunks of a stream as the client is to see them, each at once.

        Bytes come as the network cuts them: a line of an event is yielded whole, with the chunk that ends it, before
        which no client can read it.
        """
        state = self._running.of(litellm_compat.Call(fields).request_id)
        unfinished = b""
        try:
            async for chunk in stream:
                growth = state.growth  # each time: the Router may change the deployment in mid-stream
                ready = chunk
                if isinstance(chunk, bytes) and (unfinished or growth is not None):
                    text = unfinished + chunk
                    unfinished = unfinished_line(text)
                    ready = text[: len(text) - len(unfinished)]
                    if not ready:
                        continue
                yield ready if growth is None else _grown(ready, growth)
        finally:
            state.growth = None
        if unfinished:
            yield unfinished

    def _set(self, state: RequestState, deployment: str, growth: float) -> None:
        known = state.growth or Growth()
        others = {key: g for key, g in known.for_deployment.items() if key != deployment}
        found = Growth(known.before_choice, {**others, deployment: growth})
        is_cut = found.before_choice != 1 or set(found.for_deployment.values()) != {1}
        state.growth = found if is_cut else None


def _growth_of(attempt: Attempt | None) -> float:
    """Return what an attempt received as a multiple of what it sends; 1 where either is not known as a whole."""
    if attempt is None or attempt.stored or not attempt.counts_all:
        return 1.0
    received, sent = attempt.received_tokens, attempt.sent_tokens
    return max(1.0, received / sent) if received and sent else 1.0


def _grown(answer: Any, growth: Growth) -> Any:
    with failing_open("leaves the usage of an answer as it was billed"):
        return grown(answer, growth.at(litellm_compat.answering_id_of(answer)))
    return answer
