"""Whether a summary that a model has written may be used."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from ctx_hooks.compaction.summary.model_written import SummaryTask
    from ctx_hooks.policy.settings import SummarySettings
    from ctx_hooks.tokens.counter import Counter

Reason: TypeAlias = Literal["empty", "too_long", "longer_than_original", "refusal", "unknown_names", "misquoted"]


@dataclass(frozen=True, slots=True)
class Rejected:
    """A summary that may not be used, and why."""

    reason: Reason


def checked(text: str, task: SummaryTask, settings: SummarySettings, counter: Counter) -> str | Rejected:
    """Return the summary as it is used, or why it is not."""
    raise NotImplementedError
