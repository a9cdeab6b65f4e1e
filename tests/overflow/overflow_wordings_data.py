"""Overflows in the manner of real servers that no specific pattern knows, by the limit and the input that they name."""

WORDINGS: dict[tuple[int | None, int | None], tuple[str, ...]] = {
    (None, None): (
        "context_length_exceeded", "the conversation is longer than the model's context size",
        "maximum context window reached, please clear the conversation", "Prompt 超长", "对话内容过长,请开启新的对话",
        "消息总长度超过模型限制",
        "上下文太长,请缩短后重试", "提示词长度超出最大限制", "輸入內容超過模型的上下文長度", "Prompt exceeds max length",
        "model's context is full: 8192 tokens", "out of context space",
        "context shift is disabled and the prompt is too large", "Too much context: please start a new chat",
        "请求内容超过模型最大输入长度", "会话过长,请新建会话", "The message you submitted was too long",
        "The messages you sent are too long",
        "上下文长度超限,请缩短输入", "Token 数超过上限",
        "The context window of this model is too small for the conversation.",
        "Your conversation is too long. Start a new one.",
    ),
    (8_192, None): (
        "input length + max_new_tokens = 9000 must be <= max_total_tokens (8192)",
        "max tokens of 8192 exceeded by the prompt", "输入的 tokens 总数超过最大长度限制 8192",
        "Exceeded the model's token limit (8192)", "Mon, 23 Nov 2026 06:00:11: the prompt exceeds the context size 8192",
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
        "Your prompt uses 9000 tokens and the model's limit is 8192",
    ),
    (32_768, 40_000): ("模型上下文长度不足,输入 40000 tokens,最大 32768",),
    (40_960, 41_000): (
        "The combined length of the input (41000) and max_tokens (2048) is greater than the model's limit of 40960",
        "Prompt length 41000 and max_new_tokens 2048 exceed the limit of 40960 in total",
    ),
    (32_768, 40_001): (
        "Exceeded context limit by 7233 tokens (limit 32768)",
        "request_id=9912312 trace 123456789: Context length exceeded: prompt 40,001 tokens vs limit 32,768",
    ),
    (8_192, 9_363): ("The sum of prompt length (9,351), query length (12) should not exceed max_num_tokens (8,192)",),
    (32_000, None): ("Exceeds the model's maximum input length of 32k tokens",),
    (128_000, None): ("Input exceeds the model's 128K context window",),
    (200_000, 210_000): ("The conversation has grown to 210000 tokens; the model accepts at most 200000.",),
    (40_960, None): ("total tokens of input and max_completion_tokens (43048) exceed the model limit (40960)",),
    (64_000, 138_898): ("RequestID: 0217321. prompt token count of 138898 exceeds the limit of 64000",),
}  # fmt: skip
