"""Read the usage of answers, whatever the provider calls it: the billed tokens, and whether the provider ran a tool."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from ctx_hooks.formats.fields import MAPPINGS, listed
from ctx_hooks.tokens.units import ProviderTokens

CALLERS_CALLS = frozenset(
    {"function_call", "custom_tool_call", "local_shell_call", "shell_call", "apply_patch_call", "computer_call"}
)
"""Items of a Responses answer that call the caller's tools, whoever defined them."""
SEARCH_NOTES = ("groundingMetadata", "grounding_metadata", "vertex_ai_grounding_metadata", "annotations")
"""Fields that an answer has if the provider searched for it (Google, OpenAI's chat)."""
USAGE_NOTES = ("server_tool_use", "toolUsePromptTokenCount", "web_search_requests", "num_search_queries", "num_sources_used")
CUT_SHORT = frozenset({"length", "max_tokens", "max_output_tokens", "model_context_window_exceeded"})


@dataclass(frozen=True, slots=True)
class Billed:
    """The usage that an answer states: the whole input, its parts that the prompt cache served and took, and the output."""

    input_tokens: ProviderTokens
    cached_tokens: ProviderTokens = ProviderTokens(0)
    written_tokens: ProviderTokens = ProviderTokens(0)
    output_tokens: ProviderTokens = ProviderTokens(0)

    @property
    def uncached_tokens(self) -> ProviderTokens:
        """The part of the input that the provider's prompt cache did not serve."""
        return ProviderTokens(self.input_tokens - self.cached_tokens)

    @property
    def uses_cache(self) -> bool:
        """Whether the provider shows a prompt cache."""
        return self.cached_tokens + self.written_tokens > 0


def billed_of(usage: Any) -> Billed | None:
    """Return the figures of a usage record; None if it states no input.

    Anthropic reports cache reads and writes besides `input_tokens`; the figures of OpenAI and LiteLLM include them.
    """
    usage = fields_of(usage)
    read, written = _count(usage, "cache_read_input_tokens"), _count(usage, "cache_creation_input_tokens")
    whole = _count(usage, "prompt_tokens")
    if not whole and usage.get("input_tokens") is not None:
        whole = _count(usage, "input_tokens") + read + written
    if not whole:
        return None
    details = fields_of(usage.get("prompt_tokens_details") or usage.get("input_tokens_details"))
    cached = min(whole, read or _count(details, "cached_tokens"))
    written = min(whole - cached, written or _count(details, "cache_creation_tokens"))
    output = _count(usage, "completion_tokens") or _count(usage, "output_tokens")
    return Billed(*map(ProviderTokens, (whole, cached, written, output)))


def used_hosted_tools(answer: Any) -> bool:
    """Return whether an answer of any route says that the provider ran a tool for it."""
    said = fields_of(answer)
    for block in (*listed(said.get("output")), *listed(said.get("content"))):
        kind = fields_of(block).get("type")
        called = str(getattr(kind, "value", kind) or "")
        if called == "server_tool_use" or (called.endswith("_call") and called not in CALLERS_CALLS):
            return True
    usage = fields_of(said.get("usage") or said.get("usageMetadata"))
    notes = _noted(usage, USAGE_NOTES) + _noted(fields_of(usage.get("prompt_tokens_details")), USAGE_NOTES)
    notes += _noted(said, SEARCH_NOTES[2:3])
    for choice in map(fields_of, (*listed(said.get("choices")), *listed(said.get("candidates")))):
        notes += _noted(choice, SEARCH_NOTES) + _noted(fields_of(choice.get("message")), SEARCH_NOTES)
    return any(map(_says_something, notes))


def _noted(held: Mapping[str, Any], names: tuple[str, ...]) -> list[Any]:
    return [held[name] for name in names if name in held]


def was_cut_short(answer: Any) -> bool:
    """Return whether a chat, Anthropic or Responses answer says that the end of the allowed or possible output ended it."""
    said = fields_of(answer)
    reasons = [fields_of(choice).get("finish_reason") for choice in listed(said.get("choices"))]
    reasons += [said.get("stop_reason"), fields_of(said.get("incomplete_details")).get("reason")]
    return not CUT_SHORT.isdisjoint(map(str, reasons))


def _says_something(value: Any) -> bool:
    """Whether a note contains a figure above 0 or any entry."""
    if isinstance(value, Mapping):
        return any(map(_says_something, value.values()))
    if isinstance(value, (int, float, str, list, tuple)):
        return bool(value)
    return value is not None and any(map(_says_something, getattr(value, "__dict__", {}).values()))


def _count(held: Mapping[str, Any], name: str) -> int:
    found = held.get(name)
    return found if isinstance(found, int) and not isinstance(found, bool) and found > 0 else 0


def fields_of(value: Any) -> Mapping[str, Any]:
    """Return all fields of a mapping or model, also undeclared ones of a model; none of anything else.

    `getattr` would take pydantic 6 µs for each field that a model lacks.
    """
    if isinstance(value, BaseModel):
        return {**value.model_extra, **vars(value)} if value.model_extra else vars(value)
    return value if isinstance(value, MAPPINGS) else getattr(value, "__dict__", {})
