"""Events of the process beside its requests: its start, its faults, and ignored settings."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from ctx_hooks.policy.settings import Mode
from ctx_hooks.telemetry.figures import CALLER, RequestEvent, counter, gauge, shown

BUILD = gauge("build_info", "1, with the versions that run", ("version", "litellm_version"))
POLICY = gauge("policy_info", "1, with a digest of the settings and the mode of the defaults", ("digest", "mode"))
MISTAKES = gauge("settings_mistakes", "Mistakes in the settings of the configuration", ("digest",))
FAIL_OPEN = counter(
    "fail_open", "Faults of the plugin that left a request, an answer or an error as it was", ("consequence",)
)
SINKS = counter("sinks_disabled", "Sinks of events that have failed and are off until the next start", ("sink",))
IGNORED = counter("ignored_settings", "Requests of which a scope's settings were ignored in part", (CALLER,), key="scope")


@dataclass(frozen=True, slots=True)
class StartEvent:
    """The plugin was loaded.

    Attributes:
        version: of this package.
        litellm_version: of LiteLLM.
        mode: the mode of a request to which only the defaults apply.
        digest: of all settings: two workers that have the same one treat requests alike.
        policies: the names of the operator's own policies.
        scopes: the path of each scope that has settings, as `teams.research`.
        ignored: the path of each setting that is wrong.
        store: "redis", or "memory" if workers share nothing.
        addons: the add-ons that some scope of the configuration names.
        missing: private names of LiteLLM that this version lacks.
        mistakes: how many mistakes the settings have.
        reserves: each stated reserve that a listed deployment's window replaces, and what holds.
    """

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
    """Something in the plugin has failed, and no request with it. The log has the traceback.

    Attributes:
        consequence: the effect of the fault, as "forwards the request unchanged"; "" for a sink.
        sink: the sink that is off from now on; "" for any other fault.
    """

    name: Literal["fault"]
    time_seconds: float
    consequence: str = field(default="", metadata=shown(FAIL_OPEN))
    sink: str = field(default="", metadata=shown(SINKS))


@dataclass(frozen=True, slots=True)
class IgnoredEvent(RequestEvent):
    """Settings for a request were ignored: they are wrong, locked, or not allowed in a request.

    `scopes` has 1 for the kind of each scope that they are in, as "team", "models" or "request".
    """

    name: Literal["settings_ignored"]
    scopes: Mapping[str, int] = field(metadata=shown(IGNORED))
