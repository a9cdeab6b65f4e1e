"""More wordings of an overflow, for the fake provider to answer with: importing this module adds them."""

from typing import Any

from ctx_hooks.testing.behaviour import WORDINGS, Wording


def _bare(message: str, _code: str | None) -> dict[str, Any]:
    return {"error": message, "error_type": "validation"}


def _vllm(message: str, _code: str | None) -> dict[str, Any]:
    return {"object": "error", "message": message, "type": "BadRequestError", "param": None, "code": 400}


MORE = {
    "openai_requested": Wording(
        "This model's maximum context length is {limit} tokens. However, you requested {total} tokens ({input} in the "
        "messages, {output} in the completion).", code="context_length_exceeded",
    ),
    "bedrock_converse": Wording("The model returned the following errors: Input is too long for requested model."),
    "bedrock_invoke": Wording("input length and `max_tokens` exceed context limit: {input} + {output} > {limit}"),
    "mistral": Wording("Prompt contains {input} tokens, too large for model with {limit} maximum context length"),
    "cohere": Wording(
        "too many tokens: total number of tokens (prompt and prediction) cannot exceed {limit} - received {total}."
    ),
    "cohere_excess": Wording(
        "too many tokens: size limit exceeded by {excess} tokens. The limit for this model is {limit} tokens."
    ),
    "watsonx": Wording("the number of input tokens {input} cannot exceed the total tokens limit {limit} for this model"),
    "cerebras": Wording(
        "Please reduce the length of the messages or completion. Current length is {input} while limit is {limit}"
    ),
    "tgi": Wording(
        "Input validation error: `inputs` tokens + `max_new_tokens` must be <= {limit}. Given: {input} `inputs` tokens and "
        "{output} `max_new_tokens`",
        status=422, body=_bare,
    ),
    "vllm": Wording(
        "The decoder prompt (length {input}) is longer than the maximum model length of {limit}.", body=_vllm,
    ),
    "sglang": Wording(
        "The input ({input} tokens) is longer than the model's context length ({limit} tokens).", body=_vllm,
    ),
    "llamacpp": Wording(
        "request ({input} tokens) exceeds the available context size ({limit} tokens), try increasing it",
        code="exceed_context_size_error",
    ),
    "llama_cpp_python": Wording("Requested tokens ({input}) exceed context window of {limit}", status=500),
    "ollama": Wording("prompt too long; exceeded max context length by {excess} tokens", body=_bare),
    "rate_limited": Wording(
        "Request too large for the model in organization org on tokens per min (TPM): Limit {limit}, Requested {total}.",
        status=429, code="rate_limit_exceeded",
    ),
}  # fmt: skip
WORDINGS.update(MORE)
