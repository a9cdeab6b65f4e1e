"""The plugin's savings for one request, compared with the bill without the plugin.

Without the plugin, the provider's prompt cache would have served the whole previous request of the same conversation. So a
compaction, which rewrites the cache, is a cost in its own request, and saves in later ones.
"""

from typing import NamedTuple

from ctx_hooks.compaction.cost import Prices
from ctx_hooks.tokens.units import LocalTokens, ProviderTokens
from ctx_hooks.tokens.usage import Billed


class Saved(NamedTuple):
    """The saved input tokens and dollars of a bill, below zero if the plugin cost more; None if unknown.

    A request `beyond_window` would have had no answer and no bill: it saves nothing.
    """

    tokens: int | None
    dollars: float | None
    beyond_window: bool = False


NOTHING = Saved(0, 0.0)
BEYOND_WINDOW = Saved(0, 0.0, beyond_window=True)
UNKNOWN = Saved(None, None)


def saved_by(
    whole: LocalTokens, seen: LocalTokens, decided: LocalTokens, billed: Billed, prices: Prices | None, *, rewrites: bool
) -> Saved:
    """Return the savings for a request that was sent compressed.

    Args:
        whole: the request as the client sent it.
        seen: the part of it that the previous request had too.
        decided: the request as sent.
        billed: the bill for the sent request.
        prices: prices of the deployment's input tokens; None if unknown.
        rewrites: whether the sent request does not share its prefix with the previous one. Then a bill without a prompt
            cache does not show whether the provider has one; if cached input has its own price, the dollars are unknown.
    """
    without = _bill_of(whole, seen if billed.uses_cache else 0, decided, billed)
    hidden = rewrites and seen and not billed.uses_cache and prices is not None and prices.cache_read < prices.plain
    return Saved(without.input_tokens - billed.input_tokens, None if hidden else _less(without, billed, prices))


def would_be_saved(
    whole: LocalTokens, seen: LocalTokens, decided: LocalTokens, billed: Billed, prices: Prices | None, *, rewrites: bool
) -> Saved:
    """Return the possible savings for a request that was sent unchanged, so that `billed` is the bill for all of it.

    The other arguments are as in `saved_by`, for the decided request. If that rewrites, no prompt cache has it.
    """
    known = 0 if rewrites or not billed.uses_cache else max(0, decided - (whole - seen))
    compressed = _bill_of(decided, known, whole, billed)
    return Saved(billed.input_tokens - compressed.input_tokens, _less(billed, compressed, prices))


def _bill_of(tokens: int, cached: int, of: int, billed: Billed) -> Billed:
    """Return the hypothetical bill for this many local tokens, of which the prompt cache serves `cached`.

    `billed` is for `of` local tokens. If it shows no prompt cache, the provider is assumed to have none.
    """
    ratio = billed.input_tokens / max(1, of)
    input_tokens, from_cache = ProviderTokens(round(tokens * ratio)), ProviderTokens(round(cached * ratio))
    written = ProviderTokens(input_tokens - from_cache if billed.written_tokens else 0)
    return Billed(input_tokens, from_cache, written, billed.output_tokens)


def _less(more: Billed, less: Billed, prices: Prices | None) -> float | None:
    return None if prices is None else input_price(more, prices) - input_price(less, prices)


def input_price(billed: Billed, prices: Prices) -> float:
    """Return the price of the input, in the currency of `prices`."""
    plain = billed.input_tokens - billed.cached_tokens - billed.written_tokens
    return plain * prices.plain + billed.cached_tokens * prices.cache_read + billed.written_tokens * prices.cache_write
