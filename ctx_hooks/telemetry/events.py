"""Events for listeners of other packages: figures, never text."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from ctx_hooks.compaction.pipeline import StepReport
from ctx_hooks.formats import Format
from ctx_hooks.policy.settings import Mode
from ctx_hooks.telemetry.figures import (
    ANSWER_SECONDS,
    CALLER,
    MODEL,
    SECONDS,
    TOKENS,
    TOOL,
    RequestEvent,
    counter,
    deployment_at,
    gauge,
    histogram,
    shown,
)
from ctx_hooks.tokens.budget import Source
from ctx_hooks.tokens.units import LocalTokens, ProviderTokens
from ctx_hooks.tokens.usage import Billed

OF_CALLER = ("mode", CALLER)
OF_MODEL = ("mode", MODEL)
LEARNED = ("kind", deployment_at(("deployment",)))
CHOSEN = (deployment_at(("call.deployment",)),)
ATTEMPTS = counter("attempts", "Attempts that were sent", ("decision", "trigger", *OF_CALLER), unless="failed")
REQUESTS = counter("requests", "Requests by what they ended in, each once", ("decision", *OF_CALLER))
OVERFLOWS = counter("overflows", "Attempts that a provider refused as too long", ("kind", *OF_CALLER))
BEYOND_WINDOW = counter("answers_beyond_window", "Answered requests that exceed the window", OF_CALLER)
SAVED_TOKENS = counter("saved_provider_tokens", "Input tokens that bills were lowered by", OF_CALLER)
SPENT_TOKENS = counter("spent_provider_tokens", "Input tokens that bills were raised by", OF_CALLER, scale=-1.0)
SAVED_DOLLARS = counter("saved_dollars", "Dollars that bills were lowered by", OF_CALLER)
SPENT_DOLLARS = counter("spent_dollars", "Dollars that bills were raised by", OF_CALLER, scale=-1.0)
LIMITS = counter("limits_learned", "Limits that deployments have shown to a tenant", LEARNED)
LIMIT = gauge("learned_limit_tokens", "The limit that was learned last, in provider tokens", LEARNED)
WINDOW = gauge("window_tokens", "The window that was fitted to last", CHOSEN, needs="local_tokens_before")
FACTOR = gauge("provider_tokens_per_local_token", "The newest factor", CHOSEN, needs="local_tokens_before")
SENT = histogram("request_sent_provider_tokens", "Input tokens of a bill", OF_MODEL, part="input_tokens", buckets=TOKENS)
SAVED = histogram(
    "request_saved_provider_tokens", "Input tokens that a bill was lowered by", OF_MODEL, above=0.0, buckets=TOKENS
)
PHASES = histogram("phase_seconds", "Time of a phase of a decision", key="phase", scale=1e-3, buckets=SECONDS)
DECISIONS = histogram(
    "decision_seconds",
    "Time of a decision, which its request waits for",
    (MODEL,),
    part="total",
    scale=1e-3,
    buckets=SECONDS,
)
ANSWERS = histogram("answer_seconds", "Time from a request to the end of its answer", OF_MODEL, buckets=ANSWER_SECONDS)
TIMEOUTS = counter("compression_timeouts", "Attempts that took too long to compress and lost their oldest turns", OF_CALLER)
CACHED = counter(
    "cached_prompt_tokens", "Billed input tokens that a prompt cache served", OF_CALLER, part="cached_tokens", above=None
)
UNCACHED = counter("uncached_prompt_tokens", "All other billed input tokens", OF_CALLER, part="uncached_tokens", above=None)
REREADS = counter("rereads", "Calls made again whose earlier result was removed or shortened", ("mode", TOOL))

Outcome = Literal["fits", "over_budget", "fallback", "output_lowered", "compressed", "retried", "failed", "failed_open"]
"""The outcome of a request, in the same words in every report.

