"""Overflow wordings of providers and inference servers, with figures of known meaning, and codes of overflows.

An output limit means that the request asks for a longer answer than the model gives: a lower `max_tokens` is the remedy.
No pattern repeats a repetition, and gaps are bounded, so that time is linear in the text.
"""

import re
from functools import partial
from typing import Literal, NamedTuple

from ctx_hooks.tokens.units import ProviderTokens

Kind = Literal["input", "input_plus_output", "output_limit", "bytes"]

_GROUPED = r"\d{1,3}(?:[.,'’_ ]\d{3}){1,4}(?!\d)"
NUMBER = rf"(?:{_GROUPED}|\d{{1,12}})(?:[.,]\d{{1,3}}(?!\d))?(?:[km](?![a-z]))?(?!\d)"
_FIGURES = {name: f"(?P<{name}>{NUMBER})" for name in ("limit", "input", "more", "output", "total")}
_SCALES = {"k": 1_000, "m": 1_000_000}
_IS_GROUPED = re.compile(_GROUPED)


def number(text: str | None) -> ProviderTokens | None:
    """Return the whole number that a text matched by NUMBER writes: "9351.0", "9,351", "9 351", "9.351" or "128k"."""
    if not text:
        return None
    scale = _SCALES.get(text[-1], 1)
    digits = text.rstrip("km")
    grouped = _IS_GROUPED.match(digits)
    if grouped:
        return ProviderTokens(int(re.sub(r"\D", "", grouped[0])) * scale)
    return ProviderTokens(int(float(digits.replace(",", ".")) * scale))


class Pattern(NamedTuple):
    """One wording, as a regular expression for text on one line in lower case, as `texts.plain` makes it.

    `only` names the providers at which the text means an overflow; empty means any. `at_least`: the input is a lower bound.
    """

    name: str
    regex: re.Pattern[str]
    kind: Kind
    only: tuple[str, ...]
    at_least: bool


def pattern(name: str, text: str, kind: Kind = "input", only: tuple[str, ...] = (), *, at_least: bool = False) -> Pattern:
    """Return a wording whose figures are {limit}, {input}, {more} (further input), {output} and {total} (both) in its text."""
    for figure, regex in _FIGURES.items():
        text = text.replace("{" + figure + "}", regex)
    return Pattern(name, re.compile(text), kind, only, at_least)


CODES = frozenset({
    "context_length_exceeded", "exceed_context_size_error", "model_max_prompt_tokens_exceeded", "too_many_prompt_tokens",
    "context_window_exceeded", "context_window_exceeded_error", "context_window_overflow", "tokens_limit_reached",
    "max_context_length_exceeded", "model_context_window_exceeded", "input_too_long", "prompt_too_long", "context_too_long",
    "string_above_context_length", "context_overflow", "context_limit_exceeded",
})  # fmt: skip
"""Values of `error.code` or `error.type` that mean an overflow without words."""

_with_output = partial(pattern, kind="input_plus_output")

