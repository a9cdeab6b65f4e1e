"""When a compaction is due, and how many tokens it leaves."""

from dataclasses import dataclass

from ctx_hooks.compaction.message_index import digest_of
from ctx_hooks.tokens.budget import Budget
from ctx_hooks.tokens.units import LocalTokens

COMPACTION_FIELDS = frozenset({"keep_recent", "language", "tool_results"})
"""The policy fields that a compaction depends on beside its budget: no other one may change a prefix in a prompt cache."""
MARGIN_FRACTION = 0.02
"""At least this share of the goal counts for a request's end that the next one may lack, such as a reminder. So both
requests agree on whether a compaction was due."""
TARGET_FRACTION, SMALL_TARGET_FRACTION = 0.5625, 0.625
SMALL_GOAL_TOKENS = 20_000
"""A compaction leaves this share of the room beside fixed text; more below this goal (docs/appendix/design_notes.md)."""


@dataclass(frozen=True, slots=True)
class Thresholds:
    """A compaction is due above the goal of `trigger`; it compacts down to `target_tokens`, None for the usual share."""

    trigger: Budget
    target_tokens: LocalTokens | None = None

    @property
    def margin_tokens(self) -> int:
        """The least tokens that count for a request's end that the next one may lack."""
        return int(self.trigger.goal_tokens * MARGIN_FRACTION)

    def target_tokens_behind(self, fixed_tokens: LocalTokens) -> LocalTokens:
        """Return the target tokens of a compaction, if no compaction can reduce `fixed_tokens`."""
        if self.target_tokens is not None:
            return self.target_tokens
        fixed_tokens = min(fixed_tokens, self.trigger.goal_tokens)
        room_tokens = max(0, self.trigger.goal_tokens - self.margin_tokens - fixed_tokens)
        fraction = SMALL_TARGET_FRACTION if self.trigger.goal_tokens < SMALL_GOAL_TOKENS else TARGET_FRACTION
        return LocalTokens(fixed_tokens + int(room_tokens * fraction))

    def digest(self) -> bytes:
        """Return the 16-byte digest of all that a compaction depends on beside the history."""
        budget = self.trigger
        policy = budget.policy.model_dump(mode="json", include=set(COMPACTION_FIELDS), exclude_defaults=True)
        figures = (budget.goal_tokens, self.target_tokens, budget.window_tokens)
        wanted = ("reasoning",) if budget.wants_reasoning else ()
        return digest_of((*figures, budget.counter.vocabulary, policy, budget.cut_newest, *budget.reference_fields, *wanted))
