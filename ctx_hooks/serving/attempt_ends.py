"""How attempts end: noted in the request's state, learned from, and recorded."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ctx_hooks import litellm_compat
from ctx_hooks.learning.stored_histories import stored_tokens_after
from ctx_hooks.policy.resolve import switched_off
from ctx_hooks.request import target
from ctx_hooks.request.request import format_of
from ctx_hooks.serving import reported_usage
from ctx_hooks.serving.final_error import CODE, readable_error
from ctx_hooks.tokens.units import ProviderTokens
from ctx_hooks.tokens.usage import billed_of, used_hosted_tools

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ctx_hooks.learning.attempts import Attempt
    from ctx_hooks.litellm_compat.call import Call, DeploymentName
    from ctx_hooks.overflow.recognise import Overflow
    from ctx_hooks.policy.settings import Mode
    from ctx_hooks.serving.request_flow import RequestFlow
    from ctx_hooks.tokens.usage import Billed


@dataclass(frozen=True, slots=True, eq=False)
class AttemptEnds:
    """Notes how the attempts and requests of a flow end, and learns from it."""

    flow: RequestFlow

    def mode(self, call: Call) -> Mode:
        """Return the mode that holds for an attempt; what goes wrong here leaves the attempt to LiteLLM."""
        with litellm_compat.failing_open("leaves an error as it is"):
            if litellm_compat.passed_pre_call_hook(call) and not switched_off():
                attempt = self.flow.running.of(call.request_id).attempts.at(call.named_deployment)
                to = target.of_attempt(call, self.flow.policies, 0) if attempt is None else attempt.to
                return to.policy.mode
        return "off"

    async def note_failure(self, fields: Mapping[str, Any], error: Exception) -> bool:
        """Note an attempt's failure, once, and return whether it is an overflow that the plugin handles."""
        call = litellm_compat.Call(fields)
        mode, state = self.mode(call), self.flow.running.of(call.request_id)
        overflow = litellm_compat.overflow_of(error) if mode != "off" else None
        noted = await self.failed(call.request_id, overflow, litellm_compat.text_of(error), call.named_deployment)
        if noted is not None:
            reported_usage.note_failed(state, noted.to.deployment)
            if overflow is not None:
                self.flow.recorder.refused(state, call, overflow)
        handled = overflow is not None and mode == "enforce"
        if handled:
            litellm_compat.spare_deployment(fields)
        return handled

    async def is_made_again(self, fields: Mapping[str, Any], error: Exception) -> bool:
        """Return whether a failed attempt is made again as it is, since an add-on leaves out what the provider refused."""
        call = litellm_compat.Call(fields)
        attempts = self.flow.running.of(call.request_id).attempts
        attempt = attempts.at(call.named_deployment)
        if attempt is None or not await self.flow.addons.refused(attempt, error):
            return False
        if attempt.known.previous is not None:  # of a retry, what the one before it was refused for still holds
            attempts.sent(attempt.known.previous)
        return True

    async def failed(
        self, request_id: str, overflow: Overflow | None, refusal: str = "", name: DeploymentName | None = None
    ) -> Attempt | None:
        """Note that an attempt failed, and learn from its overflow; return the attempt, None where that was known."""
        attempt = self.flow.running.of(request_id).attempts.failed(overflow, refusal, name)
        if attempt is not None:
            if attempt.to.policy.addon_names:
                self.flow.addons.ended(attempt, None)
            await self.flow.learned.from_refusal(attempt)
        return attempt

    def estimated_tokens(self, logged: Mapping[str, Any]) -> ProviderTokens | None:
        """Note that an answer, whose call LiteLLM has `logged`, states no usage; return the estimate of what was sent.

        None where it was not counted, or where nothing is to be changed.
        """
        with litellm_compat.failing_open("leaves the estimate to LiteLLM"):
            attempt = self.flow.running.of(litellm_compat.Call(logged).request_id).attempts.without_usage()
            if attempt is not None and attempt.to.policy.mode == "enforce":
                return attempt.sent_provider_tokens or None
        return None

    async def after_answer(self, logged: Mapping[str, Any], result: Any) -> None:
        """Learn from an answer that LiteLLM is about to log, and record it for all who listen and, in place, in `logged`."""
        answer = litellm_compat.logged_answer(logged, result)
        if answer is None:
            return
        call = litellm_compat.Call(logged)
        usage, stored = litellm_compat.billed_usage_of(logged, answer), litellm_compat.stored_response_of(answer)
        name = call.named_deployment
        answered = await self.answered(call.request_id, usage, stored, name, used_hosted_tools=used_hosted_tools(answer))
        if answered is not None:
            self.flow.recorder.answered(self.flow.running.of(call.request_id), *answered, logged)
        self.flow.running.end(call.request_id)

    async def answered(
        self,
        request_id: str,
        usage: Any,
        response_id: str = "",
        name: DeploymentName | None = None,
        *,
        used_hosted_tools: bool = False,
    ) -> tuple[Attempt, Billed | None] | None:
        """Learn from an answer, and forget its attempt; return the attempt, with the bill if there is one, if it is known.

        Args:
            request_id: the request's id in this process.
            usage: the usage record of the answer, None where it has none.
            response_id: the provider's id of an answer that it keeps, "" for any other.
            name: of the deployment that has answered; by default the deployment of the newest attempt.
            used_hosted_tools: whether the bill holds what a tool of the provider's has read.
        """
        attempt = self.flow.running.of(request_id).attempts.done(name)
        if attempt is None or attempt.failed:
            return None  # after a failed attempt it comes from a model that the plugin is off for
        billed = billed_of(usage) if attempt.states_usage else None
        if billed is not None:
            if response_id:
                whole_tokens = ProviderTokens(billed.input_tokens + billed.output_tokens)
                await self.flow.stored.note(attempt.to.tenant, response_id, stored_tokens_after(attempt, whole_tokens))
            counted = replace(attempt, counts_all=False) if used_hosted_tools else attempt
            await self.flow.learned.from_answer(counted, billed)
        if attempt.to.policy.addon_names:
            self.flow.addons.ended(attempt, billed)
        return attempt, billed

    def after_failure(self, fields: Mapping[str, Any], error: Exception) -> Exception | None:
        """Note that a request has failed in the end; return the error as its caller reads it, None to leave it as it is."""
        call = litellm_compat.Call(fields)
        state = self.flow.running.of(call.request_id)
        attempt, overflow = state.last_attempt, litellm_compat.overflow_of(error)
        if overflow is not None:
            self.flow.recorder.failed(state, call)
        if not state.attempts.are_running:
            state.awaited_by = frozenset()  # no add-on is shown an answer
        self.flow.running.end(call.request_id)
        import litellm  # noqa: PLC0415 - slow to load, and not for `ctx-hooks explain`

        if not isinstance(error, litellm.ContextWindowExceededError):
            return None
        policy = (target.of_group(call, self.flow.policies) if attempt is None else attempt.to).policy
        if policy.mode != "enforce" or not litellm_compat.passed_pre_call_hook(call):
            return None
        fmt, overflow = format_of(fields), (attempt and attempt.overflow) or overflow
        return litellm_compat.worded_error(error, readable_error(fmt, attempt, overflow, policy), CODE, fmt)
