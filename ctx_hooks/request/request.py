"""One request on its way to a model: what of LiteLLM's keyword arguments the engine looks at, and how it writes back."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ctx_hooks import message_rules
from ctx_hooks.compaction.message_index import newest_turns
from ctx_hooks.formats import CODECS, gemini_config
from ctx_hooks.formats.fields import preamble_of
from ctx_hooks.request.size_bound import most_tokens
from ctx_hooks.request.uncounted import has_uncounted_content
from ctx_hooks.runtime.warnings import warn_once

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ctx_hooks.compaction.message_index import MessageStats
    from ctx_hooks.conversation.model import Conversation, Format

FORMATS: Mapping[str, Format] = {
    "completion": "openai-chat",
    "acompletion": "openai-chat",
    "anthropic_messages": "anthropic",
    "responses": "openai-responses",
    "aresponses": "openai-responses",
    "generate_content": "gemini",
    "agenerate_content": "gemini",
    "generate_content_stream": "gemini",
    "agenerate_content_stream": "gemini",
}
"""LiteLLM's call types whose requests carry a conversation."""

_MESSAGES: Mapping[Format, str] = {
    "openai-chat": "messages",
    "anthropic": "messages",
    "openai-responses": "input",
    "gemini": "contents",
}
_SYSTEM: Mapping[Format, str] = {"anthropic": "system", "openai-responses": "instructions"}
_SCHEMAS = ("functions", "response_format", "text", "output_format", "output_config")
"""Fields beside `tools` whose JSON schemas providers put into the prompt, and bill."""
LEAST_THINKING_TOKENS = 1_024
DEFAULT_OUTPUT_FIELD: Mapping[Format, str] = {
    "openai-chat": "max_tokens",
    "anthropic": "max_tokens",
    "openai-responses": "max_output_tokens",
}
OUTPUT_FIELDS = ("max_completion_tokens", "max_tokens", "max_output_tokens")
STORED_HISTORY = ("previous_response_id", "conversation")
"""Fields by which a responses request continues a history that the provider keeps: items may answer calls not sent."""


MOST_REQUEST_BYTES = 32_000_000
"""Larger requests lose their oldest turns at once. The largest windows, of two million tokens, hold about 8 MB of text;
beyond four times that nearly all is dropped anyway, and choosing what stays takes some ten times the request in memory."""
MOST_MESSAGES = 200_000
"""The same for the number of messages: at 40 tokens a message they would fill four windows of two million tokens."""


