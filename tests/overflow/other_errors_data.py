"""Errors that are no overflow, in the manner of real providers, gateways and servers, by what they are about.

Each is near one: without a topic of `NOT_OVERFLOW`, or with one need of a family less, it would be taken for an overflow.
"""

OTHER_ERRORS: dict[str, tuple[str, ...]] = {
    "quotas": (
        "Daily token limit exceeded for organization", "Monthly token limit reached",
        "Input tokens exceeded the monthly allowance of 10000000 tokens.",
        "Usage limit reached for this month: 2,000,000 prompt tokens.",
        "Prompt tokens for this hour exceed the maximum of 200000.",
    ),
    "budgets": (
        "Budget has been exceeded! Current cost: 10.2, Max budget: 10.0",
        "ExceededBudget: User=alice over budget. Spend=12.1, Budget=10.0",
        "Payment required: the prompt exceeds your prepaid limit of 10000 tokens.",
    ),
    "rates": (
        "TPM: Limit 1",
        "Rate limit reached for gpt-4o on tokens per min (TPM): Limit 30000, Used 18928, Requested 11159.",
        "Too many tokens, please wait before trying again.",
        "Input token count rate exceeded the maximum of 4000 tokens/min",
        "ThrottlingException: Too many tokens per day, please wait before trying again.",
        "You have sent too many input tokens in a short time. Slow down.",
    ),
    "concurrency_and_queues": ("queue length exceeds maximum length 512", "Queue size exceeds limit: 1024 > 1000"),
    "uploads_and_media": (
        "413 Request Entity Too Large", "Request body exceeds the maximum size of 33554432 bytes",
        "total message size 10176584 exceeds limit 2097152",
        "The input document has 1200 pages, exceeding the maximum of 1000 pages.",
    ),
    "counts_and_names": (
        "Invalid 'tools': array too long. Expected an array with maximum length 128, but got 325.",
        "Too many tools: 129 exceeds the maximum of 128", "stop_sequences: length must be less than or equal to 4",
        "Invalid 'messages[0].name': string does not match pattern", "The system fingerprint input exceeds maximum length",
    ),
    "guardrails": (
        "Prompt too long for guardrail (max 1000 chars)",
        "Guardrail failed: input exceeds the maximum length of 1000 characters",
        "Violated guardrail policy: prompt is too long to be scanned", "The text is too long for the moderation endpoint",
        "Lakera guard rejected the prompt: input exceeds max length",
        "Input blocked: prompt exceeds the maximum toxicity of 0.5",
    ),
    "models": (
        "This model (maximum context length 4096) has been deprecated, use one with a larger context window.",
        "Model max context window 1m is not enabled for your organization",
        "max_num_batched_tokens (2048) is smaller than max_model_len (8192)",
        "The model's max seq len (32768) is larger than the maximum number of tokens stored in KV cache (16000).",
    ),
    "parameters": (
        "temperature must be less than 2", "top_p must be less than or equal to 1",
        "top_k should not exceed max_top_k (100)", "n should not exceed max_n (10)",
        "best_of should not exceed max_best_of (20)", "logprobs exceeds max_logprobs (20)",
        "num_beams must be less than max_beam_width (4)", "seed must be smaller than max_seed (4294967295)",
    ),
    "schemas": (
        "Invalid schema for response_format: schema exceeds the maximum depth of 10",
        "Invalid schema for function 'search': description too long",
        "1 validation error for ChatCompletionRequest messages.0.content Input should be a valid string",
    ),
    "caching_and_minima": (
        "prompt too short for caching",
        "Cached content is too small. total_token_count=1200, min_total_token_count=4096",
        "The prompt has 800 tokens, fewer than the minimum of 1024 tokens for caching",
        "Input too short: prompt length must be at least 10 tokens",
    ),
    "output": (
        "Could not finish the message because max_tokens or model output limit was reached.",
        "The response was too long and was cut off",
    ),
    "time_and_transport": (
        "Request timed out: the prompt took too long to process.", "context deadline exceeded",
        "The server had an error while processing your request. Sorry about that!",
    ),
    "other_contexts": (
        "security context exceeds the allowed capability set", "no security context found for request",
        "Conversation 123 is locked by another request", "application context length of path too long",
    ),
    "hardware": (
        "Prefill rejected by rank 2: its slice would exceed the host memory limit. Reduce context length or free memory.",
        "Request aborted: process memory limit exceeded (usage 22 of 17). Reduce context size or lower memory_guard_tier.",
        "The memory guard rejected this prompt: the metal_cap ceiling is reached, reduce context length.",
        "Not enough memory on the device for this prompt. Shorten the prompt or try again.",
    ),
    "access": ("Invalid token: the token is too long", "JWT token too long: exceeds the maximum length 8192"),
    "other_languages": ("当日 token 用量超过上限", "本月 Token 额度已超出,请升级套餐", "每分钟 tokens 超过限制"),
    "assorted": (
        "Limit of 1000000 tokens a day exceeded by this request", "prompt id is too long",
        "This request would exceed the token limit for your current plan",
        "The tool input exceeds the schema's maximum length", "Toxicity score of the prompt exceeds the limit",
        "DLP scan failed, text too large", "gpt-3.5-turbo-0301 (4k context length) reached its end of life",
        "id_token too large", "The cached prompt prefix is below the minimum length of 1024 tokens",
        "Speech input too long: 4096 characters max", "Dataset row 5 exceeds max_seq_len",
        "The model produced too many tokens: output exceeded 16384", "request exceeded max retries: 5",
        "Container context limit exceeded: 9000 > 8192 processes", "max_tokens must be at least 1, got -1.",
        "This model requires a prompt of at least 1024 tokens, got 600", "输入图片过大", "输入参数 temperature 超过 2",
        "输入的 API Key 长度超过限制",
    ),
    "counts_of_messages": (
        "number of input messages exceeds the limit of 2048 messages", "Too many messages in the conversation: 3000 > 2048",
        "The conversation exceeds 2048 messages", "messages: at most 2048 messages allowed, got 3000",
        "Your request contains 3000 messages, more than the limit of 2048", "History exceeds the maximum of 1000 turns",
        "Prompt exceeds the maximum of 5000 words", "Input has 5000 lines, which exceeds the limit of 4096",
    ),
    "other_kinds_of_models": (
        "Embedding input is too long: 9000 > 8192",
        "Input for embedding exceeds 8192 tokens", "The text to embed is too long: 9000 tokens, max 8192",
        "Rerank query is too long (600 tokens, max 512)",
        "This embedding model's maximum input length is 8192 tokens, got 9000", "TTS input is too long: 5000 > 4096",
    ),
}  # fmt: skip
"""Quotas, rates, queues, uploads, guardrails, names, parameters, and other meanings of "context" and "token"."""
