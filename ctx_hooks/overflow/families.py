"""Families of wordings, for providers and versions that nobody has written down yet.

They are tried last, and their figures are told apart by arithmetic.
"""

from __future__ import annotations

from ctx_hooks.overflow.pattern import Pattern, pattern

FAMILIES: tuple[Pattern, ...] = (
    pattern(
        "family_excess",
        "input",
        r"exceed(?:s|ed|ing)? (?:the )?(?:max(?:imum)? )?(?:context (?:length|window|size)|token limit|limit) by {excess} tokens",
        "prompt too long; exceeded max context length by 100918 tokens",
        "https://github.com/ollama/ollama",
        family=True,
    ),
    pattern(
        "family_with_output",
        "input_plus_output",
        r"(?:input|prompt|inputs?`? tokens|messages?|prompt_tokens)(?: tokens?| length)?`? ?(?:\+|and|plus) ?`?"
        r"(?:max_(?:new_|completion_|output_)?tokens|completion|output|generation|requested output).{0,60}"
        r"(?:exceed|larger|greater|longer|must be|cannot|should be|>)",
        "The sum of prompt tokens and max_tokens (9000) exceeds the model's context window (8192).",
        "https://docs.litellm.ai/docs/exception_mapping",
        family=True,
    ),
    pattern(
        "family_context_exceeded",
        "input",
        r"(?:context|sequence|model|prompt|input)[ _-]?(?:length|window|size|limit|token limit|len)s?\b[^.\n]{0,60}?"
        r"(?:exceed|overflow|surpass|(?:is|are|was|were) too (?:small|short)|reached|not enough|insufficient)",
        "invalid params, context window exceeds limit (2013)",
        "https://github.com/MiniMax-AI/MiniMax-M2/issues/119",
        family=True,
    ),
    pattern(
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
    pattern(
        "family_too_long",
        "input",
        r"(?:prompt|input|inputs|messages?|conversation|context|chat history|history|request|query|text|instruction|token count|"
        r"(?:total )?length of (?:all )?(?:the )?messages|number of (?:input |prompt )?tokens)(?: \(?[\d,]+(?: tokens)?\)?)? "
        r"(?:is|are|was|were|has become|length is|size is)? ?(?:too|excessively) (?:long|large|big|many)",
        "The total length of all messages is too long.",
        "https://docs.perplexity.ai/",
        family=True,
    ),
    pattern(
        "family_exceeds_max_length",
        "input",
        r"(?:prompt|input|inputs|messages?|conversation|history|tokens?(?: in (?:the )?(?:request|prompt|input))?|token count|"
        r"(?:input|prompt) tokens?)\b[^.\n]{0,60}?(?:exceed\w*|more than|greater than|larger than|longer than|above|over|> )"
        r"[^.\n]{0,40}?(?:max(?:imum)?\b|limit|allowed|\d{4,7} tokens|capacity)",
        "Prompt exceeds max length",
        "https://github.com/zeroclaw-labs/zeroclaw/issues/4124",
        family=True,
    ),
    pattern(
        "family_maximum_context",
        "input",
        r"(?:maximum|max) (?:context|sequence|prompt|input|model) (?:length|window|size)s? (?:is|of|are|:|=) ?(?:only )?\(?[\d,]+",
        "The model returned the following errors: This model's maximum context length is 131072 tokens. Please reduce the "
        "length of the prompt",
        "https://docs.aws.amazon.com/bedrock/latest/userguide/",
        family=True,
    ),
    pattern(
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
    pattern(
        "family_chinese",
        "input",
        r"(?:上下文|输入|提示词?|请求|消息|文本|对话|token|令牌|prompt)[^。\n]{0,30}?(?:超过|超出|超限|过长|过大|太长|大于)|"
        r"(?:超过|超出|超长)[^。\n]{0,30}?(?:上下文|最大(?:长度|输入|token)|token ?(?:数|限制|上限)|长度限制|窗口)",
        "输入内容过长,超出模型最大上下文长度 32768",
        "https://open.bigmodel.cn/dev/api/error-code/error-code-v4",
        family=True,
    ),
    pattern(
        "family_other_languages",
        "input",
        r"コンテキスト(?:長|ウィンドウ|の長さ)[^。\n]{0,30}(?:超|長すぎ)|(?:入力|プロンプト|トークン)[^。\n]{0,30}(?:長すぎ|上限を超|超えて)|"
        r"(?:컨텍스트|입력|토큰|프롬프트)[^.\n]{0,30}(?:초과|너무 (?:길|깁|큽))",
        "入力トークン数がコンテキスト長の上限を超えています",
        "https://docs.litellm.ai/docs/exception_mapping",
        family=True,
    ),
)
