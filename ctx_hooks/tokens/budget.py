"""How large a model's window is, how much of it a request may fill, and the goal of a compression."""

from dataclasses import dataclass, replace
from typing import Literal

from ctx_hooks.conversation.conversation import Conversation
from ctx_hooks.conversation.handles import NO_ARCHIVE, CutTexts
from ctx_hooks.conversation.placeholders import Reference
from ctx_hooks.policy.settings import DEFAULT_POLICY, LEAST_WINDOW_TOKENS, Policy, fraction_of
from ctx_hooks.runtime.warnings import warn_once
from ctx_hooks.tokens.counter import Counter
from ctx_hooks.tokens.units import CHARS_PER_TOKEN, ESTIMATE_ERROR_FRACTION, LocalTokens, ProviderTokens

DEFAULT_WINDOW_TOKENS = ProviderTokens(128_000)
"""The window of an unknown model (nanobot)."""
LEAST_BUDGET_TOKENS = ProviderTokens(4_096)
"""The history's budget never falls below this (nanobot), unless the window itself is smaller."""
SMALL_WINDOW_TOKENS = ProviderTokens(32_000)
"""The plugin warns of a smaller window (OpenClaw)."""
DEFAULT_RESERVE_TOKENS, SCALED_RESERVE_FRACTION = 16_384, 0.08
"""The reserve if the policy states none, and what it is in a window that is too small for it (pi)."""
LARGEST_RESERVE_FRACTION = 0.25
"""Of the window: the most that a reserve in tokens, a requested output or a thinking budget keeps free."""
LARGEST_KEPT_FRACTION = 0.5
"""Of the budget: newest exchanges above it do not stay whole, unless the policy states a share."""
DYNAMIC_RESERVES = ((2_000, 32_768), (1_000, 16_384), (0, 8_192))
"""Mean tokens of the last ten messages above which the reserve applies (pi)."""
DYNAMIC_MESSAGES = 10
"""The last messages whose mean size the dynamic reserve follows (pi)."""
LEAST_RESULT_CHARS = 2_000
"""At least this much of a cut result is kept (OpenClaw)."""
INPUT_WINDOW_FAMILIES = ("gemini", "gpt-5")
"""Models whose documented window is for the input only: their output has a limit of its own."""

Source = Literal["policy", "model_info", "model_map", "learned", "refusal", "default"]


@dataclass(frozen=True, slots=True)
class Window:
    """A model's window, who states it, and whether the answer has to fit into it too."""

    tokens: ProviderTokens
    source: Source
    holds_output: bool = True


def window_of(policy: Policy, configured: object, known: int | None, *, holds_output: bool = True) -> Window:
    """Return the window that `model_info.max_input_tokens` states, else LiteLLM's, else 128,000; at most the policy's."""
    source: Source
    tokens, source = (known, "model_map") if known else (DEFAULT_WINDOW_TOKENS, "default")
    if isinstance(configured, int) and configured >= LEAST_WINDOW_TOKENS:
        tokens, source = configured, "model_info"
    elif configured is not None:
        warn_once(f"model_info.max_input_tokens is no window ({configured!r:.40}) and is passed over")
    if policy.window_tokens is not None and policy.window_tokens < tokens:
        tokens, source = policy.window_tokens, "policy"
    return Window(ProviderTokens(tokens), source, holds_output)


def holds_output(model: str) -> bool:
    """Whether the provider counts the requested output into the window, by the model's family."""
    return not any(family in model.lower() for family in INPUT_WINDOW_FAMILIES)


def budget_tokens_of(
    window: Window, policy: Policy, recent_message_tokens: float = 0.0, least_output_tokens: int = 0, requested: int = 0
) -> ProviderTokens:
    """Return how many tokens a request may have: the window less the reserve, but at least 4,096 or the whole window.

    The `requested` output (with `reserve: output`) and thinking with an answer (`least_output_tokens`) stay free, up
    to a quarter. `recent_message_tokens` is the mean of the last ten messages, in provider tokens.
    """
    quarter, least = _quarter_of(window), least_output_tokens
    # A quarter that is less than the default would compact small windows early: there the default is 8 % (pi).
    small = int(window.tokens * SCALED_RESERVE_FRACTION)
    reserve = DEFAULT_RESERVE_TOKENS if quarter >= DEFAULT_RESERVE_TOKENS else small
    if (share := fraction_of(policy.reserve)) is not None:
        reserve = int(window.tokens * share)
    elif isinstance(policy.reserve, int):
        reserve = min(policy.reserve, quarter)
    elif policy.reserve == "dynamic":
        reserve = next(tokens for mean, tokens in DYNAMIC_RESERVES if recent_message_tokens > mean or not mean)
        reserve = min(reserve, quarter)
    elif policy.reserve == "output" and requested and window.holds_output:
        reserve, least = 0, min(max(least, requested), quarter)
    if window.holds_output and 0 < least <= quarter:
        reserve = max(reserve, window.tokens - int((window.tokens - least) / (1 + ESTIMATE_ERROR_FRACTION)))
    return max(ProviderTokens(window.tokens - reserve), min(LEAST_BUDGET_TOKENS, window.tokens))


