"""Overflows and errors that are none, in the manner of real providers, gateways and servers."""

WORDINGS: dict[tuple[int | None, int | None], tuple[str, ...]] = {
    (None, None): (
        "context_length_exceeded", "the conversation is longer than the model's context size",
        "maximum context window reached, please clear the conversation", "Prompt 超长", "对话内容过长,请开启新的对话",
        "消息总长度超过模型限制",
        "上下文太长,请缩短后重试", "提示词长度超出最大限制", "輸入內容超過模型的上下文長度", "Prompt exceeds max length",
        "model's context is full: 8192 tokens", "out of context space",
        "context shift is disabled and the prompt is too large", "Too much context: please start a new chat",
        "请求内容超过模型最大输入长度", "会话过长,请新建会话", "上下文长度超限,请缩短输入", "Token 数超过上限",
        "The context window of this model is too small for the conversation.",
        "The message you submitted was too long, please reload the conversation and submit something shorter.",
        "Your conversation is too long. Start a new one.",
    ),
    (128_000, None): ("Input exceeds the model's 128K context window",),
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
    (200_000, 210_000): ("The conversation has grown to 210000 tokens; the model accepts at most 200000.",),
    (40_960, None): ("total tokens of input and max_completion_tokens (43048) exceed the model limit (40960)",),
    (64_000, 138_898): ("RequestID: 0217321. prompt token count of 138898 exceeds the limit of 64000",),
}  # fmt: skip


OTHER_ERRORS = (
    "Prompt tokens for this hour exceed the maximum of 200000.",
    "Budget has been exceeded! Current cost: 10.2, Max budget: 10.0",
    "Too many tokens, please wait before trying again.", "queue length exceeds maximum length 512",
    "413 Request Entity Too Large", "The system fingerprint input exceeds maximum length",
    "The text is too long for the moderation endpoint", "Lakera guard rejected the prompt: input exceeds max length",
    "max_num_batched_tokens (2048) is smaller than max_model_len (8192)",
    "The model's max seq len (32768) is larger than the maximum number of tokens stored in KV cache (16000).",
    "temperature must be less than 2", "Invalid schema for response_format: schema exceeds the maximum depth of 10",
    "prompt too short for caching",
    "Could not finish the message because max_tokens or model output limit was reached.",
    "Request timed out: the prompt took too long to process.", "application context length of path too long",
    "Not enough memory on the device for this prompt. Shorten the prompt or try again.",
    "Invalid token: the token is too long", "每分钟 tokens 超过限制",
    "Limit of 1000000 tokens a day exceeded by this request",
    "This request would exceed the token limit for your current plan",
    "The tool input exceeds the schema's maximum length", "Toxicity score of the prompt exceeds the limit",
    "gpt-3.5-turbo-0301 (4k context length) reached its end of life",
    "The model produced too many tokens: output exceeded 16384", "request exceeded max retries: 5",
    "Container context limit exceeded: 9000 > 8192 processes",
    "This model requires a prompt of at least 1024 tokens, got 600", "输入图片过大", "输入参数 temperature 超过 2",
    "输入的 API Key 长度超过限制", "Your request contains 3000 messages, more than the limit of 2048",
    "Input has 5000 lines, which exceeds the limit of 4096", "Embedding input is too long: 9000 > 8192",
    "TTS input is too long: 5000 > 4096",
)  # fmt: skip
"""Quotas, rates, queues, uploads, guardrails, names, parameters, and other meanings of "context" and "token"."""
