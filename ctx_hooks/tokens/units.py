"""Two units that a type checker keeps apart: tokens as the plugin counts them, and tokens as a provider counts them.

The factor between them is a deployment's provider tokens per local token (`attempts/observations.py`).
"""

from typing import NewType

LocalTokens = NewType("LocalTokens", int)
"""Counted here, in a vocabulary that LiteLLM ships."""
ProviderTokens = NewType("ProviderTokens", int)
"""Counted by the provider: windows, limits, outputs and the figures of its usage. A value computed from local tokens is an
estimate."""

ESTIMATE_ERROR_FRACTION = 0.05
"""How far an estimate in provider tokens may be off: the 95th percentile, with a learned factor."""
CHARS_PER_TOKEN = 4
"""English and code have three to five characters a token."""


def to_provider(tokens: LocalTokens, factor: float) -> ProviderTokens:
    """Return an estimate of `tokens` as the provider counts them, rounded down."""
    return ProviderTokens(int(tokens * factor))


def to_local(tokens: ProviderTokens, factor: float) -> LocalTokens:
    """Return how many local tokens fit into `tokens` of the provider's, rounded down."""
    return LocalTokens(int(tokens / factor))