In this order: sent unchanged; sent unchanged although it exceeds its budget, since nothing could be removed; sent unchanged
to a configured fallback, since it is too long for its model; sent with a lower requested output, all else unchanged; sent
with changed messages at the first attempt; answered after at least one refused attempt; refused as too long in the end;
sent unchanged after a fault of the plugin.
"""
UNCHANGED: frozenset[Outcome] = frozenset({"fits", "over_budget"})
"""The outcomes of a request that is sent to its own model as the client sent it."""
Trigger = Literal["none", "budget", "overflow", "output", "timeout"]


@dataclass(frozen=True, slots=True)
class CompactionEvent:
    """A compaction that is about to happen, or has happened. All tokens are estimates in provider tokens.

    Attributes:
        name: "before_compaction" or "after_compaction".
        model: the model whose vocabulary counts.
        format: the format of the request.
        tokens_before: the request as the client sent it.
        budget_tokens: its budget.
        window_tokens: the model's window.
        reserve_tokens: the part of the window that is kept free: the window less the budget.
        usage_fraction: `tokens_before` as a share of the window.
        messages_before: how many messages the client sent.
        attempt: 0 for the first attempt of a request; retries count from 1.
        tokens_after: the sent request; None before.
        messages_touched: how many messages its steps edited, removed or added, once a step; 0 before.
        steps: the steps that changed something; none before.
        request_id: the id that this process has given the request.
        mode: "enforce", or "observe" for one that would happen.
    """

    name: Literal["before_compaction", "after_compaction"]
    model: str
    format: Format
    tokens_before: ProviderTokens
    budget_tokens: ProviderTokens
    window_tokens: ProviderTokens
    reserve_tokens: ProviderTokens
    usage_fraction: float
    messages_before: int
    attempt: int = 0
    tokens_after: ProviderTokens | None = None
    messages_touched: int = 0
    steps: tuple[str, ...] = ()
    request_id: str = ""
    mode: Mode = "enforce"


@dataclass(frozen=True, slots=True)
class LimitEvent:
    """A limit that a deployment has shown to one tenant, beside the window that configuration or LiteLLM state.

    `kind` is "limit", or "output_limit" for the largest output. In provider tokens. `request_id` and `mode` are those of the
    request that showed it.
    """

    name: Literal["limit_learned"]
    deployment: str = field(metadata=shown("log"))
    kind: str = field(metadata=shown("log", LIMITS))
    limit_tokens: ProviderTokens = field(metadata=shown("log", LIMIT))
    window_tokens: ProviderTokens = field(metadata=shown("log"))
    request_id: str = ""
    mode: Mode = "enforce"


@dataclass(frozen=True, slots=True)
class DecisionEvent(RequestEvent):
    """The decision about one attempt, enforced or only observed.

    Attributes:
        mode: "enforce" or "observe"; with "observe" the figures show what would have been done.
        decision: the outcome if this attempt is answered; "failed" for a retry that was not sent.
        reason: the reason in one clause; "" if the figures show it.
        trigger: what led to it: "none", "budget" (more than the request may have), "overflow" (a retry), "output" (less
            output asked for), or "timeout" (a compression takes too long: the oldest turns were dropped instead).
        attempt: 0 for the first attempt of a request; retries count from 1.
        format: the format of the request.
        local_tokens_before: the request as the client sent it; None if an upper bound of its size was enough.
        local_tokens_after: the request as sent; None if not counted.
        provider_tokens_before: the estimate of `local_tokens_before` in provider tokens; None if not counted.
        provider_tokens_after: the estimate of `local_tokens_after`; None if not counted.
        budget_tokens: the request's budget, in provider tokens; None if none was computed.
        window_tokens: the window that the request was fitted to, in provider tokens.
        window_source: its source: "policy", "model_info", "model_map", "learned", "refusal" or "default".
        stated_window_tokens: the window that configuration or LiteLLM state, in provider tokens.
        factor: provider tokens per local token.
        requested_output_tokens: the output that the caller asked for; None for none.
        sent_output_tokens: the output that the attempt asks for; None for none.
        steps: the steps of the newest compaction that changed something, in order; in provider tokens.
        milliseconds: the time of each phase: "total", "known" (learned figures), "counting", "compressing"; the rest of
            "total" is waiting.
        policy: each field of the policy that a scope sets, with that scope.
        timed_out: whether the request took too long to compress, and lost its oldest turns instead.
    """

    name: Literal["decision"]
    mode: Mode = field(metadata=shown("log", "span"))
    decision: Outcome = field(metadata=shown("log", "span", "spend", "header", ATTEMPTS))
    reason: str = field(metadata=shown("log", "span"))
    trigger: Trigger = field(metadata=shown("log", "span"))
    attempt: int = field(metadata=shown("log", "span", "spend"))
    format: Format
    local_tokens_before: LocalTokens | None
    local_tokens_after: LocalTokens | None
    provider_tokens_before: ProviderTokens | None = field(
        metadata=shown("log", "spend", "header", name="tokens_before", span="input_tokens.before")
    )
    provider_tokens_after: ProviderTokens | None = field(
        metadata=shown("log", "spend", "header", name="tokens_after", span="input_tokens.after")
    )
    budget_tokens: ProviderTokens | None = field(metadata=shown("log", "span"))
    window_tokens: ProviderTokens = field(metadata=shown("log", "span", "spend", WINDOW))
    window_source: Source = field(metadata=shown("span"))
    stated_window_tokens: ProviderTokens
    factor: float = field(metadata=shown(FACTOR))
    requested_output_tokens: ProviderTokens | None
    sent_output_tokens: ProviderTokens | None = field(metadata=shown("log", name="output_tokens"))
    steps: tuple[StepReport, ...] = field(metadata=shown("span"))
    milliseconds: Mapping[str, float] = field(metadata=shown("log", PHASES, DECISIONS))
    policy: Mapping[str, str] = field(metadata=shown("spend", "header"))
    timed_out: bool = field(default=False, metadata=shown(TIMEOUTS))


@dataclass(frozen=True, slots=True)
class OverflowEvent(RequestEvent):
    """A provider refused an attempt as too long.

    Attributes:
        mode: "enforce" or "observe".
        attempt: 0 for the first attempt of a request; retries count from 1.
        kind: the subject of the refusal, as `overflow/recognise.py` names it.
        limit_tokens: the limit that the refusal names, in provider tokens; None if it names none.
        refused_tokens: the request size that it names, in provider tokens; None if it names none.
    """

    name: Literal["overflow"]
    mode: Mode
    attempt: int = field(metadata=shown("span"))
    kind: str = field(metadata=shown(OVERFLOWS, span="overflow.kind"))
    limit_tokens: int | None = field(metadata=shown(span="overflow.limit_tokens"))
    refused_tokens: int | None = field(metadata=shown(span="overflow.refused_tokens"))


@dataclass(frozen=True, slots=True)
class AnswerEvent(RequestEvent):
    """The figures of the provider's answer to a request, and the plugin's savings.

    Attributes:
        mode: "enforce" or "observe".
        decision: the outcome of the request.
        trigger: the trigger of the decision about the answered attempt.
        attempts: how many were made.
        local_tokens_sent: the sent request; None if it was not counted.
        beyond_window: whether the request as received exceeds the window: without the plugin it would have had no answer.
            False with "observe": it was answered unchanged.
        billed: the usage that the answer states, in provider tokens; None if it states none.
        provider_tokens_saved: the input bill without the plugin, less the actual one; with `observe`, the possible savings.
            None if nothing was counted. 0 for a request beyond the window.
        dollars_saved: the same in dollars, by the deployment's prices and with the provider's prompt cache as it would
            have been; below zero if a compaction that rewrites the cache costs more than it saves. None if a price is
            unknown. 0 for a request beyond the window.
        rereads: by the tool's name, the model's repeated calls whose earlier result was removed or shortened; with `observe`
            those that would have been. Each is counted once, in the first request with its result.
        dollars: the cost of the answer, as LiteLLM calculates it; None if it has none.
        duration_seconds: from the request to the end of its answer, as LiteLLM logs it; None if it logs none.
    """

    name: Literal["answer"]
    mode: Mode = field(metadata=shown("log"))
    decision: Outcome = field(metadata=shown("log", REQUESTS))
    trigger: Trigger
    attempts: int = field(metadata=shown("log"))
    local_tokens_sent: LocalTokens | None
    beyond_window: bool = field(metadata=shown("log", "spend", BEYOND_WINDOW))
    billed: Billed | None = field(metadata=shown("log", SENT, CACHED, UNCACHED))
    provider_tokens_saved: int | None = field(
        metadata=shown("log", "spend", SAVED_TOKENS, SPENT_TOKENS, SAVED, name="tokens_saved")
    )
    dollars_saved: float | None = field(metadata=shown("log", "spend", SAVED_DOLLARS, SPENT_DOLLARS))
    rereads: Mapping[str, int] = field(default_factory=dict, metadata=shown(REREADS))
    dollars: float | None = None
    duration_seconds: float | None = field(default=None, metadata=shown(ANSWERS))


@dataclass(frozen=True, slots=True)
class FailureEvent(RequestEvent):
    """A request ended in a refusal as too long: the caller got an error. Emitted once a request.

    Attributes:
        mode: "enforce" or "observe".
        attempts: how many were sent.
        decision: what the request ended in.
    """

    name: Literal["failure"]
    mode: Mode = field(metadata=shown("log"))
    attempts: int = field(metadata=shown("log"))
    decision: Outcome = field(default="failed", metadata=shown("log", "span", "header", REQUESTS))
