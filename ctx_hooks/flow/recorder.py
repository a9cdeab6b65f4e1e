"""Records every decision, overflow and answer: as events, in the response headers, and in what LiteLLM logs."""

import re
import time
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from ctx_hooks.attempts.attempt import Attempt
from ctx_hooks.attempts.request import Request
from ctx_hooks.attempts.target import Target
from ctx_hooks.compaction.plain_cut import NAME as LAST_RESORT
from ctx_hooks.flow.decision import TOOK_TOO_LONG, Decision, LeftToFallback, NotRetried, ShownAgain, Untouched, outcome_of
from ctx_hooks.flow.running import RequestState
from ctx_hooks.litellm_compat.call import Call
from ctx_hooks.litellm_compat.logged import Answer, write_figures, write_notes
from ctx_hooks.overflow.recognise import Overflow
from ctx_hooks.policy.resolve import LONGEST_NAME_CHARS
from ctx_hooks.runtime.warnings import one_line
from ctx_hooks.telemetry.events import (
    CHANGED,
    UNCHANGED,
    AnswerEvent,
    CallNames,
    DecisionEvent,
    FailureEvent,
    IgnoredEvent,
    OverflowEvent,
    RejectionEvent,
    Trigger,
)
from ctx_hooks.telemetry.headers import of_failed, with_decision
from ctx_hooks.telemetry.listeners import Guard, emit
from ctx_hooks.telemetry.litellm_sinks import figures_of, notes_of, record_on
from ctx_hooks.telemetry.savings import BEYOND_WINDOW, NOTHING, UNKNOWN, Saved, saved_by, would_be_saved
from ctx_hooks.tokens.units import LocalTokens, ProviderTokens, to_provider
from ctx_hooks.tokens.usage import Billed

LONGEST_CLIENT_CHARS = 60
"""The first product of a user agent with its version, as `claude-cli/2.1.197`; platform and build follow it."""
INVALID = (400, 422)
"""The statuses of a request that a provider does not accept as it is."""


class Recorder:
    """Reports the handling of running requests to listeners, callers and LiteLLM's loggers. It never modifies requests."""

    def __init__(self) -> None:
        self._spans = Guard("OpenTelemetry")

    def decided(
        self,
        state: RequestState,
        request: Request,
        to: Target,
        decision: Decision,
        attempt: Attempt | None,
        milliseconds: Mapping[str, float] = MappingProxyType({}),
    ) -> None:
        """Record the decision about an attempt, with the time of each phase."""
        if isinstance(decision, ShownAgain):
            return  # its decision is already recorded, and its answer refers to it
        limits = request.wire.output_limits(decision.changes)
        # What a fallback ends in is counted for the group that the client asked for.
        names = names_of(request.call, to, state.group)
        event = _decision_event(request, to, decision, attempt, names, limits, milliseconds)
        if isinstance(decision, LeftToFallback) and to.policy.mode == "enforce":
            state.headers = with_decision(state.headers, event, limits, is_changed=True)
            return  # nothing is sent: the attempt at the fallback has the record
        if event.decision == "fits" and to.group != state.group and (state.is_left or state.attempts.overflowed):
            event = replace(event, decision="fallback")
        if state.before_choice is not None:
            first, _ = state.before_choice
            if isinstance(decision, Untouched):  # what is sent is what was fitted before the choice
                state.decided = replace(first, call=event.call)
                return
            event = _of_whole(event, first)
        if isinstance(decision, NotRetried):
            if state.is_given_up:
                return  # the Router calls once for each remaining retry; the request's last attempt stays the sent one
            state.is_given_up = True
        else:
            state.decided = event
        if to.policy.mode == "enforce":
            if not isinstance(decision, NotRetried):  # the record of the attempt before it has the sent request
                is_changed = not isinstance(decision, Untouched) or event.decision == "fallback"
                state.headers = with_decision(state.headers, event, limits, is_changed=is_changed)
            write_figures(request.call, figures_of(event, limits))
        self._tell(request.call, event)

    def ignored(self, call: Call, to: Target) -> None:
        """Record the ignored settings of a request, which its target lists."""
        scopes = {re.split("[.:]", line, maxsplit=1)[0]: 1 for line in to.ignored}
        emit(IgnoredEvent("settings_ignored", time.time(), names_of(call, to), scopes))

    def refused(self, state: RequestState, call: Call, overflow: Overflow) -> None:
        """Record that the provider refused a request's last attempt as too long."""
        decided = state.decided
        if decided is not None:
            said = (overflow.kind, overflow.limit_tokens, overflow.input_tokens)
            self._tell(call, OverflowEvent("overflow", time.time(), decided.call, decided.mode, decided.attempt, *said))

    def rejected(self, state: RequestState, call: Call, status: int) -> None:
        """Record that the provider refused a request's last attempt with a status that names no size, if it was changed."""
        decided = state.decided
        if decided is not None and decided.decision in CHANGED and status in INVALID:
            event = RejectionEvent("rejection", time.time(), decided.call, decided.mode, decided.decision, str(status))
            self._tell(call, event)

    def failed(self, state: RequestState, call: Call) -> None:
        """Record that a request ended in a refusal as too long."""
        decided, state.decided = state.decided, None
        if decided is not None:
            event = FailureEvent("failure", time.time(), decided.call, decided.mode, decided.attempt + 1, decided.decision)
            if decided.mode == "enforce":
                state.headers = of_failed(state.headers, event)
            self._tell(call, event)

    def answered(self, state: RequestState, attempt: Attempt, answer: Answer, logged: Call) -> None:
        """Record an answer; `logged` is LiteLLM's record of it."""
        first = state.before_choice
        decided, state.decided = state.decided, None
        if decided is not None:
            if first is not None:
                before = first[1]
                rewrites = attempt.rewrites or before.rewrites
                attempt = replace(attempt, seen_tokens=before.seen_tokens, rewrites=rewrites, rereads=before.rereads)
            event = answer_event(decided, attempt, answer)
            emit(event)
            write_notes(logged, *notes_of(event, attempt.to.prices))

    def _tell(self, call: Call, event: DecisionEvent | OverflowEvent | RejectionEvent | FailureEvent) -> None:
        if call.span is not None:
            self._spans.run(record_on, call.span, event)
        emit(event)


