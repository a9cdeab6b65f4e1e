"""The readable error, when nothing could make the request fit."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ctx_hooks.conversation import Format
    from ctx_hooks.learning.attempts import Attempt
    from ctx_hooks.policy.settings import Policy

CODE = "context_length_exceeded"
"""OpenAI's code for it: clients that compact by themselves look for it."""


def readable_error(fmt: Format, attempt: Attempt | None, policy: Policy) -> str:
    """Return what was too large, the limit, what was tried and what the caller can do; or the operator's own words."""
    limit = (attempt.overflow.limit_tokens if attempt and attempt.overflow else None) or (
        attempt.window.tokens if attempt else None
    )
    opening = _opening(fmt, attempt.received_tokens if attempt else None, limit)
    if policy.error_text:
        return opening + policy.error_text
    smallest = attempt.sent_tokens if attempt and attempt.sent_tokens else "?"
    return opening + (_CHINESE if policy.language == "zh" else _ENGLISH).format(smallest=smallest)


def small_window(window_tokens: int, least_tokens: int) -> str:
    """Return the answer to a request whose model has a window below what the operator allows."""
    return f"The model's window of {window_tokens} tokens is below the least that is served here, {least_tokens} tokens."


def _opening(fmt: Format, sent: int | None, limit: int | None) -> str:
    """Return the sentence by which clients of the format know the error.

    Claude Code looks for "prompt is too long", OpenAI's clients for "maximum context length".
    """
    if fmt == "anthropic":
        figures = f": {sent} tokens > {limit} maximum" if sent and limit and sent > limit else ""
        return f"prompt is too long{figures}. "
    what = f"This model's maximum context length is {limit} tokens." if limit else "The model's context length is exceeded."
    return what + (f" However, your messages resulted in about {sent} tokens. " if sent else " ")


_ENGLISH = (
    "Older content was compressed and the request retried, but its smallest form, about {smallest} tokens, was still "
    "refused. Send a shorter message or smaller tool output, start a new conversation, or use a model with a larger window."
)
_CHINESE = "已压缩较早的内容并重试,但最小形式(约 {smallest} 个 token)仍被拒绝。请缩短消息或工具输出、开始新的对话,或改用窗口更大的模型。"
