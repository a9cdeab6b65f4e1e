"""The settings that an operator can write, each with its unit, default and source."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    SkipValidation,
    TypeAdapter,
    ValidationError,
    field_validator,
)

from ctx_hooks.policy.addon_settings import ArchiveSettings, Bytes, SummarySettings
from ctx_hooks.runtime.content_cache import DEFAULT_LIMIT_BYTES

Language = Literal["en", "zh"]
Direction = Literal["head", "tail", "head_tail"]
Mode = Literal["enforce", "observe", "off"]
_SWITCH = TypeAdapter(bool)
LEAST_WINDOW_TOKENS = 1_000
"""No chat model in use has a smaller window: 128 is meant as 128k, 0 as no cap. Either would cut a request to nothing."""


SHARE = r"^\d{1,2}(\.\d+)? ?%$"
"""A share below 100 %, such as `8%`."""


def is_amount(*others: object) -> BeforeValidator:
    """Return a check for an amount or one of `others` that reports one mistake. YAML reads `off` as false, which is 0."""

    def checked(value: Any) -> Any:
        is_number = isinstance(value, int) and value is not True and value >= 0
        if value in others or is_number or (isinstance(value, str) and re.fullmatch(SHARE, value)):
            return value
        words = "".join(f", or {word}" for word in others if word is not None)
        raise ValueError(f"tokens, or a share below 100 %, are expected, such as 16384 or 8%{words}")

    return BeforeValidator(checked)


def fraction_of(amount: object) -> float | None:
    """Return the fraction that a share such as `8%` states, None for tokens and words."""
    return float(amount.rstrip("% ")) / 100 if isinstance(amount, str) and re.fullmatch(SHARE, amount) else None


class ToolResultLimits(BaseModel):
    """How much of a tool result is sent; all limits hold together."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    max_chars: int = Field(400_000, ge=2_000, description="In characters (OpenClaw).")
    max_lines: int | None = Field(None, ge=1, description="In lines (MyCodeAgent: 2,000).")
    max_bytes: Bytes | None = Field(None, ge=200, description="In UTF-8 bytes (MyCodeAgent: 51,200).")
    max_fraction: float = Field(
        0.30, gt=0, le=1, description="As it arrives, as a share of the window, at 4 characters a token (OpenClaw)."
    )
    direction: Direction = Field("head_tail", description="Which end is kept.")
    apply: Literal["compressed", "always"] = Field("compressed", description="In which requests (MyCodeAgent: `always`).")