def names_of(call: Call, to: Target, group: str = "") -> CallNames:
    """Return the names of a request's owner and target, each in one bounded line."""
    client = call.headers.get("user-agent", "").split(" ", 1)[0]
    return CallNames(
        request_id=_name(to.request_id),
        call_id=_name(str(call.fields.get("litellm_call_id") or "")),
        model_group=_name(group or call.model_group),
        deployment=_name(to.deployment),
        model=_name(to.model),
        route=_name(call.call_type),
        client=one_line(client, LONGEST_CLIENT_CHARS),
        session=call.session_digits,
        **{field: _name(name) for field, name in call.account.items()},
    )


def _name(text: str) -> str:
    return one_line(text, LONGEST_NAME_CHARS)


def _of_whole(event: DecisionEvent, first: DecisionEvent) -> DecisionEvent:
    """Return the record of a decision about a fitted request with the size of the client's own."""
    if first.local_tokens_before is None:
        return event  # its size was enough before the choice: this decision is about the whole request
    return replace(
        event,
        local_tokens_before=first.local_tokens_before,
        provider_tokens_before=first.provider_tokens_before,
        steps=(*first.steps, *event.steps),
    )


def _decision_event(
    request: Request,
    to: Target,
    decision: Decision,
    attempt: Attempt | None,
    names: CallNames,
    limits: Mapping[str, int],
    milliseconds: Mapping[str, float],
) -> DecisionEvent:
    """Return the record of a decision, with the names of its call and the output limits that it sets."""
    before, after, factor, window, figures = None, None, 1.0, to.window, decision.figures
    if attempt is not None:
        before, factor, window = attempt.received_tokens, attempt.limits.factor, attempt.limits.window
        after = attempt.sent_tokens if to.policy.mode == "enforce" else attempt.decided_tokens
    sizes = None if before is None else to_provider(before, factor), None if after is None else to_provider(after, factor)
    if figures is not None and not isinstance(decision, NotRetried):
        sizes = figures.tokens_before, figures.tokens_after
    requested = request.max_output_tokens
    return DecisionEvent(
        name="decision",
        time_seconds=time.time(),
        trigger=_trigger(to.attempt, decision),
        call=names,
        mode=to.policy.mode,
        decision=outcome_of(decision, to.attempt, request.wire),
        reason=decision.reason,
        attempt=to.attempt,
        format=request.format,
        local_tokens_before=before,
        local_tokens_after=after,
        provider_tokens_before=sizes[0],
        provider_tokens_after=sizes[1],
        budget_tokens=None if figures is None else figures.budget_tokens,
        window_tokens=window.tokens,
        window_source=window.source,
        factor=factor,
        requested_output_tokens=requested,
        sent_output_tokens=next(map(ProviderTokens, limits.values()), requested),
        steps=tuple(replace(s, tokens_saved=to_provider(LocalTokens(s.tokens_saved), factor)) for s in decision.steps),
        milliseconds=dict(milliseconds),
        policy=to.origins,
        timed_out=decision.reason == TOOK_TOO_LONG,
    )


def _trigger(number: int, decision: Decision) -> Trigger:
    """Return the trigger of a decision that changes the request, "none" for any other."""
    if number:
        return "overflow"
    if isinstance(decision, (Untouched, NotRetried)):
        return "none"
    if decision.figures is None and not isinstance(decision, LeftToFallback):
        return "output"
    return "timeout" if any(step.name == LAST_RESORT for step in decision.steps) else "budget"


def answer_event(decided: DecisionEvent, attempt: Attempt, answer: Answer) -> AnswerEvent:
    """Return the record of an answer; the arguments are those of `Recorder.answered`, with the decision about it."""
    saved = _saved(decided, attempt, answer.billed)
    return AnswerEvent(
        name="answer",
        time_seconds=time.time(),
        call=decided.call,
        mode=decided.mode,
        decision=decided.decision,
        attempts=attempt.to.attempt + 1,
        billed=answer.billed,
        beyond_window=saved.beyond_window,
        provider_tokens_saved=saved.tokens,
        dollars_saved=saved.dollars,
        rereads={_name(tool): times for tool, times in attempt.rereads.items()},
    )


def _saved(decided: DecisionEvent, attempt: Attempt, billed: Billed | None) -> Saved:
    before, after = decided.local_tokens_before, decided.local_tokens_after
    if attempt.to.attempt:
        return BEYOND_WINDOW
    if decided.decision in UNCHANGED or before is None or before == after:
        return NOTHING
    if (decided.provider_tokens_before or 0) > decided.window_tokens and attempt.to.policy.mode == "enforce":
        return BEYOND_WINDOW
    if billed is None or after is None:
        return UNKNOWN
    saved = saved_by if attempt.to.policy.mode == "enforce" else would_be_saved
    return saved(before, attempt.seen_tokens, after, billed, attempt.to.prices, rewrites=attempt.rewrites)
