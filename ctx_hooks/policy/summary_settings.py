"""Which model writes summaries, and when."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class SummarySettings(BaseModel):
    """Which model writes the summary that stands for removed exchanges, and when it is asked.

    >>> SummarySettings(model="small").mode
    'background'
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: str = Field(min_length=1, description="The model group of the proxy that writes; the history is sent to it.")
    mode: Literal["background", "blocking"] = Field(
        "background",
        description="`background`: it is asked after an answer, and a compaction uses what is ready. `blocking`: a "
        "compaction waits for it.",
    )
    timeout_seconds: float = Field(20.0, gt=0, description="How long it is waited for at most.")
    max_tokens: int = Field(2_000, ge=100, description="Longest summary, in tokens; about 3 % of the budget at most.")
    prompt: str | None = Field(
        None, min_length=1, max_length=20_000, description="What the summary has to say; unset: the sections of the package."
    )
    soft_fraction: float = Field(
        0.8, gt=0, le=1, description="Share of the budget above which an answer's input has the next summary written (pi)."
    )
