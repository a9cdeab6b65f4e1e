"""Events: figures and names, never text. `docs/appendix/events.md` says what each field and metric is."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from ctx_hooks.compaction.steps import StepReport
from ctx_hooks.formats import Format
from ctx_hooks.policy.addon_settings import ArchiveBackend
from ctx_hooks.policy.settings import Mode
from ctx_hooks.telemetry.figures import (
    ANSWER_SECONDS,
    CALLER,
    MODEL,
    SECONDS,
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
LEARNED = ("kind", deployment_at(("deployment",)))
CHOSEN = (deployment_at(("call.deployment",)),)
ATTEMPTS = counter("attempts", "Attempts that were sent", ("decision", "trigger", *OF_CALLER), unless="failed")
REQUESTS = counter("requests", "Requests by their outcome, each once", ("decision", *OF_CALLER))
OVERFLOWS = counter("overflows", "Attempts that a provider refused as too long", ("kind", *OF_CALLER))
REJECTIONS = counter(
    "rejections", "Changed requests that a provider refused as invalid, not as too long", ("status", *OF_CALLER)
)
SAVED_TOKENS = counter("saved_provider_tokens", "Input tokens that bills were lowered by", OF_CALLER)
SPENT_TOKENS = counter("spent_provider_tokens", "Input tokens that bills were raised by", OF_CALLER, scale=-1.0)
SAVED_DOLLARS = counter("saved_dollars", "Dollars that bills were lowered by", OF_CALLER)
SPENT_DOLLARS = counter("spent_dollars", "Dollars that bills were raised by", OF_CALLER, scale=-1.0)
CACHED = counter(
    "cached_prompt_tokens", "Billed input tokens that a prompt cache served", OF_CALLER, part="cached_tokens", above=None
)
UNCACHED = counter("uncached_prompt_tokens", "All other billed input tokens", OF_CALLER, part="uncached_tokens", above=None)
WINDOW = gauge("window_tokens", "The window that was fitted to last", CHOSEN, needs="local_tokens_before")
PHASES = histogram("phase_seconds", "Time of a decision, by phase and in total", key="phase", scale=1e-3, buckets=SECONDS)
ANSWERS = histogram(
    "answer_seconds", "Time from a request to the end of its answer", ("mode", MODEL), buckets=ANSWER_SECONDS
)
TIMEOUTS = counter("compression_timeouts", "Attempts that took too long to compress and lost their oldest turns", OF_CALLER)
REREADS = counter("rereads", "Calls made again whose earlier result was removed or shortened", OF_CALLER)
LIMITS = counter("limits_learned", "Limits that deployments have shown to a tenant", LEARNED)
LIMIT = gauge("learned_limit_tokens", "The limit that was learned last, in provider tokens", LEARNED)
SUMMARIES = counter("summaries", "Summaries that a model was asked for", ("outcome", CALLER))
DOLLARS = counter("summary_dollars", "Dollars that summaries have cost", (CALLER,))
ITEMS = counter("compaction_items", "Compaction items of requests, by what happened to them", ("outcome", CALLER))
RETRIEVALS = counter("retrievals", "Calls of the retrieval tool that were answered", ("source", CALLER))
TEXTS = counter("archive_texts", "Texts that came to the archive", ("outcome", "backend"))
BUILD = gauge("build_info", "1, with the versions that run", ("version", "litellm_version"))
POLICY = gauge("policy_info", "1, with a digest of the settings and the mode of the defaults", ("digest", "mode"))
MISTAKES = gauge("settings_mistakes", "Mistakes in the settings of the configuration", ("digest",))
FAIL_OPEN = counter("fail_open", "Faults that left a request, an answer or an error as it was", ("consequence",))
SINKS = counter("sinks_disabled", "Sinks of events that have failed and are off until the next start", ("sink",))
IGNORED = counter("ignored_settings", "Requests of which a scope's settings were ignored in part", (CALLER,), key="scope")

Outcome = Literal["fits", "over_budget", "fallback", "output_lowered", "compressed", "retried", "failed", "failed_open"]
"""The outcome of a request, in the same words in every report; `docs/telemetry.md` explains each."""
CHANGED: frozenset[Outcome] = frozenset({"output_lowered", "compressed", "retried"})
"""The outcomes of a request that is sent changed."""
UNCHANGED: frozenset[Outcome] = frozenset({"fits", "over_budget"})
"""The outcomes of a request that is sent to its own model as the client sent it."""
Trigger = Literal["none", "budget", "overflow", "output", "timeout"]
ArchiveOutcome = Literal["stored", "dropped", "failed"]


@dataclass(frozen=True, slots=True)
class CallNames:
    """The names of a call's owner and target."""

    request_id: str = ""
    call_id: str = ""
    model_group: str = ""
    deployment: str = ""
    model: str = ""
    team_id: str = ""
    team_alias: str = ""
    key_alias: str = ""
    organization_id: str = ""
    route: str = ""
    client: str = ""
    session: str = ""


