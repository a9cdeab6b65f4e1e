"""What is done with a request where LiteLLM asks: before the Router, before each attempt, and after a failed one."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from ctx_hooks import litellm_compat
from ctx_hooks.decision import NotRetried, changes_of
from ctx_hooks.formats.caller_flags import are_many
from ctx_hooks.formats.hosted_tools import used_hosted_tools
from ctx_hooks.learning.attempts import DeploymentName
from ctx_hooks.litellm_compat.failing_open import failing_open
from ctx_hooks.overflow.message import small_window
from ctx_hooks.policy.resolve import Policies, switched_off
from ctx_hooks.request import target
from ctx_hooks.request.request import Request
from ctx_hooks.runtime.deadline import Deadline
from ctx_hooks.runtime.worker import Workers
from ctx_hooks.serving.attempt_runner import AttemptRunner
from ctx_hooks.serving.recorder import Recorder
from ctx_hooks.serving.reported_usage import ReportedUsage
from ctx_hooks.telemetry.headers import of_ignored

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from ctx_hooks.litellm_compat import Call
    from ctx_hooks.policy.settings import Mode, Settings
    from ctx_hooks.request.target import Target


class RequestFlow:
    """Takes requests through policy, decision and record; it raises nothing but what their callers are to see.

    Attributes:
        policies: the settings, resolved for each caller.
        runner: what decides about attempts, and learns.
        running: the requests that run.
        recorder: what is told of them.
        usage: what clients see of the bill.
    """

    def __init__(self, settings: Settings) -> None:
        self.policies = Policies(settings)
        self.runner = AttemptRunner(litellm_compat.shared_cache, self.fitted_before_choice)
        self.running = self.runner.running
        self.recorder = Recorder(self.running)
        self.usage = ReportedUsage(self.running)
        self._workers = Workers()

    async def arranged(self, request: Request) -> dict[str, Any]:
        """Return a request with its retries arranged, and fitted where the Router would refuse it itself."""
        group = target.of_group(request.call, self.policies)
        fields = litellm_compat.without_request_key(request.fields)
        if not group.policy.enabled:
            return fields
        fields = litellm_compat.with_request_id(fields)
        if not group.policy.enforces:
            return fields
        self.running.open(litellm_compat.Call(fields).request_id).headers |= of_ignored(group.ignored)
        if group.window.tokens < group.policy.block_below_tokens:
            raise litellm_compat.refusal(small_window(group.window.tokens, group.policy.block_below_tokens))
        fields = await self.runner.addons.received(replace(request, fields=fields), group.policy)
        arranged = litellm_compat.arrange_rescue(fields, group.policy.rescue_attempts)
        return await self._fitted_before_choice(replace(request, fields=arranged), group)

    async def fitted_before_choice(self, request: Request) -> dict[str, Any]:
        """Return a further request of an add-on, fitted where the Router would refuse it itself."""
        return await self._fitted_before_choice(request, target.of_group(request.call, self.policies))

    async def _fitted_before_choice(self, request: Request, group: Target) -> dict[str, Any]:
        """Return a request fitted to its group where the Router would refuse it before it chooses a deployment."""
        if not litellm_compat.checks_before_deployment():
            return dict(request.fields)
        request_id = request.call.request_id
        fitted = await self._fitted(request, replace(group, request_id=request_id, checked=True))
        self.usage.note_fitted_before_choice(request_id)
        self.recorder.fitted_before_choice(request_id)
        return fitted

    async def whole(self, fields: Mapping[str, Any], answer: Any) -> Any:
        """Return an answer as the client is to see it; raise what a further call raises where it is all there is."""
        return await self.runner.addons.whole(fields, self.usage.whole(fields, answer))

    def streamed(self, fields: Mapping[str, Any], stream: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """Return a stream as the client is to see it."""
        return self.runner.addons.streamed(fields, self.usage.streamed(fields, stream))

    async def fitted(self, request: Request, to: Target) -> dict[str, Any]:
        """Return the arguments of an attempt as they are to be sent; raise what was refused where nothing is to be."""
        sent = await self._fitted(request, to)
        if not to.policy.enforces:
            return sent
        return {**sent, **await self._short(replace(request, fields=sent), Request.without_flags)}

    async def _fitted(self, request: Request, to: Target) -> dict[str, Any]:
        """Return the same, with the caller's flags: a request that is fitted before the choice is fitted once more."""
        if not to.policy.enabled:
            return dict(request.fields)
        to = self.runner.numbered(to)
        decision = await self.runner.decide(request, to)
        attempt = self.runner.last(to)
        self.recorder.decided(request, to, decision, attempt)
        sent = litellm_compat.with_forwarded_metadata(request.call)
        if not to.policy.enforces:
            return sent
        self.usage.note(to, decision, attempt)
        if isinstance(decision, NotRetried):
            raise litellm_compat.not_retried(attempt.refusal if attempt is not None else "", sent)
        sent |= changes_of(decision)
        return await self.runner.addons.sent(replace(request, fields=sent), to)

    async def _short(self, request: Request, work: Callable[[Request], dict[str, Any]]) -> dict[str, Any]:
        """Do work that is short for a message, in a thread where there are many of them.

        It has threads of its own: nobody waits for another's compression.
        """
        return await self._workers.run(partial(work, request), Deadline()) if are_many(request.items) else work(request)

    async def answered(self, logged: Mapping[str, Any], result: Any) -> None:
        """Learn from an answer that LiteLLM is about to log, and record it there and for all who listen.

        Args:
            logged: LiteLLM's record of the call; what it says of the plugin is changed in place.
            result: what LiteLLM logs as the answer.
        """
        answer = litellm_compat.logged_answer(logged, result)
        if answer is None:
            return
        call = litellm_compat.Call(logged)
        usage, stored = litellm_compat.billed_usage_of(logged, answer), litellm_compat.stored_response_of(answer)
        name = DeploymentName(*call.named_deployment)
        answered = await self.runner.answered(
            call.request_id, usage, stored, name, used_hosted_tools=used_hosted_tools(answer)
        )
        if answered is not None:
            self.recorder.answered(call.request_id, answered, logged)
        self.running.end(call.request_id)

    def mode(self, call: Call) -> Mode:
        """Return the mode that holds for an attempt; what goes wrong here leaves the attempt to LiteLLM."""
        with failing_open("leaves an error as it is"):
            if litellm_compat.passed_pre_call_hook(call) and not switched_off():
                return target.of_attempt(call, self.policies, 0).policy.mode
        return "off"

    async def note_failure(self, fields: Mapping[str, Any], error: Exception) -> bool:
        """Note an attempt's failure, once, and return whether it is an overflow that the plugin handles."""
        call = litellm_compat.Call(fields)
        mode = self.mode(call)
        overflow = litellm_compat.overflow_of(error) if mode != "off" else None
        name = DeploymentName(*call.named_deployment)
        noted = await self.runner.failed(call.request_id, overflow, litellm_compat.text_of(error), name)
        if noted is not None:
            self.usage.failed(call.request_id, noted.deployment)
            if overflow is not None:
                self.recorder.refused(call, overflow)
        handled = overflow is not None and mode == "enforce"
        if handled:
            litellm_compat.spare_deployment(fields)
        return handled
