"""What the plugin saved of one request, against what would have been billed without it.

Without the plugin the provider's prompt cache would have served everything that the request before this one of the same
conversation sent, and only the newest messages would have been new. So a compaction, which rewrites the cache, is a cost
in the request that makes it, and saves in those that follow.
"""

from typing import NamedTuple

from ctx_hooks.compaction.cost import Prices
from ctx_hooks.tokens.units import LocalTokens, ProviderTokens
from ctx_hooks.tokens.usage import Billed


class Saved(NamedTuple):
    """What the plugin saved of one request, below zero where it cost more than it saved.

    Attributes:
        tokens: input tokens of the bill; None where nothing was counted.
        dollars: of the bill; None where a price is not known.
        beyond_window: whether the request as received exceeds the window. Without the plugin there would have been no answer
            and no bill: neither tokens nor dollars are saved.
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
    """Return what was saved of a request that was sent compressed.

    Args:
        whole: the request as the client sent it.
        seen: as much of it as the request before this one had.
        decided: what was sent of it.
        billed: the bill of that.
        prices: of the deployment's input tokens; None where they are not known.
        rewrites: whether what was sent does not share its prefix with the request before. Then a bill without a prompt
            cache does not say whether the provider has one, and where cached input has a price of its own nobody knows
            the dollars.
    """
    without = _bill_of(whole, seen if billed.uses_cache else 0, decided, billed)
    hidden = rewrites and seen and not billed.uses_cache and prices is not None and prices.cache_read < prices.plain
    return Saved(without.input_tokens - billed.input_tokens, None if hidden else _less(without, billed, prices))


def would_be_saved(
    whole: LocalTokens, seen: LocalTokens, decided: LocalTokens, billed: Billed, prices: Prices | None, *, rewrites: bool
) -> Saved:
    """Return what would have been saved of a request that was sent as received, so that `billed` is the bill of the whole.

    The other arguments are those of `saved_by`, for what would have been sent. If that rewrites, no prompt cache holds it.
    """
    known = 0 if rewrites or not billed.uses_cache else max(0, decided - (whole - seen))
    compressed = _bill_of(decided, known, whole, billed)
    return Saved(billed.input_tokens - compressed.input_tokens, _less(billed, compressed, prices))


def _bill_of(tokens: int, cached: int, of: int, billed: Billed) -> Billed:
    """Return what would have been billed of so many local tokens, of which the prompt cache serves `cached`.

    The bill of `of` local tokens gives the provider tokens per local token of this very conversation. A provider that shows
    no prompt cache in it is taken for one that has none.
    """
    ratio = billed.input_tokens / max(1, of)
    input_tokens, from_cache = ProviderTokens(round(tokens * ratio)), ProviderTokens(round(cached * ratio))
    written = ProviderTokens(input_tokens - from_cache if billed.written_tokens else 0)
    return Billed(input_tokens, from_cache, written, billed.output_tokens)


def _less(more: Billed, less: Billed, prices: Prices | None) -> float | None:
    """Return by how much the input of one bill costs more than another's; None if a price is not known."""
    return None if prices is None else input_price(more, prices) - input_price(less, prices)


def input_price(billed: Billed, prices: Prices) -> float:
    """Return the price of the input, in the currency of `prices`."""
    plain = billed.input_tokens - billed.cached_tokens - billed.written_tokens
    return plain * prices.plain + billed.cached_tokens * prices.cache_read + billed.written_tokens * prices.cache_write
