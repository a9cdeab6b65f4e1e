"""The wordings in which providers say that a request is too long, as data: each with a verbatim sample and its source."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

Kind = Literal["input", "input_plus_output", "output_limit"]


@dataclass(frozen=True, slots=True)
class Pattern:
    """One wording. Groups: limit, input, more (further input), output, total (input and output), excess.

    `only` names the providers at which the text means an overflow, `statuses` the HTTP statuses; empty means any.
    """

    name: str
    kind: Kind
    regex: re.Pattern[str]
    sample: str
    source: str
    only: tuple[str, ...] = ()
    statuses: tuple[int, ...] = ()


_N = r"\d[\d,_]*(?:\.\d+)?"


def _re(text: str) -> re.Pattern[str]:
    """Compile with `{limit}` and the like standing for a number in a group of that name."""
    for group in ("limit", "input", "more", "output", "total", "excess"):
        text = text.replace("{" + group + "}", f"(?P<{group}>{_N})")
    return re.compile(text, re.IGNORECASE)


def _pattern(
    name: str,
    kind: Kind,
    text: str,
    sample: str,
    source: str,
    *,
    only: tuple[str, ...] = (),
    statuses: tuple[int, ...] = (),
) -> Pattern:
    return Pattern(name, kind, _re(text), sample, source, only, statuses)


CODES = frozenset(
    {
        "context_length_exceeded",
        "exceed_context_size_error",
        "model_max_prompt_tokens_exceeded",
        "too_many_prompt_tokens",
        "context_window_exceeded",
        "tokens_limit_reached",
        "max_context_length_exceeded",
    }
)
"""`error.code` or `error.type` values that say it without words."""

PATTERNS: tuple[Pattern, ...] = (
    _pattern(
        "openai_requested",
        "input_plus_output",
        r"maximum context length (?:is|of) {limit} tokens[.,] however,? you requested (?:about )?{total} tokens "
        r"\({input} (?:in the messages|in your prompt|of text input|in the prompt)"
        r"(?:,? {more} of tool input)?(?:[,;] {output} (?:in|for) the (?:completion|output))?",
        "This model's maximum context length is 4097 tokens. However, you requested 4120 tokens (3120 in the messages, "
        "1000 in the completion). Please reduce the length of the messages or completion.",
        "https://github.com/mckaywrigley/chatbot-ui/issues/102",
    ),
    _pattern(
        "openai_resulted",
        "input",
        r"(?:maximum context length is|configured limit of) {limit} tokens\.? (?:however, )?your messages resulted in {input} tokens",
        "This model's maximum context length is 128000 tokens. However, your messages resulted in 179011 tokens.",
        "https://github.com/baserow/baserow/issues/3011",
    ),
    _pattern(
        "anthropic_prompt",
        "input",
        r"prompt is too long: {input} tokens > {limit} maximum",
        "prompt is too long: 219898 tokens > 200000 maximum",
        "https://github.com/earendil-works/pi/issues/102",
    ),
    _pattern(
        "anthropic_with_output",
        "input_plus_output",
        r"input length and `?max_tokens`? exceed context limit: {input} \+ {output} > {limit}",
        "input length and `max_tokens` exceed context limit: 143653 + 64000 > 200000, decrease input length or `max_tokens`",
        "https://docs.anthropic.com/en/docs/build-with-claude/context-windows",
    ),
)
"""In the order in which they are tried: wordings with more figures first."""

NOT_OVERFLOW: tuple[Pattern, ...] = ()
"""Wordings that look like an overflow and are none."""