@dataclass(frozen=True)
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
    def has_uncounted_content(self) -> bool:
        """Whether it holds content whose tokens cannot be counted here, such as stored histories and files by id."""
        return has_uncounted_content(self.fields, self.items)

    @property
    def max_output_tokens(self) -> int | None:
        """The output that the caller asks for, None when it does not say or says nonsense."""
        gemini = self.format == "gemini"
        holder, names = (
            (gemini_config.config_of(self.fields), gemini_config.OUTPUT) if gemini else (self.fields, OUTPUT_FIELDS)
        )
        for name in names:
            value = holder.get(name)
            if isinstance(value, int) and not isinstance(value, bool) and value > 0:
                return value
            if value is not None:
                warn_once(f"{name} is no positive number ({value!r:.40}) and is passed over")
        return None

    def conversation(self) -> Conversation:
        """Return the conversation; raises MalformedConversationError when the fields hold none."""
        return self._read(self.items)

    def part(self, start: int, end: int) -> Conversation:
        """Return the conversation with the messages from `start` to before `end` alone."""
        return self._read(self.items[start:end])

    def _read(self, items: Any) -> Conversation:
        texts, markers = self._preamble
        return replace(CODECS[self.format].read(items), preamble=texts, preamble_markers=markers)

    @property
    def items(self) -> Any:
        """The messages or input items; a responses input that is a text, and Google's one content, is its one item."""
        items = self.fields.get(_MESSAGES[self.format])
        if self.format == "gemini" and isinstance(items, Mapping):
            return [items]
        return (
            [{"role": "user", "content": items}] if self.format == "openai-responses" and isinstance(items, str) else items
        )

    def preamble(self) -> tuple[str, ...]:
        """Return what is sent and counted beside the messages: system text, tools and schemas."""
        return self._preamble[0]

    @cached_property
    def _preamble(self) -> tuple[tuple[str, ...], int]:
        return preamble_of(*self._preamble_values())

    def _preamble_values(self) -> tuple[Any, ...]:
        if self.format == "gemini":
            return (*gemini_config.counted_values(self.fields), self.fields.get("tools"))
        names = (_SYSTEM.get(self.format, ""), "tools", *_SCHEMAS)
        return tuple(self.fields.get(name) for name in names)

    def exceeds(self, tokens: int) -> bool:
        """Whether the request could have more than `tokens` tokens in any vocabulary; looks no further than that."""
        return self.most_tokens(tokens) > tokens

    def most_tokens(self, enough: int) -> int:
        """Return an upper bound of the request's tokens; once it is above `enough`, no more is looked at."""
        return most_tokens([self.items, *self._preamble_values()], enough)

    @property
    def is_too_large(self) -> bool:
        """Whether the request is too large to choose what of it stays: its oldest turns are dropped at once."""
        items = self.items
        return self.exceeds(MOST_REQUEST_BYTES) or (isinstance(items, (list, tuple)) and len(items) > MOST_MESSAGES)

    def changes(self, conversation: Conversation) -> dict[str, Any]:
        """Return the field that carries the messages, holding a copy of `conversation`.

        A copy, because parts of it may be remembered, and whoever sends the request may change it further.
        """
        return {_MESSAGES[self.format]: deepcopy(CODECS[self.format].write(conversation))}

    def newest_turns(self, index: Sequence[MessageStats], max_turns: int | None) -> Request:
        """Return the request with the newest turns of the user alone; itself if all are allowed.

        `index` holds the stats of each message.
        """
        newest = newest_turns(index, max_turns)
        if len(newest) == len(index):
            return self
        return Request(self.format, {**self.fields, _MESSAGES[self.format]: [self.items[i] for i in newest]})

    def repaired(self) -> dict[str, Any]:
        """Return the field that carries the messages with every rule kept, nothing when all is well."""
        conversation, done = message_rules.repair(self.conversation(), continues=self.continues_stored_history)
        return self.changes(conversation) if done else {}

    def with_output(self, tokens: int) -> dict[str, Any]:
        """Return the field that asks for the output, lowered to `tokens`, with Anthropic's thinking kept below it."""
        if self.format == "gemini":
            return gemini_config.with_output(self.fields, tokens)
        name = next((n for n in OUTPUT_FIELDS if self.fields.get(n) is not None), DEFAULT_OUTPUT_FIELD[self.format])
        changes: dict[str, Any] = {name: tokens}
        thinking = self.fields.get("thinking")
        if isinstance(thinking, Mapping) and isinstance(thinking.get("budget_tokens"), int):
            # Anthropic: "`max_tokens` must be greater than `thinking.budget_tokens`", which is at least 1,024.
            half = tokens // 2
            lowered = min(thinking["budget_tokens"], half)
            changes["thinking"] = (
                {**thinking, "budget_tokens": lowered} if lowered >= LEAST_THINKING_TOKENS else {"type": "disabled"}
            )
        return changes


def output_limits_in(changes: Mapping[str, Any]) -> dict[str, int]:
    """Return the output limits among changed fields, each by its own name, Google's inside its configuration too."""
    config = gemini_config.config_of(changes)
    own = {name: changes[name] for name in OUTPUT_FIELDS if name in changes}
    return own | {name: config[name] for name in gemini_config.OUTPUT if name in config}


def format_of(fields: Mapping[str, Any]) -> Format:
    """Return the format that the caller of a failed request speaks, from the route he called."""
    route = (fields.get("proxy_server_request") or {}).get("url") or ""
    if route.split("?")[0].rstrip("/").endswith("/messages"):
        return "anthropic"
    if gemini_config.came_over_google_route(fields):
        return "gemini"
    return "openai-responses" if "input" in fields and "messages" not in fields else "openai-chat"


def request_of(call_type: object, fields: Mapping[str, Any]) -> Request | None:
    """Return the request of a LiteLLM call, None for a call without a conversation (embeddings, images, files).

    None as well for the chat request that LiteLLM makes of Google's for another provider: what it asks has been fitted, and
    of the deployment that the Router chose, by which policies go, LiteLLM tells the first call alone.
    """
    fmt = FORMATS.get(str(getattr(call_type, "value", call_type)))
    if fmt is None or not fields.get(_MESSAGES[fmt]):
        return None
    if fmt != "gemini" and gemini_config.came_over_google_route(fields):
        return None
    return Request(fmt, fields)