PATTERNS: tuple[Pattern, ...] = (
    pattern(
        "gemini_supports",
        r"token count is {input},? but (?:the |this )?model (?:only )?supports (?:up to |at most )?{limit}",
    ),
    pattern("volcengine", r"total tokens of image and text exceed max message tokens(?:: {limit})?"),
    _with_output(
        "openai_requested",
        r"maximum context length (?:is|of) {limit} tokens?[.,;]? however,? you requested (?:about )?{total} tokens "
        r"\({input} (?:in the messages|in your prompt|of text input|in the prompt|in the input)"
        r"(?:,? {more} (?:of tool input|in the functions|in the tools))?(?:[,;] {output} (?:in|for) the (?:completion|output))?",
    ),
    pattern(
        "openai_resulted",
        r"(?:maximum context length (?:is|of)|configured limit of) {limit} tokens?[.,;]? (?:however,? )?"
        r"(?:your|the) (?:messages|input|prompt|request) (?:resulted in|contains?|has) (?:about )?{input} (?:input )?tokens",
    ),
    pattern("anthropic_prompt", r"(?:prompt|input) is too long: {input} tokens > {limit}"),
    _with_output(
        "anthropic_with_output", r"input length and `?max_tokens`? exceed context limit: {input} \+ {output} > {limit}"
    ),
    pattern("anthropic_long_context", r"extra usage is required for long context requests over {limit} tokens"),
    pattern(
        "supports_context",
        r"(?:supports? only|only supports?|supports? (?:up to|at most|a maximum of)) (?:an? )?{limit}(?:[ -]tokens?)?(?: of)? context\b",
    ),
    _with_output("cohere_total", r"\(prompt and prediction\) cannot exceed {limit} - received {total}"),
    pattern("dashscope", r"range of input length should be \[\d+, ?{limit}\]"),
    _with_output(
        "sambanova",
        r"maximum context length of .{1,80}? is {limit}\. however, answering your request will take {total} tokens",
    ),
    pattern("github_models", r"request body too large for .{1,80} model\. max size: {limit} tokens"),
    _with_output("siliconflow", r"max_total_tokens \({total}\) must be less than or equal to max_seq_len \({limit}\)"),
    pattern(
        "cerebras_no_body",
        r"^\W*(?:litellm\.\w+: )?(?:\w+ - )?(?:error code: )?(?:400|413) (?:status code )?\(no body\)",
        only=("cerebras",),
    ),
    pattern("vertex_no_body", r"google request failed with status code 400\W*$", only=("vertex", "vertex_ai", "google")),
    _with_output("tgi", r"must be <= {limit}\. given: {input} `inputs` tokens and {output} `max_new_tokens`"),
    _with_output(
        "vllm_passed",
        r"you passed {input} input tokens and requested {output} output tokens\. however, the model's context length is only "
        r"{limit}",
    ),
    _with_output(
        "vllm_at_least",
        r"maximum context length is {limit} tokens\. however, you requested {output} output tokens and your prompt contains "
        r"(?:at least {input} input tokens|\d+ characters)",
        at_least=True,
    ),
    _with_output(
        "vllm_below_zero",
        r"max_(?:completion_|output_|new_)?tokens\W{1,3}(?:must|should|has to) be (?:at least ?1|positive|(?:greater than|>=?|≥) ?[01])"
        r"[,;]? ?(?:but )?(?:got|given|was)?:? ?-\d{2}",
    ),
    _with_output(
        "vllm_max_tokens",
        r"max_(?:completion_)?tokens[`'\"]? is too large: {output}\.? this model's maximum context length is {limit} tokens and "
        r"your request has {input} input tokens",
    ),
    _with_output(
        "sglang",
        r"requested token count exceeds the model's maximum context length of {limit}"
        r"(?: tokens\. you requested a total of {total} tokens: {input} tokens from the input messages and {output} tokens)?",
    ),
    _with_output(
        "tensorrt_llm_sum",
        r"sum of prompt length \({input}\)(?:,| and) query length \({more}\)(?:,? (?:and )?max_tokens \({output}\))? should not "
        r"exceed max_(?:num_tokens|seq_len) \({limit}\)",
    ),
    pattern(
        "tensorrt_llm_no_room",
        r"= max_seq_len \({limit}\) - `?splited_prompt_len`? \({input}\)(?: - `?query_token_len`? \({more}\))?",
    ),
    pattern("bedrock_output", r"malformed input request: {output} is not less or equal to {limit}", kind="output_limit"),
    pattern(
        "range_of_output",
        r"(?:(?:valid )?range of max_(?:completion_|output_)?tokens (?:is|should be)|max_tokens.{0,12}限制数值范围)"
        r" ?[\[(]\d+, ?{limit}[\])]",
        kind="output_limit",
    ),
    pattern(
        "output_expected",
        r"max_(?:completion_|output_|new_)?tokens`?.{0,80}(?:expected a value|must be|should be|has to be) "
        r"(?:<=?|≤|(?:less|smaller|lower) than(?: or equal to)?|at most|no more than|not exceed(?:ing)?) `?{limit}`?"
        r"(?:,? but got {output})?",
        kind="output_limit",
    ),
)
"""In the order in which they are tried; before all families."""
