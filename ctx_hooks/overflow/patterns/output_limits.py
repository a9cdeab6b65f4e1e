"""How providers say that a request asks for a longer answer than the model ever gives: a lower `max_tokens` is the remedy."""

from __future__ import annotations

import re

from ctx_hooks.overflow.patterns.pattern import Pattern, pattern

OTHER_OUTPUT = re.compile(
    r"\b(?:for|of|in|the|an) (?:audio|image|video|speech|voice|embedding)s?\b|"
    r"\b(?:audio|image|video|speech|voice|embedding)s? (?:output|input|generation|modality|responses?|tokens?)\b"
)
"""An output of another kind, whose limit says nothing of text."""

OUTPUT_LIMITS: tuple[Pattern, ...] = (
    pattern(
        "openai_output",
        r"max_(?:completion_|output_)?tokens`? is too large: {output}\. this model supports at most {limit} completion tokens",
        "max_tokens is too large: 8192. This model supports at most 4096 completion tokens, whereas you provided 8192.",
        "https://github.com/ChatGPTNextWeb/NextChat/issues/3195",
        kind="output_limit",
    ),
    pattern(
        "anthropic_output",
        r"max_tokens: {output} > {limit}, which is the maximum allowed number of output tokens",
        "max_tokens: 10000 > 4096, which is the maximum allowed number of output tokens for claude-3-5-sonnet-20240620",
        "https://github.com/ChatGPTNextWeb/NextChat/issues/4964",
        kind="output_limit",
    ),
    pattern(
        "bedrock_output",
        r"malformed input request: {output} is not less or equal to {limit}",
        "Malformed input request: 8192 is not less or equal to 8191, please reformat your input and try again.",
        "https://github.com/langchain-ai/langchain/issues/9697",
        kind="output_limit",
    ),
    pattern(
        "bedrock_converse_output",
        r"maximum tokens you requested exceeds the model limit of {limit}",
        "The maximum tokens you requested exceeds the model limit of 4096. Try again with a maximum tokens value that is lower "
        "than 4096.",
        "https://docs.aws.amazon.com/bedrock/latest/userguide/conversation-inference.html",
        kind="output_limit",
    ),
    pattern(
        "range_of_output",
        r"(?:(?:valid )?range of max_(?:completion_|output_)?tokens (?:is|should be)|max_tokens.{0,12}限制数值范围)"
        r" ?[\[(]\d+, ?{limit}[\])]",
        "Invalid max_tokens value, the valid range of max_tokens is [1, 8192]",
        "https://github.com/deepseek-ai/DeepSeek-V3/issues/69",
        kind="output_limit",
    ),
    pattern(
        "output_expected",
        r"max_(?:completion_|output_|new_)?tokens`?.{0,80}(?:expected a value|must be|should be|has to be) "
        r"(?:<=|≤|less than or equal to|at most|no more than|not exceed(?:ing)?) `?{limit}`?"
        r"(?:,? but got {output})?",
        "The parameter `max_completion_tokens` specified in the request are not valid: integer above maximum value, expected a "
        "value <= 12288, but got 32000 instead.",
        "https://github.com/Gitlawb/openclaude/issues/331",
        kind="output_limit",
    ),
    pattern(
        "output_exceeds",
        r"max_?(?:completion_?|output_?|new_?)?tokens`? \(?{output}\)? (?:exceeds?|is (?:larger|greater) than|cannot exceed) "
        r"(?:the )?(?:model'?s? )?(?:max(?:imum)? )?(?:allowed )?(?:number of )?(?:output|completion) ?(?:tokens?|limit)?"
        r".{0,30}?{limit}",
        "max_output_tokens (100000) exceeds the maximum output tokens of 65536",
        "https://docs.litellm.ai/docs/exception_mapping",
        kind="output_limit",
    ),
    pattern(
        "output_maximum_value",
        r"(?:the )?maximum value for `?max_(?:completion_|output_)?tokens`? is {limit}",
        "The maximum value for `max_tokens` is 8192",
        "https://console.groq.com/docs/errors",
        kind="output_limit",
    ),
    pattern(
        "gemini_output",
        r"supported range (?:for max_?output_?tokens )?is from \d+ \(inclusive\) to {limit} \(exclusive\)",
        "Unable to submit request because it has a maxOutputTokens value of 65537 but the supported range is from 1 "
        "(inclusive) to 65537 (exclusive). Update the value and try again.",
        "https://cloud.google.com/vertex-ai/generative-ai/docs/model-reference/inference",
        kind="output_limit",
    ),
)