def _quarter_of(window: Window) -> int:
    return int(window.tokens * LARGEST_RESERVE_FRACTION)


def replaced_reserve(window: Window, policy: Policy) -> str:
    """Return which reserve in tokens, the largest of `dynamic`, is above a quarter of the window; "" if none is."""
    stated, most = DYNAMIC_RESERVES[0][1] if policy.reserve == "dynamic" else policy.reserve, _quarter_of(window)
    is_replaced = isinstance(stated, int) and stated > most
    return f"reserve {stated:,} becomes {most:,} in a window of {window.tokens:,}" if is_replaced else ""


def keep_recent_tokens_of(budget_tokens: LocalTokens, policy: Policy) -> LocalTokens:
    """Return how much of the newest text stays whole: `keep_recent`, in tokens at most half of the budget."""
    fraction = fraction_of(policy.keep_recent)
    share = int(budget_tokens * (LARGEST_KEPT_FRACTION if fraction is None else fraction))
    return LocalTokens(min(policy.keep_recent, share) if isinstance(policy.keep_recent, int) else share)


def largest_result_chars(window_tokens: int, policy: Policy) -> int:
    """Return the characters a single result may have: a share of the window, at least 2,000, at most the policy's cap."""
    share = int(window_tokens * policy.tool_results.max_fraction * CHARS_PER_TOKEN)
    return max(LEAST_RESULT_CHARS, min(share, policy.tool_results.max_chars))


def least_capped_chars(window_tokens: int, policy: Policy) -> int:
    """Return a length below which no cap of any kind can apply: shorter results need no check."""
    limits = policy.tool_results
    caps = (largest_result_chars(window_tokens, policy), limits.max_bytes and limits.max_bytes // 4, limits.max_lines)
    return min(most for most in caps if most is not None)


def may_cut_result(policy: Policy, window_tokens: ProviderTokens, longest_chars: int) -> bool:
    """Whether a result of so many characters may be cut although its request fits."""
    return policy.tool_results.apply == "always" and longest_chars > least_capped_chars(window_tokens, policy)


@dataclass(frozen=True, slots=True)
class Budget:
    """The goal of one compression, and what counts towards it.

    Attributes:
        goal_tokens: the most that the whole request may have.
        window_tokens: the model's window; the caps on single results are shares of it.
        counter: counts in the model's vocabulary, until its deadline.
        policy: says which texts may be cut, and how.
        cut_newest: whether the results of the newest tool loop may be cut too; by default they are protected.
        cut_texts: collects removed texts for the archive.
        wants_reasoning: whether the model refuses messages without the reasoning that they came with.
    """

    goal_tokens: LocalTokens
    window_tokens: ProviderTokens
    counter: Counter
    policy: Policy = DEFAULT_POLICY
    cut_newest: bool = True
    cut_texts: CutTexts = NO_ARCHIVE
    wants_reasoning: bool = False

    def excess(self, conversation: Conversation) -> int:
        """Return how many local tokens `conversation` is above the goal; zero or less when it fits."""
        return self.counter.conversation(conversation) - self.goal_tokens

    def reference(self, text: str) -> Reference | None:
        """Return the place of the complete removed text; None if nothing is archived."""
        return self.cut_texts.reference(text)

    @property
    def archives(self) -> bool:
        """Whether removed texts are archived."""
        return self.cut_texts.retrievable is not None

    def with_goal(self, goal_tokens: LocalTokens) -> "Budget":
        """Return this budget with another goal."""
        return replace(self, goal_tokens=goal_tokens)
