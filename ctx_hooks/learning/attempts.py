"""An attempt: what was sent of a request, to where, and how it ended. A retry has to be smaller than the one before it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ctx_hooks.compaction.asked_again import NOTHING, AskedAgain
from ctx_hooks.request.uncounted import uncounted_in
from ctx_hooks.tokens.units import LocalTokens, ProviderTokens, to_provider

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ctx_hooks.compaction.history import History
    from ctx_hooks.compaction.summary.model_written import Choice
    from ctx_hooks.conversation.model import Format
    from ctx_hooks.learning.known import Known
    from ctx_hooks.overflow.recognise import Overflow
    from ctx_hooks.request.request import Request
    from ctx_hooks.request.target import Target


@dataclass(frozen=True, slots=True)
class Attempt:
    """What happened with one attempt: what was received and sent, and how it ended.

    Attributes:
        to: where it went, and what held there.
        known: what it was decided by.
        format: the format of the request.
        received_tokens: the request as the client sent it; None if it was not counted.
        sent_tokens: what was sent of it; None if it was not counted.
        first_tokens: what the first attempt of the request sent.
        output_tokens: the requested output, as it was sent.
        most_tokens: an upper bound of the request in any vocabulary, where it was not counted.
        other_tokens: how much of `sent_tokens` is of other scripts, figures and base64, without its weight.
        guessed_tokens: how much of `sent_tokens` is a guess: media, reasoning and unknown parts.
        counts_all: False for a request with content that cannot be counted here, such as a stored history.
        hosted_calls: whether what cannot be counted is only what hosted tools have left in the history.
        unbilled: whether part of it fills the window and is missing in the usage.
        lowered: whether the retry asks for less output than was refused.
        stored: whether part of the conversation lies with the provider.
        truncates: whether the provider is asked to drop the oldest items of what it keeps.
        failed: whether the attempt is over.
        spent: whether no retry could make the request smaller.
        overflow: what the provider's refusal said, if it was an overflow.
        refusal: the provider's own text.
        states_usage: False where the answer states none, so that any figure is LiteLLM's estimate.
        decided_tokens: what would have been sent, where it is only observed.
        seen_tokens: as much of `received_tokens` as the request before this one of the same conversation had.
        rewrites: whether what was decided does not share its prefix with the request before it.
        budget_tokens: what the request may have; None where it was not asked.
        milliseconds: what each phase of the decision took.
        choice: which form the newest compaction in what was decided has; None without one, and where no model writes
            summaries.
        timed_out: whether it took too long to compress, and lost its oldest turns instead.
        asked_again: the calls of the newest answer that had been made before, as the request's first attempt shows it.
    """

    to: Target
    known: Known
    format: Format
    received_tokens: LocalTokens | None = None
    sent_tokens: LocalTokens | None = None
    first_tokens: LocalTokens | None = None
    output_tokens: ProviderTokens | None = None
    most_tokens: int = 0
    guessed_tokens: LocalTokens = LocalTokens(0)
    counts_all: bool = True
    hosted_calls: bool = False
    unbilled: bool = False
    lowered: bool = False
    stored: bool = False
    truncates: bool = False
    failed: bool = False
    spent: bool = False
    overflow: Overflow | None = None
    refusal: str = ""
    states_usage: bool = True
    decided_tokens: LocalTokens | None = None
    seen_tokens: LocalTokens = LocalTokens(0)
    rewrites: bool = False
    budget_tokens: ProviderTokens | None = None
    milliseconds: Mapping[str, float] = field(default_factory=dict)
    choice: Choice | None = None
    other_tokens: LocalTokens = LocalTokens(0)
    timed_out: bool = False
    asked_again: AskedAgain = NOTHING

    @property
    def sent_provider_tokens(self) -> ProviderTokens:
        """The estimate of what was sent; 0 where it was not counted."""
        return to_provider(self.sent_tokens or LocalTokens(0), self.known.factor)

    @property
    def received_provider_tokens(self) -> ProviderTokens:
        """The estimate of what was received; 0 where it was not counted."""
        return to_provider(self.received_tokens or LocalTokens(0), self.known.factor)

    @property
    def latin_tokens(self) -> float:
        """As much of `sent_tokens` as is not of other scripts, figures and base64; 0 where it was not counted."""
        return (self.sent_tokens or 0) - self.other_tokens * self.known.other_weight

    def weighed(self, other_weight: float) -> Attempt:
        """Return the attempt with what it sent by another weight of other scripts."""
        known = replace(self.known, other_weight=other_weight)
        if self.sent_tokens is None or not self.sent_tokens:
            return replace(self, known=known)
        added_tokens = int(self.other_tokens * (other_weight - self.known.other_weight))
        sent = LocalTokens(max(1, self.sent_tokens + added_tokens))
        first = LocalTokens(int((self.first_tokens or self.sent_tokens) * sent / self.sent_tokens))
        return replace(self, known=known, sent_tokens=sent, first_tokens=first)


def attempt_at(request: Request, to: Target, known: Known, history: History | None = None) -> Attempt:
    """Return the attempt that sends a request unchanged, with what was counted of it; `history` is None if nothing was.

    A guess are media, reasoning, and definitions of hosted tools.
    """
    attempt = Attempt(
        to,
        known,
        request.format,
        output_tokens=request.max_output_tokens,
        stored=request.continues_stored_history,
        truncates=request.asks_for_truncation,
    )
    return attempt if history is None else counted(attempt, request, history)


def counted(attempt: Attempt, request: Request, history: History) -> Attempt:
    """Return an attempt that sends its request unchanged, with what was counted of it later."""
    uncounted, tokens = uncounted_in(request), history.tokens
    return replace(
        attempt,
        received_tokens=tokens,
        sent_tokens=tokens,
        guessed_tokens=LocalTokens(sum(m.guessed_tokens for m in history.index) + uncounted.tools_tokens),
        other_tokens=history.other_tokens,
        counts_all=not uncounted.holds_any,
        hosted_calls=uncounted.holds_hosted,
        unbilled=uncounted.holds_unbilled,
        seen_tokens=history.seen_tokens,
    )


def sent_unchanged(request: Request, attempt: Attempt) -> Attempt:
    """Return an attempt that sends the request unchanged, whatever was decided."""
    return replace(
        attempt,
        sent_tokens=attempt.received_tokens,
        decided_tokens=attempt.sent_tokens,
        output_tokens=request.max_output_tokens,
        lowered=False,
        truncates=request.asks_for_truncation,
    )
