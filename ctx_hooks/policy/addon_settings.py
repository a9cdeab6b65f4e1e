"""The settings of the add-ons: where removed text is kept, and which model writes summaries."""

import os
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from ctx_hooks.runtime.warnings import warn_once

ArchiveBackend = Literal["memory", "disk", "redis"]
ArchiveScope = Literal["key", "team", "organization"]

FOLDER_VARIABLE = "TOOL_OUTPUT_DIR"
RETENTION_VARIABLE = "TOOL_OUTPUT_RETENTION_DAYS"
"""MyCodeAgent's variables for the same two things."""
DEFAULT_RETENTION_DAYS = 7.0
"""MyCodeAgent's: people continue a session after a weekend, or after a few days of other work."""
LONGEST_RETENTION_DAYS = 365.0
DEFAULT_MAX_BYTES: dict[ArchiveBackend, int] = {"memory": 64_000_000, "disk": 1_000_000_000, "redis": 64_000_000}
"""A session that fills a window of 200,000 tokens several times over has some MB of removed text, below 1 MB if compressed.
Memory: sixty such sessions in each worker process, beside 256 MB of caches. Disk: a thousand in one file. Redis: sixty for
each tenant, since rate limits and spend counters share its memory."""
LEAST_MAX_BYTES = 8_000_000
"""Twice the largest batch that is written at once, so that there is room for one."""


def _folder() -> str | None:
    return os.environ.get(FOLDER_VARIABLE) or None


def _retention_days() -> float:
    """Return the days that the environment names; any other value causes a warning, and the default applies."""
    said = os.environ.get(RETENTION_VARIABLE) or str(DEFAULT_RETENTION_DAYS)
    try:
        days = float(said)
    except ValueError:
        days = 0.0
    if 0 < days <= LONGEST_RETENTION_DAYS:
        return days
    warn_once(f"ctx_hooks: {RETENTION_VARIABLE}: {said!r:.60} is no number of days up to {LONGEST_RETENTION_DAYS:.0f}")
    return DEFAULT_RETENTION_DAYS


class ArchiveSettings(BaseModel):
    """Where what compaction cuts is kept, for whom and how long.

    >>> ArchiveSettings().backend
    'memory'
    >>> ArchiveSettings(backend="redis").size_limit_bytes
    64000000
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    backend: ArchiveBackend = Field(
        "memory",
        description="`memory`: in each worker process, gone with it. `disk`: one SQLite file that all workers of a machine "
        "share. `redis`: LiteLLM's own Redis.",
    )
    scope: ArchiveScope = Field(
        "key",
        description="Whose a text is: what one key has sent is read by that key alone, unless it is shared with the team or "
        "the organization. Without one of these the key's; without a key the user's.",
    )
    retention_days: float = Field(
        default_factory=_retention_days,
        gt=0,
        le=LONGEST_RETENTION_DAYS,
        description=f"How long a text is kept, in days; unset: {RETENTION_VARIABLE}, or 7 (MyCodeAgent).",
    )
    max_bytes: int | None = Field(
        None,
        ge=LEAST_MAX_BYTES,
        description="Most that is kept, in bytes as stored: of a worker process (unset: 64 MB), of the file (1 GB), or of "
        "each tenant in Redis (64 MB). The oldest texts of the tenant that has the most go first; in Redis, what would "
        "expire first.",
    )
    path: str | None = Field(
        default_factory=_folder,
        min_length=1,
        description=f"For `disk`: the folder of the file, made where there is none; unset: {FOLDER_VARIABLE}.",
    )

    @model_validator(mode="after")
    def _has_its_folder(self) -> "ArchiveSettings":
        if self.backend == "disk" and self.path is None:
            raise ValueError(f"the backend disk needs `path`, or {FOLDER_VARIABLE} in the environment")
        return self

    @property
    def size_limit_bytes(self) -> int:
        """Most that is kept, in bytes."""
        return DEFAULT_MAX_BYTES[self.backend] if self.max_bytes is None else self.max_bytes

    @property
    def retention_seconds(self) -> float:
        """How long a text is kept, in seconds."""
        return self.retention_days * 24 * 3600


class SummarySettings(BaseModel):
    """Which model writes the summary that stands for removed exchanges, and when it is asked.

    >>> SummarySettings(model="small").mode
    'background'
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: str = Field(
        min_length=1,
        description="The model group of the proxy that writes; the history is sent to it.",
    )
    mode: Literal["background", "blocking"] = Field(
        "background",
        description="`background`: it is asked after an answer, and a compaction uses what is ready. `blocking`: a "
        "compaction waits for it.",
    )
    timeout_seconds: float = Field(20.0, gt=0, description="How long it is waited for at most.")
    max_tokens: int = Field(2_000, ge=100, description="Longest summary, in tokens; about 8 % of the budget at most.")
    prompt: str | None = Field(
        None, min_length=1, max_length=20_000, description="What the summary has to say; unset: the sections of the package."
    )
    soft_fraction: float = Field(
        0.8, gt=0, le=1, description="Share of the budget above which an answer's input has the next summary written (pi)."
    )
