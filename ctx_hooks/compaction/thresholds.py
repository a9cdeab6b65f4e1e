"""When a compaction is due, and what it leaves."""

from dataclasses import dataclass

from ctx_hooks.compaction.message_index import digest_of
from ctx_hooks.compaction.steps import extra_steps
from ctx_hooks.tokens.budget import Budget
from ctx_hooks.tokens.units import LocalTokens

COMPACTION_FIELDS = frozenset({"compaction", "keep_recent", "language", "quoting", "tool_results"})
"""The fields of a policy that a compaction depends on beside its budget: no other may cost a conversation its summary, nor
rewrite what a provider's prompt cache holds."""
MARGIN_FRACTION = 0.02
"""So much of the goal is taken for what a request ends with and the next one may lack, such as a reminder, where it is not
more: whether a compaction was due is then found again, whichever of the two a request is."""
TARGET_FRACTION, SMALL_TARGET_FRACTION = 0.5625, 0.625
SMALL_GOAL_TOKENS = 20_000
"""What a compaction leaves of the room behind fixed text; more below this goal (docs/appendix/compaction_depth.md)."""


@dataclass(frozen=True, slots=True)
class Thresholds:
    """A compaction is due above the goal of `trigger`; it compacts down to `target_tokens`, None for the usual share."""

    trigger: Budget
    target_tokens: LocalTokens | None = None

    @property
    def margin_tokens(self) -> int:
        """What is taken for what a request ends with and the next one may lack."""
        return int(self.trigger.goal_tokens * MARGIN_FRACTION)

    def target_tokens_behind(self, fixed_tokens: LocalTokens) -> LocalTokens:
        """Return what a compaction compacts down to, where no compaction makes `fixed_tokens` smaller."""
        if self.target_tokens is not None:
            return self.target_tokens
        fixed_tokens = min(fixed_tokens, self.trigger.goal_tokens)
        room_tokens = max(0, self.trigger.goal_tokens - self.margin_tokens - fixed_tokens)
        fraction = SMALL_TARGET_FRACTION if self.trigger.goal_tokens < SMALL_GOAL_TOKENS else TARGET_FRACTION
        return LocalTokens(fixed_tokens + int(room_tokens * fraction))

    def digest(self) -> bytes:
        """Return 16 bytes that stand for what a compaction depends on beside the history."""
        budget = self.trigger
        # Nobody knows what an installed step reads. A field that is not set says nothing: a new one changes no digest.
        fields = None if extra_steps() else set(COMPACTION_FIELDS)
        policy = budget.policy.model_dump(mode="json", include=fields, exclude_defaults=True)
        figures = (budget.goal_tokens, self.target_tokens, budget.window_tokens)
        references = budget.cut_texts.digested if budget.cut_texts is not None else ()
        return digest_of((*figures, budget.counter.vocabulary, policy, budget.cut_newest, *references))