class Policy(BaseModel):
    """How the requests of one model, team, key or caller are treated; each field's description has its unit."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    mode: Mode = Field("enforce", description="`observe`: decide and record, change nothing. `off`: as without the plugin.")
    language: Language = Field("en", description="Of placeholders, summaries and the final error.")
    window_tokens: int | None = Field(
        None, ge=LEAST_WINDOW_TOKENS, description="A cap on the window, in tokens; it never raises what is known."
    )
    block_below_tokens: int | None = Field(
        None,
        ge=0,
        description="Answer 400 to requests to a smaller window. Unset: warn below 32,000 (OpenClaw); 0: neither.",
    )
    reserve: Annotated[int | str | None, is_amount("dynamic", "output", None)] = Field(
        None,
        description="What stays free for the answer: tokens, at most a quarter of the window; a share such as `8%`; "
        "`dynamic`, by the last ten messages; `output`, what is requested. Unset: 16,384 (pi), 8 % of small windows.",
    )
    keep_recent: Annotated[int | str, is_amount()] = Field(
        20_000,
        description="What stays whole of the newest exchanges: tokens (pi: 20,000), at most 50 % of the budget; or a share.",
    )
    tool_results: ToolResultLimits = Field(
        ToolResultLimits(), description="The largest tool result; a scope sets the limits that it names."
    )
    fallbacks: Literal["first", "last"] = Field(
        "first",
        description="`first`: a configured fallback that holds the request comes before compression; `last`: after it.",
    )
    rescue_attempts: int = Field(3, ge=0, le=3, description="Retries on the same model after an overflow.")
    repair: Literal["compressed", "always"] = Field(
        "compressed", description="In which requests messages that the provider refuses are repaired."
    )
    compaction: Literal["full", "cost_aware", "client_first"] = Field(
        "full",
        description="What is done to a request above its budget while the window holds it. `cost_aware`: nothing that costs "
        "more than the prompt cache it loses; `client_first`: nothing, for a client that compacts by itself.",
    )
    summary: SummarySettings | None = Field(
        None, description="The model that writes the summary of removed exchanges; unset: it is extracted from them."
    )
    archive: ArchiveSettings | None = Field(
        None, description="Keep removed text: where, for whom, how long; unset: not kept."
    )
    retrieval: bool = Field(default=False, description="Offer the model a tool that fetches removed text.")
    compaction_api: bool = Field(
        default=False, description="Answer a client's request for compaction if its deployment does not (OpenAI)."
    )
    max_turns: int | None = Field(None, ge=1, description="Most turns of the user that are sent, the newest (OpenClaw).")
    request_may_set: tuple[str, ...] = Field(
        (),
        description="Fields that a request may set in `metadata.ctx_hooks`, and policies that it may name in `x-ctx-hooks`.",
    )

    @field_validator("request_may_set")
    @classmethod
    def _without_archive(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        if "archive" in names:
            raise ValueError("no caller may set `archive`: it names a folder, and whose texts are read")
        return names

    @field_validator("summary", "archive", mode="before")
    @classmethod
    def _none_if_off(cls, value: Any) -> Any:
        return None if value is False or value == "off" else value

    @field_validator("mode", mode="before")
    @classmethod
    def _mode_of_switch(cls, value: Any) -> Any:
        """YAML reads `off` as false, and `on` as true."""
        try:
            return "enforce" if _SWITCH.validate_python(value) else "off"
        except ValidationError:
            return value

    @property
    def archive_in_use(self) -> ArchiveSettings | None:
        """Where removed text is kept: retrieval needs at least a folder of the process."""
        return self.archive or (ArchiveSettings(path=None) if self.retrieval else None)

    @property
    def summary_in_use(self) -> SummarySettings | None:
        """Who writes summaries; None also if only the newest turns are sent: each request begins with other turns."""
        return self.summary if self.max_turns is None else None

    @property
    def addon_names(self) -> tuple[str, ...]:
        """The add-ons that take part in a request, the outermost first."""
        archives = ("retrieval",) if self.archive is not None or self.retrieval else ()
        contract = ("compaction_api",) if self.compaction_api else ()
        return (*contract, *archives, *(("summaries",) if self.summary_in_use is not None else ()))


def with_off(value: Any) -> Any:
    """YAML reads the name of the policy `off` as false."""
    return "off" if value is False else value


Scope: TypeAlias = Annotated[SkipValidation[str | dict[str, Any]], BeforeValidator(with_off)]
"""The name of a policy; or its fields, with `policy` to begin from a named one and `locked` to fix fields."""
_BY_TEXT = BeforeValidator(lambda named: {str(n): s for n, s in named.items()} if isinstance(named, Mapping) else named)
"""YAML reads a name such as 2024 as a number."""
Scopes: TypeAlias = Annotated[dict[str, Scope], _BY_TEXT]


class EventFiles(BaseModel):
    """Where each event is written as a line of JSON, for `ctx-hooks report`; figures and names, no text of a message."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    path: str = Field(min_length=1, description="The folder; it has to exist.")
    max_bytes: int = Field(50_000_000, ge=10_000, description="Size at which a file is rotated: 50 MB are 25,000 requests.")
    keep: int = Field(5, ge=2, description="Most files of a worker process.")


class Settings(BaseModel):
    """The settings under `callback_settings.ctx_hooks` of the proxy's configuration."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    defaults: Scope = Field({}, description="The policy of every request, unless a narrower scope sets a field.")
    policies: Scopes = Field({}, description="Named policies; with `policy` one begins with a preset.")
    models: Scopes = Field({}, description="By model group, or a pattern of its name such as `openai/*`.")
    teams: Scopes = Field({}, description="By team id or alias.")
    keys: Scopes = Field({}, description="By the alias of a virtual key.")
    sessions: Scopes = Field({}, description="By a pattern of the session's name, such as `group:*`.")
    cache_bytes: int = Field(DEFAULT_LIMIT_BYTES, ge=0, description="Memory of all caches together, in bytes, per process.")
    events: EventFiles | None = Field(
        None, description="Write each event to rotating files, which `ctx-hooks report` reads."
    )

    _at_most: Mode | None = PrivateAttr(None)

    @property
    def at_most(self) -> Mode | None:
        """The strongest mode that mistakes outside all scopes leave to everybody; None without such mistakes."""
        return self._at_most

    def with_most(self, mode: Mode | None) -> "Settings":
        """Return the settings with `mode` as the strongest mode."""
        settings = self.model_copy()
        settings._at_most = mode  # noqa: SLF001 - the copy is of this class
        return settings


DEFAULT_POLICY = Policy()
PRESETS: Mapping[str, Mapping[str, Any]] = {
    "mycodeagent": {
        "tool_results": {"max_lines": 2_000, "max_bytes": 51_200, "direction": "head", "apply": "always"},
        "archive": {},
    },
    "off": {"mode": "off"},
    "observe": {"mode": "observe"},
}
"""Policies that come with the package: the fields in which each differs from the defaults."""
