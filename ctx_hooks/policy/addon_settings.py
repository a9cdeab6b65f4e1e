"""The settings of the add-ons: where removed text is kept, and which model writes summaries."""

import os
import re
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

ArchiveBackend = Literal["disk", "redis"]
ArchiveScope = Literal["key", "team", "organization"]

FOLDER_VARIABLE = "TOOL_OUTPUT_DIR"
RETENTION_VARIABLE = "TOOL_OUTPUT_RETENTION_DAYS"
"""MyCodeAgent's variables for the same two things."""
DEFAULT_RETENTION_DAYS = 7.0
"""MyCodeAgent's: people continue a session after a weekend, or after a few days of other work."""
LONGEST_RETENTION_DAYS = 365.0
DEFAULT_MAX_BYTES: dict[ArchiveBackend, int] = {"disk": 1_000_000_000, "redis": 64_000_000}
"""A long session has below 1 MB, compressed. Redis, whose memory rate limits share: sixty such sessions of each tenant."""
LEAST_MAX_BYTES = 8_000_000
"""Twice the largest batch that is written at once, so that there is room for one."""


def _bytes_of(value: Any) -> Any:
    """Return the bytes of a text such as `50KB`, of 1,024 bytes each (MyCodeAgent); any other value unchanged."""
    found = re.fullmatch(r"\s*(\d{1,9}) ?([KMG])i?B\s*", value, re.IGNORECASE) if isinstance(value, str) else None
    return int(found[1]) * 1_024 ** (1 + "KMG".index(found[2].upper())) if found else value


Bytes: TypeAlias = Annotated[int, BeforeValidator(_bytes_of)]


def _retention_days() -> float:
    """Return the days that the environment names; the default for a wrong value, which `check` reports."""
    try:
        days = float(os.environ.get(RETENTION_VARIABLE) or DEFAULT_RETENTION_DAYS)
    except ValueError:
        days = 0.0
    return days if 0 < days <= LONGEST_RETENTION_DAYS else DEFAULT_RETENTION_DAYS


class ArchiveSettings(BaseModel):
    """Where removed text is kept, for whom and how long."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    backend: ArchiveBackend = Field(
        "disk", description="`disk`: a SQLite file, which all workers of a machine share. `redis`: LiteLLM's own Redis."
    )
    scope: ArchiveScope = Field(
        "key", description="Who may read a text: the key that sent it (without one the user), its team or its organization."
    )
    retention_days: float = Field(
        default_factory=_retention_days,
        gt=0,
        le=LONGEST_RETENTION_DAYS,
        description=f"How long a text is kept, in days; unset: {RETENTION_VARIABLE}, or 7 (MyCodeAgent).",
    )
    max_bytes: Bytes | None = Field(
        None,
        ge=LEAST_MAX_BYTES,
        description="Most bytes kept: of the file (unset: 1 GB), or of each tenant in Redis (64 MB).",
    )
    path: str | None = Field(
        default_factory=lambda: os.environ.get(FOLDER_VARIABLE) or None,
        min_length=1,
        description=f"For `disk`: the file's folder; unset: {FOLDER_VARIABLE}, or one of each worker, which ends with it.",
    )

    @property
    def size_limit_bytes(self) -> int:
        """Most that is kept, in bytes."""
        return DEFAULT_MAX_BYTES[self.backend] if self.max_bytes is None else self.max_bytes

    @property
    def retention_seconds(self) -> float:
        """How long a text is kept, in seconds."""
        return self.retention_days * 24 * 3600


class SummarySettings(BaseModel):
    """Which model writes the summary that stands for removed exchanges."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: str = Field(min_length=1, description="The model group of the proxy that writes; the history is sent to it.")
    timeout_seconds: float = Field(20.0, gt=0, description="How long it is waited for at most.")
    max_tokens: int = Field(
        2_000, ge=100, le=8_000, description="Longest summary, in tokens; about 8 % of the budget at most."
    )
    prompt: str | None = Field(
        None, min_length=1, max_length=20_000, description="What the summary has to say; unset: the sections of the package."
    )
