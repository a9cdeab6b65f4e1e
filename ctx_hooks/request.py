"""One request on its way to a model: what of LiteLLM's keyword arguments the engine looks at, and how it writes back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ctx_hooks.wire import CODECS

if TYPE_CHECKING:
    from ctx_hooks.conversation import Conversation, Format

FORMATS: Mapping[str, Format] = {
    "completion": "openai-chat",
    "acompletion": "openai-chat",
    "anthropic_messages": "anthropic",
    "responses": "openai-responses",
    "aresponses": "openai-responses",
}
"""LiteLLM's call types whose requests carry a conversation."""

_MESSAGES: Mapping[Format, str] = {
    "openai-chat": "messages",
    "anthropic": "messages",
    "openai-responses": "input",
}
_SYSTEM: Mapping[Format, str] = {"anthropic": "system", "openai-responses": "instructions"}
OUTPUT_FIELDS = ("max_completion_tokens", "max_tokens", "max_output_tokens")
STORED_HISTORY = ("previous_response_id", "conversation")
"""Fields by which a responses request continues a history that the provider keeps: items may answer calls not sent."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request's format and fields. `fields` are the caller's: read, never changed."""

    format: Format
    fields: Mapping[str, Any]

    @property
    def model(self) -> str:
        """The model or model group that is asked."""
        model = self.fields.get("model")
        return model if isinstance(model, str) else ""

    @property
    def continues_stored_history(self) -> bool:
        """Whether part of the conversation lies with the provider."""
        return any(self.fields.get(name) for name in STORED_HISTORY)

    @property
    def max_output_tokens(self) -> int | None:
        """The output that the caller asks for, None when it does not say or says nonsense."""
        for name in OUTPUT_FIELDS:
            value = self.fields.get(name)
            if isinstance(value, int) and not isinstance(value, bool) and value > 0:
                return value
        return None

    def conversation(self) -> Conversation:
        """Return the conversation; raises MalformedConversationError when the fields hold none."""
        return CODECS[self.format].read(
            self.fields.get(_MESSAGES[self.format]),  # type: ignore[arg-type]  # read checks it
            system=self.fields.get(_SYSTEM.get(self.format, "")),
            tools=self.fields.get("tools"),
        )

    def is_longer_than(self, chars: int) -> bool:
        """Whether the request's text has more than `chars` characters; looks no further than that."""
        waiting = [self.fields.get(name) for name in ("messages", "input", "tools", "system", "instructions")]
        while waiting and chars >= 0:
            value = waiting.pop()
            if isinstance(value, str):
                chars -= len(value)
            elif isinstance(value, Mapping):
                waiting += value.values()
            elif isinstance(value, (list, tuple)):
                waiting += value
        return chars < 0

    def changes(self, conversation: Conversation) -> dict[str, Any]:
        """Return the field that carries the messages, holding `conversation`."""
        return {_MESSAGES[self.format]: CODECS[self.format].write(conversation)}


def format_of(fields: Mapping[str, Any]) -> Format:
    """Return the format that the caller of a failed request speaks, from the route he called."""
    route = (fields.get("proxy_server_request") or {}).get("url") or ""
    if route.split("?")[0].rstrip("/").endswith("/messages"):
        return "anthropic"
    return "openai-responses" if "input" in fields and "messages" not in fields else "openai-chat"


def request_of(call_type: object, fields: Mapping[str, Any]) -> Request | None:
    """Return the request of a LiteLLM call, None for a call without a conversation (embeddings, images, files)."""
    fmt = FORMATS.get(str(getattr(call_type, "value", call_type)))
    if fmt is None or not fields.get(_MESSAGES[fmt]):
        return None
    return Request(fmt, fields)
