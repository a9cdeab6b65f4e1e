"""Events: figures and names, never text. `docs/appendix/events.md` says what each field and metric is."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from ctx_hooks.compaction.steps import StepReport
from ctx_hooks.formats import Format
from ctx_hooks.policy.addon_settings import ArchiveBackend
from ctx_hooks.policy.settings import Mode
from ctx_hooks.tokens.budget import Source
from ctx_hooks.tokens.units import LocalTokens, ProviderTokens
from ctx_hooks.tokens.usage import Billed

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
    deployment: str
    kind: str
    limit_tokens: ProviderTokens
    window_tokens: ProviderTokens
    request_id: str = ""
    mode: Mode = "enforce"
    time_seconds: float = field(default_factory=time.time)


@dataclass(frozen=True, slots=True)
class DecisionEvent(RequestEvent):
    """The decision about one attempt, enforced or only observed."""

    name: Literal["decision"]
    mode: Mode
    decision: Outcome
    reason: str
    trigger: Trigger
    attempt: int
    format: Format
    local_tokens_before: LocalTokens | None
    local_tokens_after: LocalTokens | None
    provider_tokens_before: ProviderTokens | None
    provider_tokens_after: ProviderTokens | None
    budget_tokens: ProviderTokens | None
    window_tokens: ProviderTokens
    window_source: Source
    factor: float
    requested_output_tokens: ProviderTokens | None
    sent_output_tokens: ProviderTokens | None
    steps: tuple[StepReport, ...]
    milliseconds: Mapping[str, float]
    policy: Mapping[str, str]
    timed_out: bool = False

    @property
    def fitted_window_tokens(self) -> ProviderTokens | None:
        """The window; None if the request was not counted: then nobody has asked whether a smaller one is known."""
        return None if self.local_tokens_before is None else self.window_tokens


@dataclass(frozen=True, slots=True)
class OverflowEvent(RequestEvent):
    """A provider refused an attempt as too long."""

    name: Literal["overflow"]
    mode: Mode
    attempt: int
    kind: str
    limit_tokens: int | None
    refused_tokens: int | None


@dataclass(frozen=True, slots=True)
class RejectionEvent(RequestEvent):
    """A provider refused a changed request as invalid, not as too long: the change may be at fault."""

    name: Literal["rejection"]
    mode: Mode
    decision: Outcome
    status: str


@dataclass(frozen=True, slots=True)
class AnswerEvent(RequestEvent):
    """The figures of the provider's answer to a request, and the plugin's savings."""

    name: Literal["answer"]
    mode: Mode
    decision: Outcome
    attempts: int
    beyond_window: bool
    billed: Billed | None
    provider_tokens_saved: int | None
    dollars_saved: float | None
    rereads: Mapping[str, int] = field(default_factory=dict)

    @property
    def cached_tokens(self) -> ProviderTokens | None:
        """The billed input that a prompt cache served; None without a bill."""
        return None if self.billed is None else self.billed.cached_tokens

    @property
    def uncached_tokens(self) -> ProviderTokens | None:
        """All other billed input."""
        return None if self.billed is None else self.billed.uncached_tokens


@dataclass(frozen=True, slots=True)
class FailureEvent(RequestEvent):
    """A request ended in a refusal as too long: the caller got an error. Emitted once a request."""

    name: Literal["failure"]
    mode: Mode
    attempts: int
    decided: Outcome
    decision: Outcome = "failed"


@dataclass(frozen=True, slots=True)
class SummaryEvent(RequestEvent):
    """A summary that a model was asked for."""

    name: Literal["summary"]
    summary_model: str
    messages: int
    outcome: Literal["accepted", "rejected", "failed"]
    reason: str
    dollars: float | None
    milliseconds: float


@dataclass(frozen=True, slots=True)
class RetrievalEvent(RequestEvent):
    """A call of the retrieval tool that was answered."""

    name: Literal["retrieval"]
    source: Literal["archive", "none"]
    returned_chars: int


@dataclass(frozen=True, slots=True)
class ItemEvent(RequestEvent):
    """A compaction item was made for a request, or items that it has were opened or refused."""

    name: Literal["compaction_item"]
    outcome: Literal["summarised", "extracted", "opened", "refused"]
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ArchiveEvent:
    """The outcome for texts that reached the archive together."""

    name: Literal["archive"]
    time_seconds: float
    outcome: ArchiveOutcome
    texts: int
    backend: ArchiveBackend


@dataclass(frozen=True, slots=True)
class StartEvent:
    """The plugin was loaded."""

    name: Literal["start"]
    time_seconds: float
    version: str
    litellm_version: str
    mode: Mode
    digest: str
    addons: tuple[str, ...]
    missing: tuple[str, ...]
    mistakes: int


@dataclass(frozen=True, slots=True)
class FaultEvent:
    """Something in the plugin has failed, and no request with it. The log has the traceback."""

    name: Literal["fault"]
    time_seconds: float
    consequence: str = ""
    sink: str = ""


@dataclass(frozen=True, slots=True)
class IgnoredEvent(RequestEvent):
    """Settings for a request were ignored: they are wrong, locked, or not allowed in a request."""

    name: Literal["settings_ignored"]
    scopes: Mapping[str, int]


def flat(event: Any) -> dict[str, str | float]:
    """Return an event as names and figures on one level, without its time, its call, and what is empty or False."""
    found: dict[str, Any] = {}
    for name in (each.name for each in fields(event) if each.name not in ("name", "time_seconds", "call")):
        value = getattr(event, name)
        if isinstance(value, Billed):
            found |= {"input_tokens": value.input_tokens, "cached_tokens": value.cached_tokens}
        elif isinstance(value, tuple):
            found[name] = ", ".join(each if isinstance(each, str) else each.name for each in value)
        elif isinstance(value, Mapping):
            found[name] = value.get("total")  # of the milliseconds
        else:
            found[name] = value
    shown = {name: round(value, 6) if isinstance(value, float) else value for name, value in found.items()}
    return {name: value for name, value in shown.items() if value is not None and value is not False and value != ""}
