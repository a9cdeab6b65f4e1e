"""How providers and inference servers word an overflow whose figures have a known meaning, and the codes that say it.

An output limit says that the request asks for a longer answer than the model ever gives: a lower `max_tokens` is the remedy.
"""

from __future__ import annotations

import re
from functools import partial

from ctx_hooks.overflow.patterns.pattern import Pattern

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

OTHER_OUTPUT = re.compile(
    r"\b(?:for|of|in|the|an) (?:audio|image|video|speech|voice|embedding)s?\b|"
    r"\b(?:audio|image|video|speech|voice|embedding)s? (?:output|input|generation|modality|responses?|tokens?)\b"
)
"""An output of another kind, whose limit says nothing of text."""

_with_output = partial(Pattern, kind="input_plus_output")

PATTERNS: tuple[Pattern, ...] = (
    Pattern(
        "gemini_supports",
        r"token count is {input},? but (?:the |this )?model (?:only )?supports (?:up to |at most )?{limit}",
        "Unable to submit request because the input token count is 1200000 but model only supports up to 1048576. Reduce the "
        "input token count and try again. You can also use the CountTokens API to calculate prompt token count and billable "
        "characters.",
        "https://cloud.google.com/vertex-ai/generative-ai/docs/model-reference/inference",
    ),
    Pattern(
        "volcengine",
        r"total tokens of image and text exceed max message tokens(?:: {limit})?",
        "Total tokens of image and text exceed max message tokens",
        "https://www.volcengine.com/docs/82379/1299023",
    ),
    _with_output(
        "openai_requested",
        r"maximum context length (?:is|of) {limit} tokens?[.,;]? however,? you requested (?:about )?{total} tokens "
        r"\({input} (?:in the messages|in your prompt|of text input|in the prompt|in the input)"
        r"(?:,? {more} (?:of tool input|in the functions|in the tools))?(?:[,;] {output} (?:in|for) the (?:completion|output))?",
        "This model's maximum context length is 4097 tokens. However, you requested 4120 tokens (3120 in the messages, "
        "1000 in the completion). Please reduce the length of the messages or completion.",
        "https://github.com/mckaywrigley/chatbot-ui/issues/102",
    ),
    Pattern(
        "openai_resulted",
        r"(?:maximum context length (?:is|of)|configured limit of) {limit} tokens?[.,;]? (?:however,? )?"
        r"(?:your|the) (?:messages|input|prompt|request) (?:resulted in|contains?|has) (?:about )?{input} (?:input )?tokens",
        "This model's maximum context length is 128000 tokens. However, your messages resulted in 179011 tokens.",
        "https://github.com/baserow/baserow/issues/3011",
    ),
    Pattern(
        "anthropic_prompt",
        r"(?:prompt|input) is too long: {input} tokens > {limit}",
        "prompt is too long: 219898 tokens > 200000 maximum",
        "https://github.com/earendil-works/pi/issues/102",
    ),
    _with_output(
        "anthropic_with_output",
        r"input length and `?max_tokens`? exceed context limit: {input} \+ {output} > {limit}",
        "input length and `max_tokens` exceed context limit: 143653 + 64000 > 200000, decrease input length or `max_tokens`",
        "https://docs.anthropic.com/en/docs/build-with-claude/context-windows",
    ),
    Pattern(
        "anthropic_long_context",
        r"extra usage is required for long context requests over {limit} tokens",
        "Extra usage is required for long context requests over 200k tokens",
        "https://docs.anthropic.com/en/docs/build-with-claude/context-windows",
    ),
    _with_output(
        "cohere_total",
        r"\(prompt and prediction\) cannot exceed {limit} - received {total}",
        "too many tokens: total number of tokens (prompt and prediction) cannot exceed 2048 - received 6354.",
        "https://github.com/cohere-ai/sandbox-topically/issues/4",
    ),
    Pattern(
        "dashscope",
        r"range of input length should be \[\d+, ?{limit}\]",
        "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 204800]",
        "https://github.com/QwenLM/qwen-code/issues/98",
    ),
    _with_output(
        "sambanova",
        r"maximum context length of .{1,80}? is {limit}\. however, answering your request will take {total} tokens",
        "The maximum context length of DeepSeek-V3-0324 is 32768. However, answering your request will take 39732 tokens.",
        "https://github.com/OpenHands/OpenHands/pull/9252",
    ),
    Pattern(
        "github_models",
        r"request body too large for .{1,80} model\. max size: {limit} tokens",
        "Request body too large for gpt-4o model. Max size: 8000 tokens.",
        "https://docs.github.com/en/github-models",
    ),
    _with_output(
        "siliconflow",
        r"max_total_tokens \({total}\) must be less than or equal to max_seq_len \({limit}\)",
        "max_total_tokens (33802) must be less than or equal to max_seq_len (32768)",
        "https://github.com/continuedev/continue/issues/10993",
    ),
    Pattern(
        "cerebras_no_body",
        r"^\W*(?:litellm\.\w+: )?(?:\w+ - )?(?:error code: )?(?:400|413) (?:status code )?\(no body\)",
        "400 status code (no body)",
        "https://inference-docs.cerebras.ai/support/error",
        only=("cerebras",),
    ),
    Pattern(
        "vertex_no_body",
        r"google request failed with status code 400\W*$",
        "Google request failed with status code 400",
        "https://cloud.google.com/vertex-ai/generative-ai/docs/model-reference/inference",
        only=("vertex", "vertex_ai", "google"),
    ),
    Pattern(
        "grpc_message",
        r"(?:sent|received|send|receive) message larger than max|message larger than max \(\d",
        "Sent message larger than max (50000056 vs. 20971520)",
        "https://grpc.github.io/grpc/core/md_doc_statuscodes.html",
    ),
    _with_output(
        "tgi",
        r"must be <= {limit}\. given: {input} `inputs` tokens and {output} `max_new_tokens`",
        "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8192. Given: 6204 `inputs` tokens and 2047 "
        "`max_new_tokens`",
        "https://github.com/huggingface/chat-ui/issues/1149",
    ),
    _with_output(
        "vllm_passed",
        r"you passed {input} input tokens and requested {output} output tokens\. however, the model's context length is only "
        r"{limit}",
        "You passed 98305 input tokens and requested 32768 output tokens. However, the model's context length is only 131072 "
        "tokens, resulting in a maximum input length of 98304 tokens.",
        "https://github.com/vllm-project/vllm",
    ),
    _with_output(
        "vllm_at_least",
        r"maximum context length is {limit} tokens\. however, you requested {output} output tokens and your prompt contains at "
        r"least {input} input tokens",
        "This model's maximum context length is 4096 tokens. However, you requested 1 output tokens and your prompt contains "
        "at least 4096 input tokens, for a total of at least 4097 tokens.",
        "https://github.com/vllm-project/vllm-ascend/issues/11557",
        at_least=True,
    ),
    _with_output(
        "vllm_characters",
        r"maximum context length is {limit} tokens\. however, you requested {output} output tokens and your prompt contains "
        r"\d+ characters",
        "This model's maximum context length is 131072 tokens. However, you requested 131072 output tokens and your prompt "
        "contains 14233 characters (more than 0 characters, which is the upper bound for 0 input tokens).",
        "https://github.com/gi-dellav/zerostack/issues/22",
    ),
    _with_output(
        "vllm_below_zero",
        r"max_(?:completion_)?tokens must be at least 1, got -\d{2}",
        "max_tokens must be at least 1, got -4312.",
        "https://github.com/vllm-project/vllm/issues/2418",
    ),
    _with_output(
        "vllm_max_tokens",
        r"max_(?:completion_)?tokens[`'\"]? is too large: {output}\.? this model's maximum context length is {limit} tokens and "
        r"your request has {input} input tokens",
        "'max_tokens' or 'max_completion_tokens' is too large: 4096. This model's maximum context length is 8192 tokens and "
        "your request has 6000 input tokens (4096 > 8192 - 6000).",
        "https://github.com/vllm-project/vllm",
    ),
    _with_output(
        "sglang_requested",
        r"maximum context length of {limit} tokens\. you requested a total of {total} tokens: {input} tokens from the input "
        r"messages and {output} tokens",
        "Requested token count exceeds the model's maximum context length of 262144 tokens. You requested a total of 263925 "
        "tokens: 199925 tokens from the input messages and 64000 tokens for the completion.",
        "https://github.com/sgl-project/sglang",
    ),
    _with_output(
        "sglang_bare",
        r"requested token count exceeds the model's maximum context length of {limit}",
        "Requested token count exceeds the model's maximum context length of 131072 tokens.",
        "https://github.com/sgl-project/sglang",
    ),
    _with_output(
        "tensorrt_llm_sum",
        r"sum of prompt length \({input}\)(?:,| and) query length \({more}\)(?:,? (?:and )?max_tokens \({output}\))? should not "
        r"exceed max_(?:num_tokens|seq_len) \({limit}\)",
        "The sum of prompt length (9351.0), query length (0) should not exceed max_num_tokens (8192)",
        "https://github.com/NVIDIA/TensorRT-LLM/issues/9277",
    ),
    Pattern(
        "tensorrt_llm_no_room",
        r"= max_seq_len \({limit}\) - `?splited_prompt_len`? \({input}\)(?: - `?query_token_len`? \({more}\))?",
        "`default_max_tokens` (-152) must be greater than 0, `default_max_tokens` (-152) = max_seq_len (8192) - "
        "`splited_prompt_len` (8000) - `query_token_len` (344)",
        "https://github.com/NVIDIA/TensorRT-LLM",
    ),
    Pattern(
        "bedrock_output",
        r"malformed input request: {output} is not less or equal to {limit}",
        "Malformed input request: 8192 is not less or equal to 8191, please reformat your input and try again.",
        "https://github.com/langchain-ai/langchain/issues/9697",
        kind="output_limit",
    ),
    Pattern(
        "range_of_output",
        r"(?:(?:valid )?range of max_(?:completion_|output_)?tokens (?:is|should be)|max_tokens.{0,12}限制数值范围)"
        r" ?[\[(]\d+, ?{limit}[\])]",
        "{'code': '1210', 'message': 'max_tokens参数非法。限制数值范围[1,131072]'}",
        "https://github.com/deepseek-ai/DeepSeek-V3/issues/69",
        kind="output_limit",
    ),
    Pattern(
        "output_expected",
        r"max_(?:completion_|output_|new_)?tokens`?.{0,80}(?:expected a value|must be|should be|has to be) "
        r"(?:<=|≤|less than or equal to|at most|no more than|not exceed(?:ing)?) `?{limit}`?"
        r"(?:,? but got {output})?",
        "Input validation error: `max_new_tokens` must be <= 1024. Given: 2048",
        "https://github.com/huggingface/text-generation-inference",
        kind="output_limit",
    ),
)
"""In the order in which they are tried; before all families."""
