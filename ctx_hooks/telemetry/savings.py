"""The bill without the plugin, whose prompt cache would have the whole previous request, less the bill with it."""

from typing import NamedTuple

from ctx_hooks.compaction.cost import Prices
from ctx_hooks.tokens.units import LocalTokens, ProviderTokens
from ctx_hooks.tokens.usage import Billed


class Saved(NamedTuple):
    """Saved input tokens and dollars, below zero if the plugin cost more, None if unknown; 0 if `beyond_window`."""

    tokens: int | None
    dollars: float | None
    beyond_window: bool = False


NOTHING = Saved(0, 0.0)
BEYOND_WINDOW = Saved(0, 0.0, beyond_window=True)
UNKNOWN = Saved(None, None)


def saved_by(
    whole: LocalTokens, seen: LocalTokens, decided: LocalTokens, billed: Billed, prices: Prices | None, *, rewrites: bool
) -> Saved:
    """Return the savings for a request that was sent compressed: `whole` is what the client sent, `decided` what was sent.

    `seen` is the part of `whole` that the previous request had too. `rewrites`: the sent request does not share its prefix
    with the previous one. Then a bill without a prompt cache does not show whether the provider has one; if cached input has
    its own price, the dollars are unknown.
    """
    tokens, dollars = _difference(_bill_of(whole, seen if billed.uses_cache else 0, decided, billed), billed, prices)
    hidden = rewrites and seen and not billed.uses_cache and prices is not None and prices.cache_read < prices.plain
    return Saved(tokens, None if hidden else dollars)


def would_be_saved(
    whole: LocalTokens, seen: LocalTokens, decided: LocalTokens, billed: Billed, prices: Prices | None, *, rewrites: bool
) -> Saved:
    """Return the possible savings for a request that was sent whole, as `billed`; the rest is as in `saved_by`."""
    known = 0 if rewrites or not billed.uses_cache else max(0, decided - (whole - seen))
    return Saved(*_difference(billed, _bill_of(decided, known, whole, billed), prices))


def _bill_of(tokens: int, cached: int, of: int, billed: Billed) -> Billed:
    """Return the bill for so many local tokens, of which a prompt cache serves `cached`; `billed` is for `of`."""
    ratio = billed.input_tokens / max(1, of)
    input_tokens, from_cache = ProviderTokens(round(tokens * ratio)), ProviderTokens(round(cached * ratio))
    return Billed(input_tokens, from_cache, ProviderTokens(input_tokens - from_cache if billed.written_tokens else 0))


def _difference(more: Billed, less: Billed, prices: Prices | None) -> tuple[int, float | None]:
    """Return by how many tokens and dollars the input of one bill exceeds that of another."""
    tokens = more.input_tokens - less.input_tokens
    if prices is None:
        return tokens, None
    read, written = more.cached_tokens - less.cached_tokens, more.written_tokens - less.written_tokens
    plain = tokens - read - written
    return tokens, plain * prices.plain + read * prices.cache_read + written * prices.cache_write
