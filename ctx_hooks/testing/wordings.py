"""Real wordings of an overflow, for the fake provider to answer with."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Wording:
    """How one provider words an overflow. `text` may contain {limit}, {input}, {output} and {total}."""

    text: str
    status: int = 400
    code: str | None = None
    body: Callable[[str, str | None], Any] | None = None
    in_stream: bool = False
    """Whether a streamed request gets it as an error event inside a 200 answer."""


WORDINGS: dict[str, Wording] = {
    "openai": Wording(
        "This model's maximum context length is {limit} tokens. However, your messages resulted in {input} tokens. "
        "Please reduce the length of the messages.",
        code="context_length_exceeded",
    ),
    "openai_responses": Wording(
        "Your input exceeds the context window of this model. Please adjust your input and try again.",
        code="context_length_exceeded",
    ),
    "anthropic": Wording("prompt is too long: {input} tokens > {limit} maximum"),
    "bedrock": Wording("Input is too long for requested model."),
    "gemini": Wording("The input token count ({input}) exceeds the maximum number of tokens allowed ({limit})."),
}
"""By name; a test may add others."""


def error_body(wording: Wording, route: str, **figures: int) -> tuple[str, Any]:
    """Return the message and the JSON body of an overflow; Anthropic's and Google's routes answer in shapes of their own."""
    message = wording.text.format(**figures)
    if route == "gemini":
        return message, {"error": {"code": wording.status, "message": message, "status": "INVALID_ARGUMENT"}}
    error = {"message": message, "type": "invalid_request_error"}
    if route == "anthropic":
        return message, {"type": "error", "error": error}
    if wording.body:
        return message, wording.body(message, wording.code)
    return message, {"error": {**error, "param": "messages", "code": wording.code}}
