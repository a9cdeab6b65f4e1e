"""The behaviour of the fake provider: how it counts, refuses and answers; with real wordings of an overflow.

Its count of tokens is independent of the plugin's.
"""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import tiktoken

Format = Literal["openai-chat", "anthropic", "openai-responses", "gemini"]
IMAGE_TOKENS = 300
MESSAGE_TOKENS, TOOL_TOKENS = 4, 8
"""What each message and each tool definition adds."""
UNCOUNTED_KEYS = frozenset(
    {"type", "role", "id", "tool_use_id", "tool_call_id", "call_id", "signature", "cache_control", "thoughtSignature"}
)
ITEMS: Mapping[Format, str] = {
    "openai-chat": "messages",
    "anthropic": "messages",
    "openai-responses": "input",
    "gemini": "contents",
}
SYSTEM_TEXTS = ("system", "instructions", "system_instruction", "systemInstruction")
PIECE_CHARS = 20_000
"""Long texts are encoded in pieces: the encoder's time grows faster than a text without breaks."""


@dataclass(frozen=True, slots=True)
class Wording:
    """How one provider words an overflow. `text` may contain {limit}, {input}, {output} and {total}."""

    text: str
    status: int = 400
    code: str | None = None
    body: Callable[[str, str | None], Any] | None = None


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


Script = Callable[[Format, Mapping[str, Any], int], "Reply"]
"""Called with the format, the payload, and the number of requests of the same conversation that were answered before."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a tool; text arguments are streamed unchanged, whether they are JSON or not."""

    tool: str
    arguments: Mapping[str, Any] | str = field(default_factory=dict)

    @property
    def json(self) -> str:
        """The arguments as text."""
        return self.arguments if isinstance(self.arguments, str) else json.dumps(dict(self.arguments))


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer: a text, calls of tools, or both; before it signed `thinking` of Anthropic, or reasoning of the Responses API."""

    text: str = ""
    calls: Sequence[Call] = ()
    thinking: str = ""


@dataclass(frozen=True, slots=True)
class ProviderSettings:
    """How the provider counts and refuses. Raises ValueError for a wording that is not in `WORDINGS`.

    Attributes:
        window_tokens: the window of every model, in the provider's tokens; `windows` has others, by the model's name.
        tokens_factor: the provider's tokens per token of cl100k_base.
        counts_output: whether the requested output counts towards the window.
        max_output_tokens: a larger requested output is refused.
        wording: the name in `WORDINGS` of the refusal's text.
        held_models: models whose requests get no answer; their record says if the sender `left`.
        failing_models: models whose requests are answered 500.
        refused_body: a refusal's body, sent with status 200, with `MESSAGE` for its text: JSON, events, or the bytes of a
            protocol as Latin-1; "" for none.
        strict: whether requests that break a message rule are refused.
    """

    window_tokens: int = 8_000
    windows: Mapping[str, int] = field(default_factory=dict)
    tokens_factor: float = 1.0
    counts_output: bool = False
    max_output_tokens: int | None = None
    wording: str = "openai"
    held_models: Sequence[str] = ()
    failing_models: Sequence[str] = ()
    refused_body: str = ""
    strict: bool = True

    def __post_init__(self) -> None:
        if self.wording not in WORDINGS:
            raise ValueError(f"wording: one of {', '.join(WORDINGS)} is expected, not {self.wording!r:.60}")


def count_payload(fmt: Format, payload: Mapping[str, Any], settings: ProviderSettings) -> int:
    """Return the provider's tokens of the payload's input."""
    items = payload.get(ITEMS[fmt])
    listed = items if isinstance(items, list) else [items]
    tools = payload.get("tools") or []
    tokens = sum(_tokens(_text(i)) + MESSAGE_TOKENS + IMAGE_TOKENS * _images(i) for i in listed)
    tokens += sum(_tokens(_text(payload.get(k))) for k in SYSTEM_TEXTS)
    tokens += sum(_tokens(json.dumps(t)) + TOOL_TOKENS for t in tools)
    return int(tokens * settings.tokens_factor)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return "" if value.startswith("data:") else value
    if isinstance(value, Mapping):
        if _is_image(value):
            return ""
        return "\n".join(_text(v) for k, v in value.items() if k not in UNCOUNTED_KEYS)
    if isinstance(value, list):
        return "\n".join(map(_text, value))
    return "" if value is None else str(value)


def _images(value: Any) -> int:
    if isinstance(value, Mapping):
        return 1 if _is_image(value) else sum(map(_images, value.values()))
    return sum(map(_images, value)) if isinstance(value, list) else 0


def _is_image(value: Mapping[str, Any]) -> bool:
    return value.get("type") in {"image", "image_url", "input_image"} or "inlineData" in value or "inline_data" in value


def _tokens(text: str) -> int:
    encode = _encoding().encode_ordinary
    return sum(len(encode(text[i : i + PIECE_CHARS])) for i in range(0, len(text), PIECE_CHARS))


@lru_cache(maxsize=1)
def _encoding() -> tiktoken.Encoding:
    spec = find_spec("litellm")
    for root in (spec.submodule_search_locations if spec else None) or ():
        os.environ.setdefault("TIKTOKEN_CACHE_DIR", str(Path(root, "litellm_core_utils", "tokenizers")))
    return tiktoken.get_encoding("cl100k_base")
