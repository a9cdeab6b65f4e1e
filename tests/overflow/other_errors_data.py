"""Errors that are no overflow, in the manner of real providers, gateways and servers, by what they are about.

Each is near one: without a topic of `NOT_OVERFLOW`, or with one need of a family less, it would be taken for an overflow.
"""

OTHER_ERRORS: dict[str, tuple[str, ...]] = {
    "quotas": ("Prompt tokens for this hour exceed the maximum of 200000.",),
    "budgets": ("Budget has been exceeded! Current cost: 10.2, Max budget: 10.0",),
    "rates": ("Too many tokens, please wait before trying again.",),
    "concurrency_and_queues": ("queue length exceeds maximum length 512",),
    "uploads_and_media": ("413 Request Entity Too Large",),
    "counts_and_names": ("The system fingerprint input exceeds maximum length",),
    "guardrails": (
        "The text is too long for the moderation endpoint", "Lakera guard rejected the prompt: input exceeds max length",
    ),
    "models": (
        "max_num_batched_tokens (2048) is smaller than max_model_len (8192)",
        "The model's max seq len (32768) is larger than the maximum number of tokens stored in KV cache (16000).",
    ),
    "parameters": ("temperature must be less than 2",),
    "schemas": ("Invalid schema for response_format: schema exceeds the maximum depth of 10",),
    "caching_and_minima": ("prompt too short for caching",),
    "output": ("Could not finish the message because max_tokens or model output limit was reached.",),
    "time_and_transport": ("Request timed out: the prompt took too long to process.",),
    "other_contexts": ("application context length of path too long",),
    "hardware": ("Not enough memory on the device for this prompt. Shorten the prompt or try again.",),
    "access": ("Invalid token: the token is too long",),
    "other_languages": ("每分钟 tokens 超过限制",),
    "assorted": (
        "Limit of 1000000 tokens a day exceeded by this request",
        "This request would exceed the token limit for your current plan",
        "The tool input exceeds the schema's maximum length", "Toxicity score of the prompt exceeds the limit",
        "gpt-3.5-turbo-0301 (4k context length) reached its end of life",
        "The model produced too many tokens: output exceeded 16384", "request exceeded max retries: 5",
        "Container context limit exceeded: 9000 > 8192 processes",
        "This model requires a prompt of at least 1024 tokens, got 600", "输入图片过大", "输入参数 temperature 超过 2",
        "输入的 API Key 长度超过限制",
    ),
    "counts_of_messages": (
        "Your request contains 3000 messages, more than the limit of 2048",
        "Input has 5000 lines, which exceeds the limit of 4096",
    ),
    "other_kinds_of_models": ("Embedding input is too long: 9000 > 8192", "TTS input is too long: 5000 > 4096"),
}  # fmt: skip
"""Quotas, rates, queues, uploads, guardrails, names, parameters, and other meanings of "context" and "token"."""
