"""The requested output: the largest accepted value, and how to write a lower one."""

from collections.abc import Mapping
from typing import Any

from ctx_hooks.formats.wire_format import WireFormat
from ctx_hooks.overflow.retry_plan import LEAST_OUTPUT_TOKENS
from ctx_hooks.request.request import LEAST_ANSWER_TOKENS, Request
from ctx_hooks.tokens.budget import Window
from ctx_hooks.tokens.units import ESTIMATE_ERROR_FRACTION, ProviderTokens

LEAST_THINKING_TOKENS = 1_024
"""Anthropic: "`max_tokens` must be greater than `thinking.budget_tokens`", which is at least 1,024."""


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
