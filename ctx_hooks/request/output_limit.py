"""The requested output: its field, the largest accepted value, and how to write a lower one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ctx_hooks.overflow.retry_plan import LEAST_OUTPUT_TOKENS
from ctx_hooks.runtime.warnings import warn_once
from ctx_hooks.tokens.units import ESTIMATE_ERROR_FRACTION, ProviderTokens

if TYPE_CHECKING:
    from ctx_hooks.formats.wire_format import WireFormat
    from ctx_hooks.request.request import Request
    from ctx_hooks.tokens.budget import Window

LEAST_ANSWER_TOKENS = 1_024
"""The minimum for the answer beside the thinking; if there is less, thinking has half of the output."""
LEAST_THINKING_TOKENS = 1_024
"""Anthropic: "`max_tokens` must be greater than `thinking.budget_tokens`", which is at least 1,024."""


def requested_output_tokens(wire: WireFormat, fields: Mapping[str, Any]) -> ProviderTokens | None:
    """Return the output that a request asks for, None if it states none; a value that is no positive number is logged."""
    options = wire.options(fields)
    for name in wire.output_fields:
        value = options.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return ProviderTokens(value)
        if value is not None:
            warn_once(f"{name} is no positive number ({value!r:.40}) and is passed over")
    return None


def least_output_tokens(fields: Mapping[str, Any]) -> ProviderTokens:
    """Return the output below which a request would have to think less, 0 if it names no thinking budget.

    Anthropic: "Changes to thinking parameters (enabled/disabled or budget allocation) invalidate message cache breakpoints".
    """
    thinking = fields.get("thinking")
    budget = thinking.get("budget_tokens") if isinstance(thinking, Mapping) else None
    return ProviderTokens(budget + LEAST_ANSWER_TOKENS if isinstance(budget, int) and budget > 0 else 0)


def output_limits_in(wire: WireFormat, changes: Mapping[str, Any]) -> dict[str, int]:
    """Return the output limits among changed fields by name."""
    options = wire.options(changes)
    return {name: options[name] for name in wire.output_fields if name in options}


def is_output_change(wire: WireFormat, changes: Mapping[str, Any]) -> bool:
    """Whether changed fields only ask for less output; `with_output` keeps `thinking` below it."""
    return bool(output_limits_in(wire, changes)) and changes.keys() <= {*wire.output_holders, "thinking"}


def allowed_output_tokens(
    requested: ProviderTokens, most: ProviderTokens | None, window: Window, input_tokens: ProviderTokens | None
) -> ProviderTokens:
    """Return as much of the requested output as a deployment accepts.

    It leaves room for the estimate's error while LEAST_OUTPUT_TOKENS remain. It never asks for less than these: then the
    provider decides, and if it refuses, the conversation is compacted.

    Args:
        requested: the output that the request asks for.
        most: the largest output that the deployment gives, None if unknown.
        window: the limit for input and output together, if the window includes the output.
        input_tokens: an estimate of the input; None if it was not counted, and the window allows any output.
    """
    allowed = requested
    if most is not None and most >= LEAST_OUTPUT_TOKENS:
        allowed = min(requested, most)
    if window.holds_output and input_tokens is not None and LEAST_OUTPUT_TOKENS <= window.tokens - input_tokens < allowed:
        room = ProviderTokens(window.tokens - int(input_tokens * (1 + ESTIMATE_ERROR_FRACTION)))
        allowed = max(room, LEAST_OUTPUT_TOKENS)
    return allowed


def with_output(request: Request, tokens: ProviderTokens) -> dict[str, Any]:
    """Return the fields that ask for an output of `tokens`, with Anthropic's thinking kept below it."""
    wire, fields = request.wire, request.fields
    options = wire.options(fields)
    name = next((n for n in wire.output_fields if options.get(n) is not None), wire.output_field)
    changes = wire.with_options(fields, {name: int(tokens)})
    thinking = fields.get("thinking")
    if isinstance(thinking, Mapping) and isinstance(thinking.get("budget_tokens"), int):
        budget = thinking["budget_tokens"]
        lowered = budget if tokens >= budget + LEAST_ANSWER_TOKENS else min(budget, tokens // 2)
        kept = {**thinking, "budget_tokens": lowered}
        changes["thinking"] = kept if lowered >= LEAST_THINKING_TOKENS else {"type": "disabled"}
    return changes
