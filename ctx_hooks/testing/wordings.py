"""Real wordings of an overflow, for the fake provider to answer with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ctx_hooks.testing import gemini


@dataclass(frozen=True, slots=True)
class Wording:
    """How one provider words an overflow. `text` may hold {limit}, {input}, {output} and {total}."""

    text: str
    status: int = 400
    code: str | None = None
    body: Callable[[str, str | None], Any] | None = None
    in_stream: bool = False
    """Whether a streamed request gets it as an error event inside a 200 answer."""


def _openai(message: str, code: str | None) -> dict[str, Any]:
    return {"error": {"message": message, "type": "invalid_request_error", "param": "messages", "code": code}}


def _anthropic(message: str, code: str | None) -> dict[str, Any]:
    del code  # Anthropic has none
    return {"type": "error", "error": {"type": "invalid_request_error", "message": message}}


def _bare(message: str, code: str | None) -> dict[str, Any]:
    del code
    return {"error": message, "error_type": "validation"}


def _vllm(message: str, code: str | None) -> dict[str, Any]:
    del code
    return {"object": "error", "message": message, "type": "BadRequestError", "param": None, "code": 400}


WORDINGS: dict[str, Wording] = {
    "openai": Wording(
        "This model's maximum context length is {limit} tokens. However, your messages resulted in {input} tokens. "
        "Please reduce the length of the messages.",
        code="context_length_exceeded",
    ),
    "openai_requested": Wording(
        "This model's maximum context length is {limit} tokens. However, you requested {total} tokens ({input} in the "
        "messages, {output} in the completion). Please reduce the length of the messages or completion.",
        code="context_length_exceeded",
    ),
    "openai_responses": Wording(
        "Your input exceeds the context window of this model. Please adjust your input and try again.",
        code="context_length_exceeded",
    ),
    "anthropic": Wording("prompt is too long: {input} tokens > {limit} maximum", body=_anthropic),
    "anthropic_with_output": Wording(
        "input length and `max_tokens` exceed context limit: {input} + {output} > {limit}, decrease input length or "
        "`max_tokens` and try again",
        body=_anthropic,
    ),
    "bedrock": Wording("Input is too long for requested model."),
    "bedrock_converse": Wording("The model returned the following errors: Input is too long for requested model."),
    "bedrock_invoke": Wording(
        "The model returned the following errors: input length and `max_tokens` exceed context limit: {input} + {output} > "
        "{limit}, decrease input length or `max_tokens` and try again"
    ),
    "bedrock_nova": Wording("Too many input tokens. Max input tokens: {limit}, request input token count: {input}"),
    "gemini": Wording("The input token count ({input}) exceeds the maximum number of tokens allowed ({limit})."),
    "mistral": Wording(
        "Prompt contains {input} tokens and 0 draft tokens, too large for model with {limit} maximum context length"
    ),
    "cohere": Wording(
        "too many tokens: total number of tokens (prompt and prediction) cannot exceed {limit} - received {total}. Try "
        "using a shorter prompt or a smaller max_tokens value."
    ),
    "watsonx": Wording(
        "Invalid input argument for Model 'ibm/served': the number of input tokens {input} cannot exceed the total tokens "
        "limit {limit} for this model"
    ),
    "cohere_excess": Wording(
        "too many tokens: size limit exceeded by {excess} tokens. Try using shorter or fewer inputs. The limit for this model "
        "is {limit} tokens."
    ),
    "cerebras": Wording(
        "Please reduce the length of the messages or completion. Current length is {input} while limit is {limit}"
    ),
    "tgi": Wording(
        "Input validation error: `inputs` tokens + `max_new_tokens` must be <= {limit}. Given: {input} `inputs` tokens and "
        "{output} `max_new_tokens`",
        status=422,
        body=_bare,
    ),
    "vllm": Wording(
        "The decoder prompt (length {input}) is longer than the maximum model length of {limit}. Make sure that "
        "`max_model_len` is no smaller than the number of text tokens.",
        body=_vllm,
    ),
    "sglang_stream": Wording(
        "The input ({input} tokens) is longer than the model's context length ({limit} tokens).", body=_vllm, in_stream=True
    ),
    "llamacpp": Wording(
        "request ({input} tokens) exceeds the available context size ({limit} tokens), try increasing it",
        code="exceed_context_size_error",
    ),
    "llama_cpp_python": Wording("Requested tokens ({input}) exceed context window of {limit}", status=500),
    "ollama": Wording("prompt too long; exceeded max context length by {excess} tokens", body=_bare),
    "github_models": Wording(
        "Request body too large for gpt-4o model. Max size: {limit} tokens.", status=413, code="tokens_limit_reached"
    ),
    "rate_limited": Wording(
        "Request too large for the model in organization org-test on tokens per min (TPM): Limit {limit}, Requested "
        "{total}. The input or output tokens must be reduced in order to run successfully.",
        status=429,
        code="rate_limit_exceeded",
    ),
}


def error_body(wording: Wording, route: str, **figures: int) -> tuple[str, Any]:
    """Return the message and the JSON body of an overflow; Anthropic's and Google's routes answer in shapes of their own."""
    message = wording.text.format(**figures)
    if route == "gemini":
        return message, gemini.refusal(message, wording.status)
    shape = wording.body or _openai
    if route == "anthropic":
        shape = _anthropic
    elif shape is _anthropic:
        shape = _openai
    return message, shape(message, wording.code)
