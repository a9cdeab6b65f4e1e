"""What the plugin saved of one request, against what would have been billed without it.

Without the plugin the provider's prompt cache would have served everything that the request before this one of the same
conversation sent, and only the newest messages would have been new. So a compaction, which rewrites the cache, is a cost
in the request that makes it, and saves in those that follow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ctx_hooks.tokens.units import LocalTokens, ProviderTokens

if TYPE_CHECKING:
    from ctx_hooks.compaction.cost import Prices


class Billed(NamedTuple):
    """The usage that an answer states, in provider tokens.

    Attributes:
        input_tokens: the whole input, cached or not.
        cached_tokens: as much of it as the prompt cache served.
        written_tokens: as much of it as was written into the cache at a price of its own.
        output_tokens: the output.
    """

    input_tokens: ProviderTokens
    cached_tokens: ProviderTokens = ProviderTokens(0)
    written_tokens: ProviderTokens = ProviderTokens(0)
    output_tokens: ProviderTokens = ProviderTokens(0)

    @property
    def uses_cache(self) -> bool:
        """Whether the provider has shown a prompt cache."""
        return self.cached_tokens + self.written_tokens > 0


def without_compression(received: LocalTokens, seen: LocalTokens, sent: LocalTokens, billed: Billed) -> Billed:
    """Return what would have been billed of the request as it came.

    Args:
        received: the request as it came.
        seen: as much of it as the request before this one had.
        sent: what was sent of it.
        billed: the bill of that, which gives the provider tokens per local token of this very conversation.
    """
    ratio = billed.input_tokens / max(1, sent)
    whole = ProviderTokens(round(received * ratio))
    cached = ProviderTokens(round(seen * ratio)) if billed.uses_cache else ProviderTokens(0)
    written = ProviderTokens(whole - cached) if billed.written_tokens else ProviderTokens(0)
    return Billed(whole, cached, written, billed.output_tokens)


def input_price(billed: Billed, prices: Prices) -> float:
    """Return the price of the input, in the currency of `prices`."""
    plain = billed.input_tokens - billed.cached_tokens - billed.written_tokens
    return plain * prices.plain + billed.cached_tokens * prices.cache_read + billed.written_tokens * prices.cache_write
