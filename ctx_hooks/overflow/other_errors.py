"""Wordings that look like an overflow and are none."""

from __future__ import annotations

from ctx_hooks.overflow.pattern import Pattern, pattern

NOT_OVERFLOW: tuple[Pattern, ...] = (
    pattern(
        "rate",
        "input",
        r"rate[ _-]?limit|per[ _-](?:min(?:ute)?|day|hour|second|month)|\b[TR]P[MD]\b|quota|throttl|too many requests|"
        r"please wait|try again (?:in|later)|request rate|速率|频率|限流|请求过于频繁",
        "Too many tokens, please wait before trying again.",
        "https://github.com/RooCodeInc/Roo-Code/issues/5050",
    ),
    pattern(
        "money",
        "input",
        r"credits?\b|billing|balance|out of extra usage|insufficient funds|payment|余额|欠费",
        "This request requires more credits, or fewer max_tokens.",
        "https://github.com/can1357/oh-my-pi/issues/9569",
    ),
    pattern(
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
    pattern(
        "pairing",
        "input",
        r"tool_use_id|tool_call_id|tool_calls' must be|tool result blocks|non-empty content|thinking\.budget_tokens|"
        r"must be greater than (?:or equal to )?`?(?:thinking|0|1\b)|at least 1\b",
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'.",
        "https://platform.openai.com/docs/guides/function-calling",
    ),
    pattern(
        "time",
        "input",
        r"timed? ?out|took too long|deadline|response (?:is|was) too (?:long|large)|超时",
        "Request timed out: the model took too long to respond.",
        "https://docs.litellm.ai/docs/exception_mapping",
    ),
)
"""Wordings that look like an overflow and are none; a specific pattern above still wins over them."""

RATE_TOO_LARGE = pattern(
    "rate_too_large",
    "input",
    r"request too large.{0,200}?limit:? {limit}, requested:? {input}",
    "Request too large for gpt-5-nano in organization org-test on tokens per min (TPM): Limit 200000, Requested 480002.",
    "https://platform.openai.com/docs/guides/rate-limits",
)
"""A single request above the rate limit itself: waiting does not help, only a smaller request does."""
