"""How hosted providers word an overflow, and the codes that say it without words."""

from __future__ import annotations

from ctx_hooks.overflow.patterns.pattern import Pattern, pattern

CODES = frozenset(
    {
        "context_length_exceeded",
        "exceed_context_size_error",
        "model_max_prompt_tokens_exceeded",
        "too_many_prompt_tokens",
        "context_window_exceeded",
        "context_window_exceeded_error",
        "context_window_overflow",
        "tokens_limit_reached",
        "max_context_length_exceeded",
        "model_context_window_exceeded",
        "input_too_long",
        "prompt_too_long",
        "string_above_context_length",
    }
)
"""`error.code` or `error.type` values that say it without words."""

HOSTED_MODELS: tuple[Pattern, ...] = (
    pattern(
        "gemini_supports",
        r"token count is {input},? but (?:the |this )?model (?:only )?supports (?:up to |at most )?{limit}",
        "Unable to submit request because the input token count is 1200000 but model only supports up to 1048576. Reduce the "
        "input token count and try again. You can also use the CountTokens API to calculate prompt token count and billable "
        "characters.",
        "https://cloud.google.com/vertex-ai/generative-ai/docs/model-reference/inference",
    ),
    pattern(
        "volcengine",
        r"total tokens of image and text exceed max message tokens(?:: {limit})?",
        "Total tokens of image and text exceed max message tokens",
        "https://www.volcengine.com/docs/82379/1299023",
    ),
    pattern(
        "openai_requested",
        r"maximum context length (?:is|of) {limit} tokens?[.,;]? however,? you requested (?:about )?{total} tokens "
        r"\({input} (?:in the messages|in your prompt|of text input|in the prompt|in the input)"
        r"(?:,? {more} (?:of tool input|in the functions|in the tools))?(?:[,;] {output} (?:in|for) the (?:completion|output))?",
        "This model's maximum context length is 4097 tokens. However, you requested 4120 tokens (3120 in the messages, "
        "1000 in the completion). Please reduce the length of the messages or completion.",
        "https://github.com/mckaywrigley/chatbot-ui/issues/102",
        kind="input_plus_output",
    ),
    pattern(
        "openai_resulted",
        r"(?:maximum context length (?:is|of)|configured limit of) {limit} tokens?[.,;]? (?:however,? )?"
        r"(?:your|the) (?:messages|input|prompt) (?:resulted in|contains?|has) (?:about )?{input} (?:input )?tokens",
        "This model's maximum context length is 128000 tokens. However, your messages resulted in 179011 tokens.",
        "https://github.com/baserow/baserow/issues/3011",
    ),
    pattern(
        "anthropic_prompt",
        r"(?:prompt|input) is too long: {input} tokens > {limit}",
        "prompt is too long: 219898 tokens > 200000 maximum",
        "https://github.com/earendil-works/pi/issues/102",
    ),
    pattern(
        "anthropic_with_output",
        r"input length and `?max_tokens`? exceed context limit: {input} \+ {output} > {limit}",
        "input length and `max_tokens` exceed context limit: 143653 + 64000 > 200000, decrease input length or `max_tokens`",
        "https://docs.anthropic.com/en/docs/build-with-claude/context-windows",
        kind="input_plus_output",
    ),
    pattern(
        "anthropic_long_context",
        r"extra usage is required for long context requests over {limit} tokens",
        "Extra usage is required for long context requests over 200k tokens",
        "https://docs.anthropic.com/en/docs/build-with-claude/context-windows",
    ),
    pattern(
        "gemini_counted",
        r"input token count \(?{input}\)? exceeds the maximum number of tokens allowed \(?{limit}",
        "The input token count (134123) exceeds the maximum number of tokens allowed (131072).",
        "https://github.com/google-gemini/gemini-cli/issues/12214",
    ),
    pattern(
        "gemini",
        r"input token count exceeds the maximum number of tokens allowed \(?{limit}",
        "The input token count exceeds the maximum number of tokens allowed (1048576).",
        "https://github.com/arkavo-org/arkavo-edge/issues/371",
    ),
    pattern(
        "cohere_total",
        r"\(prompt and prediction\) cannot exceed {limit} - received {total}",
        "too many tokens: total number of tokens (prompt and prediction) cannot exceed 2048 - received 6354.",
        "https://github.com/cohere-ai/sandbox-topically/issues/4",
        kind="input_plus_output",
    ),
    pattern(
        "dashscope",
        r"range of input length should be \[\d+, ?{limit}\]",
        "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 204800]",
        "https://github.com/QwenLM/qwen-code/issues/98",
    ),
    pattern(
        "sambanova",
        r"maximum context length of .{1,80}? is {limit}\. however, answering your request will take {total} tokens",
        "The maximum context length of DeepSeek-V3-0324 is 32768. However, answering your request will take 39732 tokens.",
        "https://github.com/OpenHands/OpenHands/pull/9252",
        kind="input_plus_output",
    ),
    pattern(
        "github_models",
        r"request body too large for .{1,80} model\. max size: {limit} tokens",
        "Request body too large for gpt-4o model. Max size: 8000 tokens.",
        "https://docs.github.com/en/github-models",
    ),
    pattern(
        "siliconflow",
        r"max_total_tokens \({total}\) must be less than or equal to max_seq_len \({limit}\)",
        "max_total_tokens (33802) must be less than or equal to max_seq_len (32768)",
        "https://github.com/continuedev/continue/issues/10993",
        kind="input_plus_output",
    ),
    pattern(
        "cerebras_no_body",
        r"^\W*(?:litellm\.\w+: )?(?:\w+ - )?(?:error code: )?(?:400|413) (?:status code )?\(no body\)",
        "400 status code (no body)",
        "https://inference-docs.cerebras.ai/support/error",
        only=("cerebras",),
    ),
    pattern(
        "vertex_no_body",
        r"google request failed with status code 400\W*$",
        "Google request failed with status code 400",
        "https://cloud.google.com/vertex-ai/generative-ai/docs/model-reference/inference",
        only=("vertex", "vertex_ai", "google"),
    ),
)