@dataclass(frozen=True, slots=True)
class RequestEvent:
    """The common fields of all events about one request; the time is in epoch seconds."""

    name: str
    time_seconds: float
    call: CallNames


@dataclass(frozen=True, slots=True)
class CompactionEvent:
    """A compaction that is about to happen, or has happened. All tokens are estimates in provider tokens."""

    name: Literal["before_compaction", "after_compaction"]
    model: str
    format: Format
    tokens_before: ProviderTokens
    budget_tokens: ProviderTokens
    window_tokens: ProviderTokens
    reserve_tokens: ProviderTokens
    usage_fraction: float
    attempt: int = 0
    tokens_after: ProviderTokens | None = None
    messages_touched: int = 0
    steps: tuple[str, ...] = ()
    request_id: str = ""
    mode: Mode = "enforce"


@dataclass(frozen=True, slots=True)
class LimitEvent:
    """A deployment has shown a new limit to one tenant, beside its stated window. In provider tokens."""

    name: Literal["limit_learned"]
    deployment: str = field(metadata=shown("log"))
    kind: str = field(metadata=shown("log", LIMITS))
    limit_tokens: ProviderTokens = field(metadata=shown("log", LIMIT))
    window_tokens: ProviderTokens = field(metadata=shown("log"))
    request_id: str = ""
    mode: Mode = "enforce"


@dataclass(frozen=True, slots=True)
class DecisionEvent(RequestEvent):
    """The decision about one attempt, enforced or only observed."""

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
    factor: float
    requested_output_tokens: ProviderTokens | None
    sent_output_tokens: ProviderTokens | None = field(metadata=shown("log", name="output_tokens"))
    steps: tuple[StepReport, ...] = field(metadata=shown("span"))
    milliseconds: Mapping[str, float] = field(metadata=shown("log", PHASES))
    policy: Mapping[str, str] = field(metadata=shown("spend", "header"))
    timed_out: bool = field(default=False, metadata=shown(TIMEOUTS))


@dataclass(frozen=True, slots=True)
class OverflowEvent(RequestEvent):
    """A provider refused an attempt as too long."""

    name: Literal["overflow"]
    mode: Mode
    attempt: int = field(metadata=shown("span"))
    kind: str = field(metadata=shown(OVERFLOWS, span="overflow.kind"))
    limit_tokens: int | None = field(metadata=shown(span="overflow.limit_tokens"))
    refused_tokens: int | None = field(metadata=shown(span="overflow.refused_tokens"))


@dataclass(frozen=True, slots=True)
class RejectionEvent(RequestEvent):
    """A provider refused a changed request as invalid, not as too long: the change may be at fault."""

    name: Literal["rejection"]
    mode: Mode
    decision: Outcome = field(metadata=shown("log", "span"))
    status: str = field(metadata=shown("log", REJECTIONS, span="rejection.status"))


