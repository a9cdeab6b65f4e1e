"""The text of the final context-window error: what happened, in the provider's words and ours, and what helps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from ctx_hooks.overflow.patterns.other_errors import RATE_TOO_LARGE
from ctx_hooks.tokens.units import ProviderTokens

if TYPE_CHECKING:
    from ctx_hooks.conversation.model import Format
    from ctx_hooks.overflow.recognise import Overflow
    from ctx_hooks.policy.settings import Language, Policy

CODE = "context_length_exceeded"
"""OpenAI's code for it: clients that compact by themselves look for it."""

NotRetried = Literal["switched_off", "cannot_shrink", "stored_history"]
"""Retries are switched off; what may be cut would not make the request smaller; the provider keeps what is too long."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What was done about a request that ended in an overflow; None if it is not known.

    Attributes:
        attempts: how often the request was sent to the model, retries included.
        received_tokens: an estimate of the request that was received.
        sent_tokens: an estimate of the smallest that was sent.
        window_tokens: the window that was assumed.
        lowered_output: whether a retry asked for less output.
        not_retried: why there was no retry.
        overflow: what the provider's refusal said.

    >>> Facts(received_tokens=ProviderTokens(41_000), sent_tokens=ProviderTokens(15_000)).compressed
    True
    """

    attempts: int | None = None
    received_tokens: ProviderTokens | None = None
    sent_tokens: ProviderTokens | None = None
    window_tokens: ProviderTokens | None = None
    lowered_output: bool = False
    not_retried: NotRetried | None = None
    overflow: Overflow | None = None

    @property
    def compressed(self) -> bool:
        """Whether less was sent than had come."""
        return bool(self.received_tokens and self.sent_tokens and self.sent_tokens < self.received_tokens)


def readable_error(fmt: Format, facts: Facts, policy: Policy) -> str:
    """Return the text of the final context-window error: an opening by which clients know it, and what happened."""
    opening = _opening(fmt, facts)
    if policy.error_text:
        return f"{opening} {policy.error_text}"
    words = _WORDS[policy.language]
    sentences = [words[name].format(**_figures(facts)) for name in _happened(facts)]
    if facts.overflow and facts.overflow.sentence:
        sentences.append(words["said"].format(sentence=facts.overflow.sentence))
    sentences.append(words["output_advice" if _is_output(facts) else "advice"])
    return " ".join((opening, *sentences))


def small_window(window_tokens: ProviderTokens, least_tokens: int) -> str:
    """Return the answer to a request whose model has a window below what the operator allows (`block_below_tokens`)."""
    return f"The model's window of {window_tokens} tokens is below the least that is served here, {least_tokens} tokens."


def _opening(fmt: Format, facts: Facts) -> str:
    """Return the sentence by which clients of the format know the error, with such figures as are true.

    Claude Code looks for "prompt is too long", OpenAI's clients for "maximum context length"; Google's words are "The input
    token count (..) exceeds the maximum number of tokens allowed (..)." The size of the request as
    it came is the provider's count only when it was sent so.
    """
    overflow = facts.overflow
    limit = overflow.limit_tokens if overflow else None
    if _is_output(facts):
        return f"max_tokens is too large: this model supports {f'at most {limit}' if limit else 'fewer'} output tokens."
    counted = overflow.input_tokens if overflow and not overflow.at_least and not facts.compressed else None
    size = counted or facts.received_tokens
    if not limit and size and facts.window_tokens and size > facts.window_tokens:
        limit = facts.window_tokens  # otherwise the window was not what refused it
    if fmt == "anthropic":
        return (
            f"prompt is too long: {size} tokens > {limit} maximum."
            if size and limit and size > limit
            else "prompt is too long."
        )
    if limit and overflow and overflow.pattern == RATE_TOO_LARGE.name:
        return f"The request alone is above the provider's rate limit of {limit} tokens."
    if fmt == "gemini":
        counts = (f" ({size})" if size else "", f" ({limit})" if limit else "")
        return "The input token count{} exceeds the maximum number of tokens allowed{}.".format(*counts)
    what = f"This model's maximum context length is {limit} tokens." if limit else "The model's context length is exceeded."
    about = "" if counted else "about "
    return f"{what} However, your messages resulted in {about}{size} tokens." if size else what


def _is_output(facts: Facts) -> bool:
    return facts.overflow is not None and facts.overflow.kind == "output_limit"


def _figures(facts: Facts) -> dict[str, int | None]:
    return {"attempts": facts.attempts, "received": facts.received_tokens, "sent": facts.sent_tokens}


def _happened(facts: Facts) -> list[str]:
    """Return the names of the sentences that are true of a request."""
    if facts.attempts is None:
        return []
    retried = facts.attempts > 1
    names = [("compressed" if facts.compressed else "not_compressed") + ("_and_retried" if retried else "")]
    if facts.lowered_output:
        names.append("lowered_output")
    if not retried and facts.not_retried:
        names.append(facts.not_retried)
    return names


_WORDS: Mapping[Language, Mapping[str, str]] = {
    "en": {
        "compressed": "Older content was compressed from about {received} to about {sent} tokens, and that was still refused.",
        "compressed_and_retried": "Older content was compressed from about {received} to about {sent} tokens; all {attempts} "
        "attempts were refused.",
        "not_compressed": "Nothing was compressed.",
        "not_compressed_and_retried": "Nothing was compressed; all {attempts} attempts were refused.",
        "lowered_output": "The requested output was lowered.",
        "switched_off": "The request was not retried, since retries are switched off.",
        "cannot_shrink": "The request was not retried, since no more of it may be compressed.",
        "stored_history": "The request was not retried: the history that exceeds the window is kept by the provider.",
        "said": 'The provider said: "{sentence}"',
        "advice": "Send a shorter message or smaller tool output, start a new conversation, or use a model with a larger window.",
        "output_advice": "Ask for a shorter answer.",
    },
    "zh": {
        "compressed": "较早的内容已从约 {received} 个 token 压缩到约 {sent} 个,但仍被拒绝。",
        "compressed_and_retried": "较早的内容已从约 {received} 个 token 压缩到约 {sent} 个,共 {attempts} 次尝试均被拒绝。",
        "not_compressed": "没有压缩任何内容。",
        "not_compressed_and_retried": "没有压缩任何内容,共 {attempts} 次尝试均被拒绝。",
        "lowered_output": "已降低请求的输出长度。",
        "switched_off": "重试已关闭,因此没有重试。",
        "cannot_shrink": "没有更多内容可以压缩,因此没有重试。",
        "stored_history": "超出窗口的历史记录保存在模型服务商处,因此没有重试。",
        "said": "模型服务商的原话:“{sentence}”",
        "advice": "请缩短消息或工具输出、开始新的对话,或改用窗口更大的模型。",
        "output_advice": "请降低所要求的输出长度。",
    },
}
