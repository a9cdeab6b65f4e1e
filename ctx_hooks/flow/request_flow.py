"""A request from its first hook to its end: before the Router's choice, before and after each attempt, and at the end."""

import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from ctx_hooks.attempts import target
from ctx_hooks.attempts.attempt import Attempt
from ctx_hooks.attempts.learned import Learned
from ctx_hooks.attempts.request import Request, format_of, request_of
from ctx_hooks.attempts.target import Target
from ctx_hooks.flow.addons import Addons, Core
from ctx_hooks.flow.deciding import Deciding
from ctx_hooks.flow.decision import LeftToFallback, NotRetried
from ctx_hooks.flow.final_error import CODE, readable_error, small_window_error
from ctx_hooks.flow.recorder import Recorder
from ctx_hooks.flow.running import Running
from ctx_hooks.formats import RESPONSES
from ctx_hooks.litellm_compat.call import Call, DeploymentName, passed_pre_call_hook, request_id_of, with_id_of
from ctx_hooks.litellm_compat.deployments import checks_before_deployment, compacts_itself, shared_cache
from ctx_hooks.litellm_compat.errors import (
    as_overflow,
    failing_open,
    note_fault,
    overflow_of,
    refusal,
    text_of,
    worded_error,
)
from ctx_hooks.litellm_compat.logged import Answer, answer_of, without_request_key
from ctx_hooks.litellm_compat.rescue import arrange_rescue, fallback_groups, hide_retries, retry_of, spare_deployment
from ctx_hooks.overflow.recognise import Overflow, misses_reasoning
from ctx_hooks.policy.resolve import Policies, switched_off
from ctx_hooks.policy.settings import Mode, Settings
from ctx_hooks.runtime.deadline import Deadline, Timings
from ctx_hooks.runtime.worker import pool
from ctx_hooks.store.shared_store import SharedStore
from ctx_hooks.telemetry.events import FaultEvent, Outcome
from ctx_hooks.telemetry.headers import of_ignored, of_unrecorded
from ctx_hooks.telemetry.listeners import emit
from ctx_hooks.tokens.units import ProviderTokens

COMPACTION_ROUTE = "acompact_responses"
"""LiteLLM's call type of `/v1/responses/compact`."""