@dataclass(frozen=True, slots=True)
class AnswerEvent(RequestEvent):
    """The figures of the provider's answer to a request, and the plugin's savings."""

    name: Literal["answer"]
    mode: Mode = field(metadata=shown("log"))
    decision: Outcome = field(metadata=shown("log", REQUESTS))
    attempts: int = field(metadata=shown("log"))
    beyond_window: bool = field(metadata=shown("log", "spend"))
    billed: Billed | None = field(metadata=shown("log", CACHED, UNCACHED))
    provider_tokens_saved: int | None = field(
        metadata=shown("log", "spend", SAVED_TOKENS, SPENT_TOKENS, name="tokens_saved")
    )
    dollars_saved: float | None = field(metadata=shown("log", "spend", SAVED_DOLLARS, SPENT_DOLLARS))
    rereads: Mapping[str, int] = field(default_factory=dict, metadata=shown(REREADS))
    duration_seconds: float | None = field(default=None, metadata=shown(ANSWERS))


@dataclass(frozen=True, slots=True)
class FailureEvent(RequestEvent):
    """A request ended in a refusal as too long: the caller got an error. Emitted once a request."""

    name: Literal["failure"]
    mode: Mode = field(metadata=shown("log"))
    attempts: int = field(metadata=shown("log"))
    decision: Outcome = field(default="failed", metadata=shown("log", "span", "header", REQUESTS))


@dataclass(frozen=True, slots=True)
class SummaryEvent(RequestEvent):
    """A summary that a model was asked for."""

    name: Literal["summary"]
    summary_model: str = field(metadata=shown("log"))
    messages: int = field(metadata=shown("log"))
    outcome: Literal["accepted", "rejected", "failed"] = field(metadata=shown("log", SUMMARIES))
    reason: str = field(metadata=shown("log"))
    dollars: float | None = field(metadata=shown("log", DOLLARS))
    milliseconds: float = field(metadata=shown("log"))


@dataclass(frozen=True, slots=True)
class RetrievalEvent(RequestEvent):
    """A call of the retrieval tool that was answered."""

    name: Literal["retrieval"]
    source: Literal["archive", "none"] = field(metadata=shown(RETRIEVALS))
    returned_chars: int


@dataclass(frozen=True, slots=True)
class ItemEvent(RequestEvent):
    """A compaction item was made for a request, or items that it has were opened or refused."""

    name: Literal["compaction_item"]
    outcome: Literal["summarised", "extracted", "opened", "refused"] = field(metadata=shown("log", ITEMS))
    reason: str = field(default="", metadata=shown("log"))


@dataclass(frozen=True, slots=True)
class ArchiveEvent:
    """The outcome for texts that reached the archive together."""

    name: Literal["archive"]
    time_seconds: float
    outcome: ArchiveOutcome
    texts: int = field(metadata=shown(TEXTS))
    backend: ArchiveBackend


@dataclass(frozen=True, slots=True)
class StartEvent:
    """The plugin was loaded."""

    name: Literal["start"]
    time_seconds: float
    version: str = field(metadata=shown("log", BUILD))
    litellm_version: str = field(metadata=shown("log", name="litellm"))
    mode: Mode = field(metadata=shown("log"))
    digest: str = field(metadata=shown("log", POLICY))
    policies: tuple[str, ...] = field(metadata=shown("log"))
    scopes: tuple[str, ...] = field(metadata=shown("log"))
    ignored: tuple[str, ...] = field(metadata=shown("log"))
    store: Literal["redis", "memory"] = field(metadata=shown("log"))
    addons: tuple[str, ...] = field(metadata=shown("log"))
    missing: tuple[str, ...] = field(metadata=shown("log"))
    mistakes: int = field(metadata=shown(MISTAKES))
    reserves: tuple[str, ...] = field(default=(), metadata=shown("log"))


@dataclass(frozen=True, slots=True)
class FaultEvent:
    """Something in the plugin has failed, and no request with it. The log has the traceback."""

    name: Literal["fault"]
    time_seconds: float
    consequence: str = field(default="", metadata=shown(FAIL_OPEN))
    sink: str = field(default="", metadata=shown(SINKS))


@dataclass(frozen=True, slots=True)
class IgnoredEvent(RequestEvent):
    """Settings for a request were ignored: they are wrong, locked, or not allowed in a request."""

    name: Literal["settings_ignored"]
    scopes: Mapping[str, int] = field(metadata=shown(IGNORED))
