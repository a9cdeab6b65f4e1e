"""The text of the final context-window error: the cause, in the provider's words and ours, and the remedies."""

from collections.abc import Mapping

from ctx_hooks.attempts.attempt import Attempt
from ctx_hooks.formats import ANTHROPIC, GEMINI, Format
from ctx_hooks.overflow.patterns.other_errors import RATE_TOO_LARGE
from ctx_hooks.overflow.recognise import Overflow
from ctx_hooks.policy.settings import Language, Policy

CODE = "context_length_exceeded"
"""OpenAI's code for this error: clients that compact by themselves look for it."""


def readable_error(fmt: Format, attempt: Attempt | None, overflow: Overflow | None, policy: Policy) -> str:
    """Return the text of the final context-window error: an opening that clients recognise, and the cause.

    It is in the policy's language. The last attempt and its refusal may be unknown.
    """
    opening = _opening(fmt, attempt, overflow)
    words = _WORDS[policy.language]
    sentences = []
    if attempt is not None:
        received, sent = attempt.received_provider_tokens, attempt.sent_provider_tokens
        figures = {"attempts": attempt.to.attempt + 1, "received": received, "sent": sent}
        sentences = [words[name].format(**figures) for name in _happened(attempt, policy)]
    if overflow and overflow.sentence:
        sentences.append(words["said"].format(sentence=overflow.sentence))
    sentences.append(words["output_advice" if _is_output(overflow) else "advice"])
    return " ".join((opening, *sentences))


def small_window_error(window_tokens: int, policy: Policy) -> str:
    """Return the text of the refusal of a window below the policy's `block_below_tokens`, in the policy's language."""
    words = _WORDS[policy.language]
    small = words["window_too_small"].format(window=window_tokens, least=policy.block_below_tokens)
    return f"{small} {words['advice']}"


def _opening(fmt: Format, attempt: Attempt | None, overflow: Overflow | None) -> str:
    """Return the sentence by which the format's clients recognise the error, with only true figures.

    Claude Code looks for "prompt is too long", OpenAI's clients for "maximum context length"; Google's words are "The input
    token count (..) exceeds the maximum number of tokens allowed (..)." The provider's count is the received request's size
    only if the request was sent unchanged.
    """
    limit = overflow.limit_tokens if overflow else None
    if _is_output(overflow):
        return f"max_tokens is too large: this model supports {f'at most {limit}' if limit else 'fewer'} output tokens."
    compressed = attempt is not None and _is_compressed(attempt)
    counted = overflow.input_tokens if overflow and not overflow.at_least and not compressed else None
    size = counted or (attempt.received_provider_tokens if attempt is not None else 0)
    if not limit and attempt is not None and size > attempt.limits.window.tokens:
        limit = attempt.limits.window.tokens  # else the window did not cause the refusal
    if fmt == ANTHROPIC:
        return f"prompt is too long: {size} tokens > {limit} maximum." if limit and size > limit else "prompt is too long."
    if limit and overflow and overflow.pattern == RATE_TOO_LARGE.name:
        return f"The request alone is above the provider's rate limit of {limit} tokens."
    if fmt == GEMINI:
        counts = (f" ({size})" if size else "", f" ({limit})" if limit else "")
        return "The input token count{} exceeds the maximum number of tokens allowed{}.".format(*counts)
    what = f"This model's maximum context length is {limit} tokens." if limit else "The model's context length is exceeded."
    about = "" if counted else "about "
    return f"{what} However, your messages resulted in {about}{size} tokens." if size else what


def _is_output(overflow: Overflow | None) -> bool:
    return overflow is not None and overflow.kind == "output_limit"


def _is_compressed(attempt: Attempt) -> bool:
    """Whether the plugin sent less than it received."""
    return 0 < attempt.sent_provider_tokens < attempt.received_provider_tokens


def _happened(attempt: Attempt, policy: Policy) -> list[str]:
    """Return the names of the sentences that apply to a request."""
    retried = attempt.to.attempt > 0
    names = [("compressed" if _is_compressed(attempt) else "not_compressed") + ("_and_retried" if retried else "")]
    if attempt.lowered:
        names.append("lowered_output")
    if not retried and not policy.rescue_attempts:
        names.append("switched_off")
    elif not retried and attempt.spent:
        names.append("stored_history" if attempt.stored else "cannot_shrink")
    return names


_WORDS: Mapping[Language, Mapping[str, str]] = {
    "en": {
        "compressed": "Older content was compressed from about {received} to about {sent} tokens, and that was still "
        "refused.",
        "compressed_and_retried": "Older content was compressed from about {received} to about {sent} tokens; all "
        "{attempts} attempts were refused.",
        "not_compressed": "Nothing was compressed.",
        "not_compressed_and_retried": "Nothing was compressed; all {attempts} attempts were refused.",
        "lowered_output": "The requested output was lowered.",
        "switched_off": "The request was not retried, since retries are switched off.",
        "cannot_shrink": "The request was not retried, since no more of it may be compressed.",
        "stored_history": "The request was not retried: the history that exceeds the window is kept by the provider.",
        "said": 'The provider said: "{sentence}"',
        "advice": "Send a shorter message or smaller tool output, start a new conversation, or use a model with a larger "
        "window.",
        "output_advice": "Ask for a shorter answer.",
        "window_too_small": "The model's window of {window} tokens is below the least that is served here, {least} tokens.",
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
        "window_too_small": "该模型的窗口为 {window} 个 token,低于此处允许的下限 {least} 个 token。",
    },
}
