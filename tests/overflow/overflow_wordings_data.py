"""Overflows in the manner of real servers that no specific pattern knows, by the limit and the input that they name."""

WORDINGS: dict[tuple[int | None, int | None], tuple[str, ...]] = {
    (None, None): (
        "context_length_exceeded",
        "the conversation is longer than the model's context size",
        "maximum context window reached, please clear the conversation", "Prompt 超长", "对话内容过长,请开启新的对话",
        "消息总长度超过模型限制", "上下文太长,请缩短后重试", "提示词长度超出最大限制", "超过最大上下文长度",
        "輸入內容超過模型的上下文長度",
        "Prompt exceeds max length",
        "The total length of all messages is too long.", "Invalid request: messages exceed context window",
        "model's context is full: 8192 tokens", "Context size has been exceeded.", "out of context space",
        "context shift is disabled and the prompt is too large", "Too much context: please start a new chat",
        "超出上下文窗口限制", "输入 token 数量超出限制,最大支持 8192", "请求内容超过模型最大输入长度",
        "会话过长,请新建会话",
        "The message you submitted was too long",
        "The messages you sent are too long",
        "The message you submitted was too long, please reload the conversation and submit something shorter.",
        "litellm.BadRequestError: AnthropicException - Prompt is too long", "输入长度超过模型最大长度限制",
        "上下文长度超限,请缩短输入", "Token 数超过上限",
        "ERROR: The prompt size exceeds the context window size and cannot be processed.",
        "The context window of this model is too small for the conversation.",
        "Your conversation is too long. Start a new one.",
    ),
    (8_192, None): (
        "input length + max_new_tokens = 9000 must be <= max_total_tokens (8192)",
        "max tokens of 8192 exceeded by the prompt", "输入的 tokens 总数超过最大长度限制 8192",
        "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 8192]",
        ("The maximum context length of the model is 8192. However, answering your request will take 21024 tokens. "
         "Please reduce the length of the messages or the specified max_completion_tokens value."),
        "Input validation error: The sum of 'inputs' tokens and 'max_new_tokens' must not exceed 8192",
        "Exceeded the model's token limit (8192)", "at 1732340683 slot id 9001: the prompt exceeds the context size 8192",
        "Mon, 23 Nov 2026 06:00:11: the prompt exceeds the context size 8192",
        "The estimated number of input and maximum output tokens (8222) exceeded this model context window limit (8192)",
    ),
    (8_192, 9_001): (
        "length of prompt_ids (9001) must be less than max_seq_len (8192)",
        "input_length 9001 should be smaller than max_total_length 8192",
        "length of input_ids (9001) must not be greater than max_length (8192)",
        "num_prompt_tokens 9001 must be < max_model_len 8192",
    ),
    (8_192, 9_000): (
        "ValueError: prompt_token_ids of length 9000 cannot exceed maxSeqLen (8192)",
        "Context length exceeded: 9000 > 8192",
        "Your prompt uses 9000 tokens and the model's limit is 8192",
    ),
    (32_768, 40_000): (
        "请求的 token 数 (40000) 超出模型上下文窗口 (32768)",
        "The model can only process 32768 tokens but the prompt has 40000 tokens.",
        "This prompt is longer than what the model can handle (40000 > 32768)",
        "Input is 40000 tokens long, but the maximum is 32768.", "模型上下文长度不足,输入 40000 tokens,最大 32768",
    ),
    (40_960, 41_000): (
        "The total length of the prompt (41000) and max_new_tokens (2048) exceeds the model limit of 40960",
        "The combined length of the input (41000) and max_tokens (2048) is greater than the model's limit of 40960",
        "Prompt length 41000 and max_new_tokens 2048 exceed the limit of 40960 in total",
    ),
    (8_192, 20_000): (
        ("Input tokens exceed the configured limit of 8192 tokens. Your messages resulted in 20000 tokens. Please "
         "reduce the length of the messages."),
        ("This endpoint's maximum context length is 8192 tokens. However, you requested about 21024 tokens (20000 "
         "of text input, 1024 in the output). Please reduce the length of either one, or use the "
         "context-compression plugin to compress your prompt automatically."),
        ("Requested token count exceeds the model's maximum context length of 8192 tokens. You requested a total of "
         "21024 tokens: 20000 tokens from the input messages and 1024 tokens for the completion."),
    ),
    (32_768, 40_001): (
        "prefill tokens 40001 exceed maximum 32768", "Exceeded context limit by 7233 tokens (limit 32768)",
        "request_id=9912312 trace 123456789: Context length exceeded: prompt 40,001 tokens vs limit 32,768",
    ),
    (8_192, 6_001): (
        "The sum of input tokens (6001) and max_tokens (4096) exceeds the model context length (8192)",
        "input_tokens: 6001, max_tokens: 4096, context_length: 8192 -> exceeds by 1905",
    ),
    (8_192, 9_363): ("The sum of prompt length (9,351), query length (12) should not exceed max_num_tokens (8,192)",),
    (8_192, 8_344): (
        "`default_max_tokens` (-152) = max_seq_len (8192) - `splited_prompt_len` (8344) - `query_token_len` (0)",
    ),
    (32_000, None): ("Exceeds the model's maximum input length of 32k tokens",),
    (128_000, None): ("Input exceeds the model's 128K context window",),
    (200_000, 210_000): ("The conversation has grown to 210000 tokens; the model accepts at most 200000.",),
    (256, 300): ("Prompt has 300 tokens, but the model's window is only 256 tokens",),
    (40_960, None): ("total tokens of input and max_completion_tokens (43048) exceed the model limit (40960)",),
    (8_192, 9_120): ("prompt exceeds model context: 9,120 / 8,192 tokens",),
    (262_144, 300_012): ("Total token count 300012 exceeds the model limit 262144",),
    (32_768, 33_580): (
        "default_max_tokens (-812) = max_seq_len (32768) - splited_prompt_len (33580), default_max_tokens must be > 0",
    ),
    (64_000, 138_898): ("RequestID: 0217321. prompt token count of 138898 exceeds the limit of 64000",),
}  # fmt: skip
