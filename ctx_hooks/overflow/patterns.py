"""The wordings in which providers say that a request is too long, as data: each with a verbatim sample and its source.

Specific wordings come first and say what each figure means; families of wordings come last, for providers and versions
that nobody has written down yet, and their figures are told apart by arithmetic.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

Kind = Literal["input", "input_plus_output", "output_limit"]


@dataclass(frozen=True, slots=True)
class Pattern:
    """One wording. Groups: limit, input, more (further input), output, total (input and output), excess.

    `only` names the providers at which the text means an overflow, `statuses` the HTTP statuses; empty means any.
    `at_least`: the input figure is a lower bound. `family`: figures are found by arithmetic.
    """

    name: str
    kind: Kind
    regex: re.Pattern[str]
    sample: str
    source: str
    only: tuple[str, ...] = ()
    statuses: tuple[int, ...] = ()
    at_least: bool = False
    family: bool = False


NUMBER = r"\d[\d,_]{0,12}(?:\.\d{1,3})?k?"
_GROUPS = ("limit", "input", "more", "output", "total", "excess")


def _re(text: str) -> re.Pattern[str]:
    """Compile with `{limit}` and the like standing for a number in a group of that name, and a blank for any blanks."""
    for group in _GROUPS:
        text = text.replace("{" + group + "}", f"(?P<{group}>{NUMBER})")
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
    at_least: bool = False,
    family: bool = False,
) -> Pattern:
    return Pattern(name, kind, _re(text), sample, source, only, statuses, at_least, family)


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

PATTERNS: tuple[Pattern, ...] = (
    _pattern(
        "openai_requested",
        "input_plus_output",
        r"maximum context length (?:is|of) {limit} tokens?[.,;]? however,? you requested (?:about )?{total} tokens "
        r"\({input} (?:in the messages|in your prompt|of text input|in the prompt|in the input)"
        r"(?:,? {more} (?:of tool input|in the functions|in the tools))?(?:[,;] {output} (?:in|for) the (?:completion|output))?",
        "This model's maximum context length is 4097 tokens. However, you requested 4120 tokens (3120 in the messages, "
        "1000 in the completion). Please reduce the length of the messages or completion.",
        "https://github.com/mckaywrigley/chatbot-ui/issues/102",
    ),
    _pattern(
        "openai_resulted",
        "input",
        r"(?:maximum context length (?:is|of)|configured limit of) {limit} tokens?[.,;]? (?:however,? )?"
        r"(?:your|the) (?:messages|input|prompt) (?:resulted in|contains?|has) (?:about )?{input} (?:input )?tokens",
        "This model's maximum context length is 128000 tokens. However, your messages resulted in 179011 tokens.",
        "https://github.com/baserow/baserow/issues/3011",
    ),
    _pattern(
        "anthropic_prompt",
        "input",
        r"(?:prompt|input) is too long: {input} tokens > {limit}",
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
    _pattern(
        "anthropic_long_context",
        "input",
        r"extra usage is required for long context requests over {limit} tokens",
        "Extra usage is required for long context requests over 200k tokens",
        "https://docs.anthropic.com/en/docs/build-with-claude/context-windows",
    ),
    _pattern(
        "bedrock_nova",
        "input",
        r"max input tokens: {limit}, request input token count: {input}",
        "Too many input tokens. Max input tokens: 128000, request input token count: 140000",
        "https://docs.aws.amazon.com/nova/latest/userguide/",
    ),
    _pattern(
        "bedrock_mantle",
        "input",
        r"prompt tokens \({input}\) exceed model maximum \({limit}\)",
        "invalid_prompt: prompt tokens (330095) exceed model maximum (278528)",
        "https://docs.aws.amazon.com/bedrock/latest/userguide/",
    ),
    _pattern(
        "gemini_counted",
        "input",
        r"input token count \(?{input}\)? exceeds the maximum number of tokens allowed \(?{limit}",
        "The input token count (134123) exceeds the maximum number of tokens allowed (131072).",
        "https://github.com/google-gemini/gemini-cli/issues/12214",
    ),
    _pattern(
        "gemini",
        "input",
        r"input token count exceeds the maximum number of tokens allowed \(?{limit}",
        "The input token count exceeds the maximum number of tokens allowed (1048576).",
        "https://github.com/arkavo-org/arkavo-edge/issues/371",
    ),
    _pattern(
        "gemini_supports",
        "input",
        r"token count is {input},? but (?:the |this )?model (?:only )?supports (?:up to |at most )?{limit}",
        "Unable to submit request because the input token count is 1200000 but model only supports up to 1048576. Reduce the "
        "input token count and try again.",
        "https://cloud.google.com/vertex-ai/generative-ai/docs/model-reference/inference",
    ),
    _pattern(
        "mistral",
        "input",
        r"prompt contains {input} tokens(?: and \d+ draft tokens)?,? too large for model with {limit}",
        "Prompt contains 170397 tokens and 0 draft tokens, too large for model with 131072 maximum context length",
        "https://docs.mistral.ai/api/",
    ),
    _pattern(
        "cohere_excess",
        "input",
        r"size limit exceeded by {excess} tokens.{0,80}limit for this model is {limit}",
        "too many tokens: size limit exceeded by 713295 tokens. Try using shorter or fewer inputs. The limit for this model "
        "is 288000 tokens.",
        "https://docs.cohere.com/reference/errors",
    ),
    _pattern(
        "cohere_total",
        "input_plus_output",
        r"\(prompt and prediction\) cannot exceed {limit} - received {total}",
        "too many tokens: total number of tokens (prompt and prediction) cannot exceed 2048 - received 6354.",
        "https://github.com/cohere-ai/sandbox-topically/issues/4",
    ),
    _pattern(
        "xai",
        "input",
        r"maximum prompt length is {limit}(?: tokens)?,? but (?:the|your) request contains {input}",
        "This model's maximum prompt length is 131072 but the request contains 136973 tokens.",
        "https://github.com/cline/cline/issues/3120",
    ),
    _pattern(
        "longer_than_context",
        "input",
        r"input \({input} tokens\) is (?:longer|larger) than the (?:model's )?(?:max )?context (?:length|size|window) \({limit}",
        "The input (8391 tokens) is longer than the model's context length (8192 tokens).",
        "https://github.com/sgl-project/sglang",
    ),
    _pattern(
        "fireworks",
        "input",
        r"prompt is too long: {input}, model maximum context length: {limit}",
        "The prompt is too long: 40177, model maximum context length: 32767",
        "https://github.com/fw-ai/cookbook/issues/134",
    ),
    _pattern(
        "cerebras",
        "input",
        r"current length is {input} while limit is {limit}",
        "Please reduce the length of the messages or completion. Current length is 42328 while limit is 40000",
        "https://github.com/cline/cline/issues/5140",
    ),
    _pattern(
        "moonshot",
        "input",
        r"exceeded model token limit: {limit} \(requested: {input}\)",
        "Invalid request: Your request exceeded model token limit: 262144 (requested: 275363)",
        "https://github.com/multica-ai/multica/issues/4130",
    ),
    _pattern(
        "dashscope",
        "input",
        r"range of input length should be \[\d+, ?{limit}\]",
        "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 204800]",
        "https://github.com/QwenLM/qwen-code/issues/98",
    ),
    _pattern(
        "tgi",
        "input_plus_output",
        r"must be <= {limit}\. given: {input} `inputs` tokens and {output} `max_new_tokens`",
        "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8192. Given: 6204 `inputs` tokens and 2047 "
        "`max_new_tokens`",
        "https://github.com/huggingface/chat-ui/issues/1149",
    ),
    _pattern(
        "tgi_inputs",
        "input",
        r"`inputs` must have less than {limit} tokens\. given: {input}",
        "Input validation error: `inputs` must have less than 1024 tokens. Given: 1503",
        "https://github.com/huggingface/text-generation-inference",
    ),
    _pattern(
        "vllm_request_has",
        "input",
        r"maximum context length is {limit} tokens\. however, your request has {input} input tokens",
        "This model's maximum context length is 262144 tokens. However, your request has 1000010 input tokens.",
        "https://github.com/vllm-project/vllm",
    ),
    _pattern(
        "vllm_passed",
        "input_plus_output",
        r"you passed {input} input tokens and requested {output} output tokens\. however, the model's context length is only "
        r"{limit}",
        "You passed 98305 input tokens and requested 32768 output tokens. However, the model's context length is only 131072 "
        "tokens, resulting in a maximum input length of 98304 tokens.",
        "https://github.com/vllm-project/vllm",
    ),
    _pattern(
        "vllm_at_least",
        "input_plus_output",
        r"maximum context length is {limit} tokens\. however, you requested {output} output tokens and your prompt contains at "
        r"least {input} input tokens",
        "This model's maximum context length is 4096 tokens. However, you requested 1 output tokens and your prompt contains "
        "at least 4096 input tokens, for a total of at least 4097 tokens.",
        "https://github.com/vllm-project/vllm-ascend/issues/11557",
        at_least=True,
    ),
    _pattern(
        "vllm_characters",
        "input_plus_output",
        r"maximum context length is {limit} tokens\. however, you requested {output} output tokens and your prompt contains "
        r"\d+ characters",
        "This model's maximum context length is 131072 tokens. However, you requested 131072 output tokens and your prompt "
        "contains 14233 characters (more than 0 characters, which is the upper bound for 0 input tokens).",
        "https://github.com/gi-dellav/zerostack/issues/22",
    ),
    _pattern(
        "vllm_decoder",
        "input",
        r"prompt \((?:total )?length {input}\) is (?:longer|too long).{0,40}maximum model length of {limit}",
        "The decoder prompt (length 100001) is longer than the maximum model length of 100000.",
        "https://github.com/vllm-project/vllm",
    ),
    _pattern(
        "vllm_max_tokens",
        "input_plus_output",
        r"max_(?:completion_)?tokens[`'\"]? is too large: {output}\.? this model's maximum context length is {limit} tokens and "
        r"your request has {input} input tokens",
        "'max_tokens' or 'max_completion_tokens' is too large: 4096. This model's maximum context length is 8192 tokens and "
        "your request has 6000 input tokens (4096 > 8192 - 6000).",
        "https://github.com/vllm-project/vllm",
    ),
    _pattern(
        "sglang_requested",
        "input_plus_output",
        r"maximum context length of {limit} tokens\. you requested a total of {total} tokens: {input} tokens from the input "
        r"messages and {output} tokens",
        "Requested token count exceeds the model's maximum context length of 262144 tokens. You requested a total of 263925 "
        "tokens: 199925 tokens from the input messages and 64000 tokens for the completion.",
        "https://github.com/sgl-project/sglang",
    ),
    _pattern(
        "sglang_bare",
        "input_plus_output",
        r"requested token count exceeds the model's maximum context length of {limit}",
        "Requested token count exceeds the model's maximum context length of 131072 tokens.",
        "https://github.com/sgl-project/sglang",
    ),
    _pattern(
        "input_length_exceeds",
        "input",
        r"input length \(?{input}(?: tokens)?\)? exceeds (?:the |model's )?maximum (?:allowed |context )?(?:input )?length "
        r"(?:of )?\(?{limit}",
        "Input length 131393 exceeds the maximum allowed input length of 131040 tokens.",
        "https://github.com/sgl-project/sglang",
    ),
    _pattern(
        "llamacpp",
        "input",
        r"(?:request|input|prompt) \({input} tokens\) (?:exceeds|is larger than) the (?:available|max) context size \({limit}",
        "request (5274 tokens) exceeds the available context size (4096 tokens), try increasing it",
        "https://github.com/ggml-org/llama.cpp/issues/17284",
    ),
    _pattern(
        "llama_cpp_python",
        "input",
        r"requested tokens \({input}\) exceed context window of {limit}",
        "Requested tokens (2285) exceed context window of 2048",
        "https://github.com/abetlen/llama-cpp-python",
    ),
    _pattern(
        "lm_studio_keep",
        "input",
        r"\(?n_keep:? \(?{input}\)? ?>= ?n_ctx:? \(?{limit}\)?",
        "The number of tokens to keep from the initial prompt is greater than the context length (n_keep: 13055>= n_ctx: 4096).",
        "https://github.com/Gitlawb/openclaude/issues/353",
    ),
    _pattern(
        "lm_studio_first",
        "input",
        r"keep the first {input} tokens when context.{0,80}context length of only {limit}",
        "Trying to keep the first 111490 tokens when context the overflows. However, the model is loaded with context length "
        "of only 32768 tokens, which is not enough.",
        "https://github.com/lmstudio-ai/lmstudio-bug-tracker/issues/546",
    ),
    _pattern(
        "tensorrt_llm",
        "input",
        r"prompt length \({input}\) exceeds maximum (?:sequence|input) length \({limit}\)",
        "Cannot process new request: Prompt length (5056) exceeds maximum sequence length (2048)",
        "https://github.com/triton-inference-server/tensorrtllm_backend/issues/141",
    ),
    _pattern(
        "github_copilot",
        "input",
        r"prompt token count of {input} exceeds the limit of {limit}",
        "prompt token count of 138898 exceeds the limit of 64000",
        "https://github.com/microsoft/copilot-intellij-feedback/issues/94",
    ),
    _pattern(
        "sambanova",
        "input_plus_output",
        r"maximum context length of .{1,80}? is {limit}\. however, answering your request will take {total} tokens",
        "The maximum context length of DeepSeek-V3-0324 is 32768. However, answering your request will take 39732 tokens.",
        "https://github.com/OpenHands/OpenHands/pull/9252",
    ),
    _pattern(
        "siliconflow",
        "input_plus_output",
        r"max_total_tokens \({total}\) must be less than or equal to max_seq_len \({limit}\)",
        "max_total_tokens (33802) must be less than or equal to max_seq_len (32768)",
        "https://github.com/continuedev/continue/issues/10993",
    ),
    _pattern(
        "openai_output",
        "output_limit",
        r"max_(?:completion_|output_)?tokens`? is too large: {output}\. this model supports at most {limit} completion tokens",
        "max_tokens is too large: 8192. This model supports at most 4096 completion tokens, whereas you provided 8192.",
        "https://github.com/ChatGPTNextWeb/NextChat/issues/3195",
    ),
    _pattern(
        "anthropic_output",
        "output_limit",
        r"max_tokens: {output} > {limit}, which is the maximum allowed number of output tokens",
        "max_tokens: 10000 > 4096, which is the maximum allowed number of output tokens for claude-3-5-sonnet-20240620",
        "https://github.com/ChatGPTNextWeb/NextChat/issues/4964",
    ),
    _pattern(
        "bedrock_output",
        "output_limit",
        r"malformed input request: {output} is not less or equal to {limit}",
        "Malformed input request: 8192 is not less or equal to 8191, please reformat your input and try again.",
        "https://github.com/langchain-ai/langchain/issues/9697",
    ),
    _pattern(
        "bedrock_converse_output",
        "output_limit",
        r"maximum tokens you requested exceeds the model limit of {limit}",
        "The maximum tokens you requested exceeds the model limit of 4096. Try again with a maximum tokens value that is lower "
        "than 4096.",
        "https://docs.aws.amazon.com/bedrock/latest/userguide/conversation-inference.html",
    ),
    _pattern(
        "range_of_output",
        "output_limit",
        r"(?:(?:valid )?range of max_(?:completion_|output_)?tokens (?:is|should be)|max_tokens.{0,12}限制数值范围)"
        r" ?[\[(]\d+, ?{limit}[\])]",
        "Invalid max_tokens value, the valid range of max_tokens is [1, 8192]",
        "https://github.com/deepseek-ai/DeepSeek-V3/issues/69",
    ),
    _pattern(
        "output_expected",
        "output_limit",
        r"max_(?:completion_|output_|new_)?tokens`?.{0,80}(?:expected a value|must be|should be|has to be) "
        r"(?:<=?|≤|less than or equal to|at most|no more than|not exceed(?:ing)?|lower than|less than) `?{limit}`?"
        r"(?:,? but got {output})?",
        "The parameter `max_completion_tokens` specified in the request are not valid: integer above maximum value, expected a "
        "value <= 12288, but got 32000 instead.",
        "https://github.com/Gitlawb/openclaude/issues/331",
    ),
    _pattern(
        "output_exceeds",
        "output_limit",
        r"max_?(?:completion_?|output_?|new_?)?tokens`? \(?{output}\)? (?:exceeds?|is (?:larger|greater) than|cannot exceed) "
        r"(?:the )?(?:model'?s? )?(?:max(?:imum)? )?(?:allowed )?(?:number of )?(?:output|completion) ?(?:tokens?|limit)?"
        r".{0,30}?{limit}",
        "max_output_tokens (100000) exceeds the maximum output tokens of 65536",
        "https://docs.litellm.ai/docs/exception_mapping",
    ),
    _pattern(
        "output_maximum_value",
        "output_limit",
        r"(?:the )?maximum value for `?max_(?:completion_|output_)?tokens`? is {limit}",
        "`max_tokens` must be less than or equal to `8192`, the maximum value for `max_tokens` is 8192",
        "https://console.groq.com/docs/errors",
    ),
    _pattern(
        "gemini_output",
        "output_limit",
        r"supported range (?:for max_?output_?tokens )?is from \d+ \(inclusive\) to {limit} \(exclusive\)",
        "Unable to submit request because it has a maxOutputTokens value of 65537 but the supported range is from 1 "
        "(inclusive) to 65537 (exclusive). Update the value and try again.",
        "https://cloud.google.com/vertex-ai/generative-ai/docs/model-reference/inference",
    ),
    _pattern(
        "cerebras_no_body",
        "input",
        r"^\W*(?:litellm\.\w+: )?(?:\w+ - )?(?:error code: )?(?:400|413) (?:status code )?\(no body\)",
        "400 status code (no body)",
        "https://inference-docs.cerebras.ai/support/error",
        only=("cerebras",),
    ),
    _pattern(
        "vertex_no_body",
        "input",
        r"google request failed with status code 400\W*$",
        "Google request failed with status code 400",
        "https://cloud.google.com/vertex-ai/generative-ai/docs/model-reference/inference",
        only=("vertex", "vertex_ai", "google"),
    ),
    _pattern(
        "family_excess",
        "input",
        r"exceed(?:s|ed|ing)? (?:the )?(?:max(?:imum)? )?(?:context (?:length|window|size)|token limit|limit) by {excess} tokens",
        "prompt too long; exceeded max context length by 100918 tokens",
        "https://github.com/ollama/ollama",
        family=True,
    ),
    _pattern(
        "family_with_output",
        "input_plus_output",
        r"(?:input|prompt|inputs?`? tokens|messages?|prompt_tokens)(?: tokens?| length)?`? ?(?:\+|and|plus) ?`?"
        r"(?:max_(?:new_|completion_|output_)?tokens|completion|output|generation|requested output).{0,60}"
        r"(?:exceed|larger|greater|longer|must be|cannot|should be|>)",
        "The sum of prompt tokens and max_tokens (9000) exceeds the model's context window (8192).",
        "https://docs.litellm.ai/docs/exception_mapping",
        family=True,
    ),
    _pattern(
        "family_context_exceeded",
        "input",
        r"(?:context|sequence|model|prompt|input)[ _-]?(?:length|window|size|limit|token limit|len)s?\b[^.\n]{0,60}?"
        r"(?:exceed|overflow|surpass|(?:is|are|was|were) too (?:small|short)|reached|not enough|insufficient)",
        "invalid params, context window exceeds limit (2013)",
        "https://github.com/MiniMax-AI/MiniMax-M2/issues/119",
        family=True,
    ),
    _pattern(
        "family_exceeds_context",
        "input",
        r"(?:exceed\w*|overflow\w*|surpass\w*|(?:long|larg|great|bigg|high)er than|more (?:tokens )?than|beyond|over|outside|"
        r"(?:do(?:es)?n[o']t|cannot|can't|won't|not) fit\w*(?: in(?:to| side)?)?|too (?:long|large|big|many tokens) for)\b"
        r"[^.\n]{0,80}?(?:context[ _-]?(?:length|window|size|limit)|"
        r"max(?:imum)?[ _-](?:model|sequence|seq|prompt|input|context|position|number of (?:input |prompt )?tokens|token|length)|"
        r"(?:input|prompt|model(?:'s)?)(?: token)? limit|tokens? limit|tokens? allowed|allowed (?:number of )?tokens|"
        r"n_ctx|max_model_len|max_seq_len|max_position_embeddings|the model's limit|model maximum|for requested model)",
        "the request exceeds the available context size, try increasing it",
        "https://github.com/ggml-org/llama.cpp/issues/17284",
        family=True,
    ),
    _pattern(
        "family_too_long",
        "input",
        r"(?:prompt|input|inputs|messages?|conversation|context|chat history|history|request|query|text|instruction|token count|"
        r"(?:total )?length of (?:all )?(?:the )?messages|number of (?:input |prompt )?tokens)(?: \(?[\d,]+(?: tokens)?\)?)? "
        r"(?:is|are|was|were|has become|length is|size is)? ?(?:too|excessively) (?:long|large|big|many)",
        "The total length of all messages is too long.",
        "https://docs.perplexity.ai/",
        family=True,
    ),
    _pattern(
        "family_exceeds_max_length",
        "input",
        r"(?:prompt|input|inputs|messages?|conversation|history|tokens?(?: in (?:the )?(?:request|prompt|input))?|token count|"
        r"(?:input|prompt) tokens?)\b[^.\n]{0,60}?(?:exceed\w*|more than|greater than|larger than|longer than|above|over|> )"
        r"[^.\n]{0,40}?(?:max(?:imum)?\b|limit|allowed|\d{4,7} tokens|capacity)",
        "Prompt exceeds max length",
        "https://github.com/zeroclaw-labs/zeroclaw/issues/4124",
        family=True,
    ),
    _pattern(
        "family_maximum_context",
        "input",
        r"(?:maximum|max) (?:context|sequence|prompt|input|model) (?:length|window|size)s? (?:is|of|are|:|=) ?(?:only )?\(?[\d,]+",
        "The model returned the following errors: This model's maximum context length is 131072 tokens. Please reduce the "
        "length of the prompt",
        "https://docs.aws.amazon.com/bedrock/latest/userguide/",
        family=True,
    ),
    _pattern(
        "family_too_many_tokens",
        "input",
        r"too many (?:input |prompt |total |context )?tokens|input tokens exceeded|token limit (?:exceeded|reached)|"
        r"max(?:imum)?[ _]tokens? (?:limit )?exceeded in (?:the )?(?:prompt|input)|"
        r"reduce (?:the )?(?:length|size|number of tokens) (?:of|in) (?:the |your )?(?:messages?|prompt|input|conversation|context)|"
        r"context[ _-]?(?:length|window|size)[ _-]?(?:exceeded|overflow)|out of context|"
        r"(?:shorten|truncate|trim) (?:the |your )?(?:prompt|input|messages|conversation)",
        "Input Tokens Exceeded: Number of input tokens exceeds maximum length. Please update the input to try again.",
        "https://docs.aws.amazon.com/bedrock/latest/userguide/",
        family=True,
    ),
    _pattern(
        "family_chinese",
        "input",
        r"(?:上下文|输入|提示词?|请求|消息|文本|对话|token|令牌|prompt)[^。\n]{0,30}?(?:超过|超出|超限|过长|过大|太长|大于)|"
        r"(?:超过|超出|超长)[^。\n]{0,30}?(?:上下文|最大(?:长度|输入|token)|token ?(?:数|限制|上限)|长度限制|窗口)",
        "输入内容过长,超出模型最大上下文长度 32768",
        "https://open.bigmodel.cn/dev/api/error-code/error-code-v4",
        family=True,
    ),
    _pattern(
        "family_other_languages",
        "input",
        r"コンテキスト(?:長|ウィンドウ|の長さ)[^。\n]{0,30}(?:超|長すぎ)|(?:入力|プロンプト|トークン)[^。\n]{0,30}(?:長すぎ|上限を超|超えて)|"
        r"(?:컨텍스트|입력|토큰|프롬프트)[^.\n]{0,30}(?:초과|너무 (?:길|깁|큽))",
        "入力トークン数がコンテキスト長の上限を超えています",
        "https://docs.litellm.ai/docs/exception_mapping",
        family=True,
    ),
)
"""In the order in which they are tried: wordings with figures of known meaning first, families last."""

NOT_OVERFLOW: tuple[Pattern, ...] = (
    _pattern(
        "rate",
        "input",
        r"rate[ _-]?limit|per[ _-](?:min(?:ute)?|day|hour|second|month)|\b[TR]P[MD]\b|quota|throttl|too many requests|"
        r"please wait|try again (?:in|later)|request rate|速率|频率|限流|请求过于频繁",
        "Too many tokens, please wait before trying again.",
        "https://github.com/RooCodeInc/Roo-Code/issues/5050",
    ),
    _pattern(
        "money",
        "input",
        r"credits?\b|billing|balance|out of extra usage|insufficient funds|payment|余额|欠费",
        "This request requires more credits, or fewer max_tokens.",
        "https://github.com/can1357/oh-my-pi/issues/9569",
    ),
    _pattern(
        "bytes",
        "input",
        r"\b(?:bytes|[kmg]i?b)\b|message size \d|string (?:value )?(?:length|too long)|string_above_max|array too long|array_above|"
        r"pixels|image (?:dimension|size|exceeds|too large)|file (?:size|too large)|document pages|pdf pages|"
        r"payload|request entity|request_too_large|request body|content[- ]length|member must have length|url (?:is )?too long|"
        r"header|filename|number of (?:tools|images|functions|stop|documents)|too many (?:tools|images|documents|functions|files)|"
        r"(?:tool|function|user|name|title|id|description|metadata|key|stop sequence)s?'? (?:name |description |id )?"
        r"(?:is |are |was )?(?:string )?too long|audio (?:is )?too long|too many stop",
        "Invalid 'user': string too long. Expected a string with maximum length 64, but got a string with length 123 instead.",
        "https://platform.openai.com/docs/guides/error-codes",
    ),
    _pattern(
        "pairing",
        "input",
        r"tool_use_id|tool_call_id|tool_calls' must be|tool result blocks|non-empty content|thinking\.budget_tokens|"
        r"must be greater than (?:or equal to )?`?(?:thinking|0|1\b)|at least 1\b",
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'.",
        "https://platform.openai.com/docs/guides/function-calling",
    ),
    _pattern(
        "time",
        "input",
        r"timed? ?out|took too long|deadline|response (?:is|was) too (?:long|large)|超时",
        "Request timed out: the model took too long to respond.",
        "https://docs.litellm.ai/docs/exception_mapping",
    ),
)
"""Wordings that look like an overflow and are none; a specific pattern above still wins over them."""

RATE_TOO_LARGE = _pattern(
    "rate_too_large",
    "input",
    r"request too large.{0,200}?limit:? {limit}, requested:? {input}",
    "Request too large for gpt-5-nano in organization org-test on tokens per min (TPM): Limit 200000, Requested 480002.",
    "https://platform.openai.com/docs/guides/rate-limits",
)
"""A single request above the rate limit itself: waiting does not help, only a smaller request does."""
