"""What the model that writes a summary is asked: the conversation as quoted data, in parts that its window holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ctx_hooks.compaction.summary.model_written import SummaryTask
    from ctx_hooks.policy.settings import SummarySettings
    from ctx_hooks.tokens.counter import Counter
    from ctx_hooks.tokens.units import ProviderTokens


def parts_of(
    task: SummaryTask, settings: SummarySettings, window_tokens: ProviderTokens, counter: Counter
) -> tuple[str, ...]:
    """Return what is to be summarised as JSON lines, in parts for which the window has room beside prompt and answer."""
    raise NotImplementedError


def prompt_of(part: str, before: str, settings: SummarySettings) -> list[dict[str, str]]:
    """Return the chat messages that ask for a summary of one part, which updates the summary `before`, "" for none."""
    raise NotImplementedError
