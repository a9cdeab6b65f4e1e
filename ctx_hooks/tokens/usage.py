"""What an answer's usage record says was billed, whatever the provider calls it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ctx_hooks.tokens.units import ProviderTokens


class Billed(NamedTuple):
    """The usage that an answer states, in provider tokens.

    Attributes:
        input_tokens: the whole input, cached or not.
        cached_tokens: as much of it as the provider's prompt cache served.
        written_tokens: as much of it as was written into the cache at a price of its own (Anthropic).
        output_tokens: the output, reasoning included.
    """

    input_tokens: ProviderTokens
    cached_tokens: ProviderTokens = ProviderTokens(0)
    written_tokens: ProviderTokens = ProviderTokens(0)
    output_tokens: ProviderTokens = ProviderTokens(0)

    @property
    def uses_cache(self) -> bool:
        """Whether the provider shows a prompt cache."""
        return self.cached_tokens + self.written_tokens > 0


def billed_of(usage: Any) -> Billed | None:
    """Return what a usage record states, None when it states no input.

    Anthropic reports what came from and went into the prompt cache beside `input_tokens`; OpenAI's figures and LiteLLM's
    own include it.

    >>> billed_of({"input_tokens": 20, "cache_read_input_tokens": 900, "cache_creation_input_tokens": 80})
    Billed(input_tokens=1000, cached_tokens=900, written_tokens=80, output_tokens=0)
    >>> billed_of({"prompt_tokens": 1000, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 900}})
    Billed(input_tokens=1000, cached_tokens=900, written_tokens=0, output_tokens=5)
    """
    fields = _fields(usage)
    read, written = _count(fields, "cache_read_input_tokens"), _count(fields, "cache_creation_input_tokens")
    whole = _count(fields, "prompt_tokens") or _whole_of_parts(fields, read + written)
    if not whole:
        return None
    details = {**_fields(fields.get("input_tokens_details")), **_fields(fields.get("prompt_tokens_details"))}
    cached = min(whole, read or _count(details, "cached_tokens"))
    written = min(whole - cached, written or _count(details, "cache_creation_tokens"))
    output = _count(fields, "completion_tokens") or _count(fields, "output_tokens")
    return Billed(*map(ProviderTokens, (whole, cached, written, output)))


def _whole_of_parts(fields: Mapping[str, Any], cached: int) -> int:
    """Return the input of a record with Anthropic's or OpenAI's `input_tokens`, 0 for one without."""
    return _count(fields, "input_tokens") + cached if "input_tokens" in fields else 0


def _count(fields: Mapping[str, Any], name: str) -> int:
    found = fields.get(name)
    return found if isinstance(found, int) and not isinstance(found, bool) and found > 0 else 0


def _fields(usage: Any) -> Mapping[str, Any]:
    return usage if isinstance(usage, Mapping) else getattr(usage, "__dict__", {})