class RequestFlow:
    """The work of each hook on a request; it raises only errors that the hooks' callers should see."""

    def __init__(self, settings: Settings | None = None, shared: Callable[[], Any] = shared_cache) -> None:
        store = SharedStore(shared, lambda: emit(FaultEvent("fault", time.time(), "goes on without Redis")))
        self.policies = Policies(settings or Settings())
        self.running, self.recorder = Running(), Recorder()
        self.learned = Learned(store)
        self.addons = Addons(Core(store, self.running, self.fitted_before_choice))
        self.deciding = Deciding(self.running, self.learned, self.addons)

    async def before_choice(self, request: Request) -> dict[str, Any]:
        """Return a request with its retries configured, and fitted if the Router itself would refuse it."""
        request.call.renew_id()
        group = target.of_group(request.call, self.policies)
        if group.ignored:
            self.recorder.ignored(request.call, group)
        if group.policy.mode == "off":
            return without_request_key(request.fields)
        fields = without_request_key(with_id_of(request.call))
        if group.policy.addon_names:
            fields = dict((await self.addons.begun(request.with_fields(fields), group)).fields)
        first = group.policy.fallbacks == "first"
        state = self.running.open(group.request_id)
        state.requested, state.fallbacks = group, fallback_groups(fields) if first else ()
        if group.policy.mode == "observe":
            return fields
        state.awaits_attempt = True
        if group.ignored:
            state.headers |= of_ignored(group.ignored)
        if group.window.tokens < (group.policy.block_below_tokens or 0):
            raise refusal(small_window_error(group.window.tokens, group.policy))
        fields = arrange_rescue(fields, group.policy.rescue_attempts, fallbacks_first=first)
        return await self.fitted_before_choice(request.with_fields(fields), group) if checks_before_deployment() else fields

    async def before_compaction(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Return a request on the route for compaction: unchanged unless an add-on answers it."""
        request = Request(RESPONSES, fields)
        group = target.of_group(request.call, self.policies)
        if group.policy.mode != "enforce" or not group.policy.compaction_api or compacts_itself(group.group):
            return dict(fields)
        return await self.before_choice(request)

    async def fitted_before_choice(self, request: Request, group: Target | None = None) -> dict[str, Any]:
        """Return a request fitted to its group, if the Router would refuse it before it chooses a deployment."""
        if not checks_before_deployment():
            return dict(request.fields)
        to = replace(group or target.of_group(request.call, self.policies), checked=True)
        fitted = await self.before_attempt(request, to)
        state = self.running.of(to.request_id)
        if state.decided is not None and (attempt := state.attempts.last()) is not None:
            state.before_choice = state.decided, attempt
        return fitted

    async def turn_of(self, fields: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
        """Return the fields of a turn on a WebSocket with what add-ons change, and whether an add-on answers it.

        Such a turn passes neither the pre-call hook nor the Router.
        """
        if (request := request_of("aresponses", fields)) is None:
            return dict(fields), False
        group = target.of_group(request.call, self.policies, request.call.model_group)
        if group.policy.mode == "off" or not group.policy.addon_names:
            return dict(fields), False
        request.call.renew_id()
        begun = await self.addons.begun(request.with_fields(with_id_of(request.call)), group)
        sent, is_answered = dict(begun.fields), bool(self.running.of(begun.call.request_id).addons)
        if not is_answered:
            sent["litellm_metadata"] = fields.get("litellm_metadata")
        return sent, is_answered

    async def before_attempt(self, request: Request, to: Target) -> dict[str, Any]:
        """Begin an attempt, decide about it, record the decision, and return the arguments to send.

        Raises:
            ContextWindowExceededError: a retry that would repeat the refused request, or a request for a fallback.
        """
        if to.policy.mode == "off":
            return dict(request.fields)
        state = self.running.open(to.request_id)
        to = state.numbered(to, continues=request.continues_stored_history)
        timings = Timings()
        if to.defers and to.group == state.group:
            options = (target.of_group(request.call, self.policies, group) for group in state.fallbacks)
            decision = await self.deciding.decide_before(request, to, options, timings)
            state.is_left |= isinstance(decision, LeftToFallback)
        else:  # what another group does not hold goes to the next one: retries on the requested group follow
            if to.defers and to.policy.mode != "enforce":
                to = replace(to, defers=False)
            decision = await self.deciding.decide(request, to, timings)
        attempt = state.attempts.last(to)
        try:
            self.recorder.decided(state, request, to, decision, attempt, timings)
        except Exception as error:  # noqa: BLE001 - it is logged there; what is sent does not depend on the record
            note_fault("keeps no record of a decision", error)
            changed: Outcome = "retried" if to.attempt else "compressed"
            state.headers |= of_unrecorded(changed if decision.changes else "fits", f"failed: {type(error).__name__}")
        sent = dict(request.call.fields)
        if to.policy.mode == "observe":
            return sent
        if isinstance(decision, LeftToFallback):
            if to.checked:
                return sent  # the Router refuses it, and asks the fallback
            raise as_overflow(f"The request exceeds the window of {to.model}; a configured fallback comes first.", sent)
        if isinstance(decision, NotRetried):
            raise as_overflow(attempt.refusal if attempt is not None else "", sent)
        sent |= decision.changes
        with failing_open("leaves the caller's flags in the messages"):
            if not to.checked and request.bound.may_have_flags:  # what is fitted once more keeps the flags
                return await pool.run(to.tenant, partial(request.without_flags, sent), Deadline())
        return sent

    def target_of(self, call: Call, attempt: int) -> Target:
        """Return the target of an attempt whose deployment the Router has chosen."""
        return target.of_attempt(call, self.policies, attempt, self.running.of(call.request_id).requested)

    def mode(self, call: Call) -> Mode:
        """Return the mode that applies to an attempt; a failure here leaves the attempt to LiteLLM."""
        with failing_open("leaves an error as it is"):
            attempt = self.running.of(call.request_id).attempts.at(call.named_deployment)
            if passed_pre_call_hook(call) and not switched_off():
                return (self.target_of(call, 0) if attempt is None else attempt.to).policy.mode
        return "off"

    def note_fault(self, fields: Mapping[str, Any]) -> None:
        """Note that the plugin has failed: the headers say so, unless the request is changed later."""
        if self.mode(Call(fields)) == "enforce":
            self.running.of(request_id_of(fields)).headers |= of_unrecorded("failed_open")

    async def called(self, fields: Mapping[str, Any], call: Awaitable[Any]) -> Any:
        """Return the end of the Router's `call` of a request as the add-ons pass it on; raises its error."""
        return await self.addons.called(self.running.of(request_id_of(fields)), fields, call)

    async def note_begun(self, fields: Mapping[str, Any]) -> None:
        """Learn from the refusal before a retry whose answer has begun: the retry kept to what that refusal claims."""
        attempt = self.running.of((call := Call(fields)).request_id).attempts.at(call.named_deployment)
        if attempt is not None and not attempt.failed:
            await self.learned.from_retry(attempt)

    def estimated_tokens(self, logged: Mapping[str, Any]) -> ProviderTokens | None:
        """Note that a logged answer states no usage; return the estimate of its input, None if LiteLLM's can stay."""
        with failing_open("leaves the estimate to LiteLLM"):
            attempt = self.running.of(request_id_of(logged)).attempts.without_usage()
            if attempt is not None and attempt.to.policy.mode == "enforce":
                return attempt.sent_provider_tokens or None
        return None

    async def after_answer(self, logged: Mapping[str, Any], result: Any) -> None:
        """Learn from an answer before LiteLLM logs it; record it for all listeners and, in place, in `logged`."""
        answer = answer_of(logged, result)
        if answer is None:
            return
        call = Call(logged)
        answered = await self.answered(call.request_id, answer, call.named_deployment)
        if answered is not None:
            self.recorder.answered(self.running.of(call.request_id), *answered, call)
        self.running.end(call.request_id)

    async def answered(
        self, request_id: str, answer: Answer, name: DeploymentName | None = None
    ) -> tuple[Attempt, Answer] | None:
        """Learn from an answer, forget its attempt, and return it if known, with the answer without a guessed bill."""
        attempt = self.running.of(request_id).attempts.done(name)
        if attempt is None or attempt.failed:
            return None  # after a failed attempt, a model for which the plugin is off has answered
        if not attempt.states_usage:
            answer = answer._replace(billed=None)
        billed = answer.billed
        if billed is not None:
            # Text that a hosted tool has read is in the bill, and was not counted here.
            is_more = answer.used_hosted_tools
            counted = replace(attempt, uncounted=attempt.uncounted._replace(holds_any=True)) if is_more else attempt
            await self.learned.from_answer(counted, billed, cut_short=answer.cut_short)
        if attempt.to.policy.addon_names:
            self.addons.ended(attempt, billed)
        return attempt, answer

    async def note_failure(self, fields: Mapping[str, Any], error: Exception, *, is_sent: bool = True) -> bool:
        """Note an attempt's failure, once, and return whether it is an overflow that the plugin handles."""
        call = Call(fields)
        mode, state = self.mode(call), self.running.of(call.request_id)
        overflow = overflow_of(error) if is_sent and mode != "off" else None
        if overflow is not None:
            overflow = await pool.run(call.tenant, partial(overflow_of, error, call.sent_by_caller), Deadline())
        noted = await self.failed(call.request_id, overflow, text_of(error), call.named_deployment) if is_sent else None
        if overflow is None and retry_of(fields)[0]:
            state.retry_error = error
        if noted and overflow is None and mode == "enforce":
            with failing_open("keeps no record of a refusal"):
                self.recorder.rejected(state, call, getattr(error, "status_code", 0))
        if noted and overflow:
            state.retry_error = None
            with failing_open("keeps no record of a refusal"):
                self.recorder.refused(state, call, overflow)
            if mode == "observe" and noted.sent_tokens is None:  # no retry counts it later
                await self.deciding.counted(Request(noted.format, fields), noted.to, noted, noted.most_tokens)
        handled = overflow is not None and mode == "enforce"
        if handled:
            spare_deployment(fields)
        return handled

    async def failed(
        self, request_id: str, overflow: Overflow | None, refusal: str = "", name: DeploymentName | None = None
    ) -> Attempt | None:
        """Note that an attempt failed, and learn from it; return the attempt, None if this was known."""
        attempt = self.running.of(request_id).attempts.failed(overflow, refusal, name)
        if attempt is not None:
            if attempt.to.policy.addon_names:
                self.addons.ended(attempt, None)
            with failing_open("learns nothing from a refusal"):
                await self.learned.from_refusal(attempt)
        return attempt

    async def is_made_again(self, fields: Mapping[str, Any], error: Exception) -> bool:
        """Return whether a failed attempt is repeated, because the reasoning that it lacks stays from now on."""
        attempt = self.running.of((call := Call(fields)).request_id).attempts.at(call.named_deployment)
        if attempt is None or not misses_reasoning(error):
            return False
        await self.learned.from_missing_reasoning(attempt)
        return attempt.is_shortened and not attempt.limits.wants_reasoning

    def end_of(self, fields: Mapping[str, Any], end: Any) -> Any:
        """Return the answer or the error with which the Router ends a request as its client sees it."""
        state = self.running.of(request_id_of(fields))
        if isinstance(end, Exception):
            return state.retry_error or end  # if all fallbacks fail, the Router raises the first error, an overflow
        if state.other_fallbacks is not None:
            hide_retries(fields, end, state.other_fallbacks)
        return end

    def after_failure(self, fields: Mapping[str, Any], error: Exception) -> Exception | None:
        """Note that a request finally failed; return the error for its caller, None to leave it unchanged."""
        call = Call(fields)
        state = self.running.of(call.request_id)
        attempt, overflow = state.attempts.last(), overflow_of(error)
        if overflow is not None:
            self.recorder.failed(state, call)
        if not state.attempts.are_running:
            state.awaited_by = frozenset()  # no add-on sees an answer
        self.running.end(call.request_id)
        import litellm  # noqa: PLC0415 - slow to load, and not for `ctx-hooks explain`

        if not isinstance(error, litellm.ContextWindowExceededError):
            return None
        if attempt is not None and attempt.failed and attempt.overflow is None:
            return None  # LiteLLM takes the caller's own words for an overflow
        policy = (target.of_group(call, self.policies) if attempt is None else attempt.to).policy
        if policy.mode != "enforce" or not passed_pre_call_hook(call):
            return None
        fmt = format_of(fields)
        said = readable_error(fmt, attempt, (attempt and attempt.overflow) or overflow, policy)
        return worded_error(error, said, CODE, fmt)
