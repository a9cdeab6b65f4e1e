"""One request on its way to a model: the LiteLLM arguments that the engine reads, and how it writes changes back."""

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import Any

from ctx_hooks.attempts.sizes import Bound, bound_of
from ctx_hooks.compaction.history import History, MessageStats, from_newest_summary, history_of, message_stats
from ctx_hooks.conversation.conversation import Conversation
from ctx_hooks.formats import ANTHROPIC, CHAT, FORMAT_OF_CALL_TYPE, GEMINI, RESPONSES, WIRE_FORMATS, Format, MessageReader
from ctx_hooks.formats.fields import copied, json_of, mapping_or_empty, preamble_of
from ctx_hooks.formats.wire_format import without_flags
from ctx_hooks.litellm_compat.call import Call
from ctx_hooks.policy.resolve import switched_off
from ctx_hooks.runtime.warnings import warn_once
from ctx_hooks.tokens.counter import Counter
from ctx_hooks.tokens.units import ProviderTokens

STORED_HISTORY = ("previous_response_id", "conversation")
"""Fields by which a responses request continues a history that the provider keeps: items may answer calls not sent."""
READ_FROM_OWN_SUMMARY: Mapping[Format, tuple[str, ...]] = {
    CHAT: ("anthropic/",),
    ANTHROPIC: ("anthropic/", "azure_ai/claude", "bedrock/", "vertex_ai/claude"),
    RESPONSES: ("openai/", "azure/"),
}
"""By format, the beginnings of model names whose providers drop all messages before their own compaction."""
TRUNCATION: Mapping[str, Any] = {"truncation": "auto"}
"""The field by which OpenAI's Responses API drops the oldest items of a history that exceeds the window."""
LEAST_ANSWER_TOKENS = 1_024
"""The minimum for the answer beside the thinking; if there is less, thinking has half of the output."""
LEAST_THINKING_TOKENS = 1_024
"""Anthropic: "`max_tokens` must be greater than `thinking.budget_tokens`", which is at least 1,024."""

MOST_REQUEST_BYTES = 32_000_000
"""Larger requests lose their oldest turns at once. The largest windows, of two million tokens, hold about 8 MB of text;
beyond four times that nearly all is dropped anyway, and choosing what stays takes some ten times the request in memory."""
MOST_MESSAGES = 10_000
"""The same for the number of messages. To select takes 0.4 ms a message of a conversation that was not seen before, forty
times what LiteLLM takes; sessions of this length have 500 messages for each time that their client would have compacted."""


class Request:
    """A request's format and fields, and what is read from them, each at its first use. It never changes the fields.

    Attributes:
        items: the messages or input items.
        beside: the parts that are sent and counted beside them: system text, schemas and tools.
        continues_stored_history: whether the provider keeps part of the conversation.
        asks_for_truncation: whether the provider may drop the oldest items; nobody else can drop stored ones (OpenAI).
    """

    def __init__(self, fmt: Format, fields: Mapping[str, Any]) -> None:
        self.format, self.fields = fmt, fields
        self.wire = wire = WIRE_FORMATS[fmt]
        self.call = Call(fields)
        self.items: Any = wire.items(fields.get(wire.messages_field))
        self.beside: tuple[Any, ...] = (*wire.counted_values(fields), fields.get("tools"))
        self.continues_stored_history = any(map(fields.get, STORED_HISTORY))
        self.asks_for_truncation = fields.get("truncation") == "auto"
        self._messages: MessageReader | None = None

    def with_fields(self, fields: Mapping[str, Any]) -> "Request":
        """Return a request of the same format with other fields."""
        return Request(self.format, fields)

    @cached_property
    def max_output_tokens(self) -> ProviderTokens | None:
        """The output that the caller asks for, None if it states none; a value that is no positive number is logged."""
        options = self.wire.options(self.fields)
        for name in self.wire.output_fields:
            value = options.get(name)
            if isinstance(value, int) and not isinstance(value, bool) and value > 0:
                return ProviderTokens(value)
            if value is not None:
                warn_once(f"{name} is no positive number ({value!r:.40}) and is passed over")
        return None

    @property
    def least_output_tokens(self) -> ProviderTokens:
        """The output below which the request would have to think less, 0 if it names no thinking budget.

        Anthropic: "Changes to thinking parameters (enabled/disabled or budget allocation) invalidate message cache
        breakpoints".
        """
        budget = mapping_or_empty(self.fields.get("thinking")).get("budget_tokens")
        return ProviderTokens(budget + LEAST_ANSWER_TOKENS if isinstance(budget, int) and budget > 0 else 0)

    @property
    def messages(self) -> MessageReader:
        """The messages, each read at its first use; raises MalformedConversationError if there are none."""
        # Before Python 3.12 a `cached_property` has one lock: the event loop would wait for another request's thread.
        if self._messages is None:
            self._messages = MessageReader(self.format, self.items, *preamble_of(*self.beside))
        return self._messages

    @cached_property
    def bound(self) -> Bound:
        """An upper bound of the request's tokens."""
        return bound_of([self.items, *self.beside])

    @property
    def size_bytes(self) -> int:
        """The estimated memory of the messages. This reads all of them: call it in a thread."""
        return min(_bytes_of([self.items]), MOST_REQUEST_BYTES)

    def json_bytes(self, changes: Mapping[str, Any]) -> int:
        """Return the bytes of the JSON of its messages, system text and tools, with changed fields: call it in a thread."""
        changed = self.with_fields({**self.fields, **changes}) if changes else self
        return len(json_of([changed.items, *changed.beside]))

    @property
    def is_too_long(self) -> bool:
        """Whether it has too many messages to select the kept text: its oldest turns are dropped at once."""
        return isinstance(self.items, (list, tuple)) and len(self.items) > MOST_MESSAGES

    @property
    def is_too_large(self) -> bool:
        """The same for its size. This may read the whole request: call it in a thread for a long one."""
        return self.is_too_long or _bytes_of([self.items, *self.beside]) > MOST_REQUEST_BYTES

    def changes(self, conversation: Conversation) -> dict[str, Any]:
        """Return the field of the messages with a copy of `conversation`."""
        return {self.wire.messages_field: self.wire.sent(conversation, self.messages.items)}

    def as_read_by(self, model: str, index: Sequence[MessageStats]) -> "Request":
        """Return the request without the messages before its provider's own newest summary, which the provider ignores.

        Anthropic: "The API automatically drops all message blocks prior to the compaction block". So clients may send the
        whole history in each request. LiteLLM does not translate such a summary for other providers: they read all messages.
        """
        if not model.startswith(READ_FROM_OWN_SUMMARY.get(self.format, ())):
            return self
        return self.with_only(from_newest_summary(index))

    def with_only(self, indices: Sequence[int]) -> "Request":
        """Return the request with only the messages of these indices, itself if it has no others."""
        if len(indices) == len(self.items):
            return self
        return self.with_fields({**self.fields, self.wire.messages_field: [self.items[i] for i in indices]})

    def with_output(self, tokens: ProviderTokens) -> dict[str, Any]:
        """Return the fields that ask for an output of `tokens`, with Anthropic's thinking kept below it."""
        options, thinking = self.wire.options(self.fields), mapping_or_empty(self.fields.get("thinking"))
        name = next((n for n in self.wire.output_fields if options.get(n) is not None), self.wire.output_field)
        changes = self.wire.with_options(self.fields, {name: int(tokens)})
        budget = thinking.get("budget_tokens")
        if isinstance(budget, int):
            lowered = budget if tokens >= budget + LEAST_ANSWER_TOKENS else min(budget, tokens // 2)
            kept = {**thinking, "budget_tokens": lowered}
            changes["thinking"] = kept if lowered >= LEAST_THINKING_TOKENS else {"type": "disabled"}
        return changes

    def without_flags(self, sent: dict[str, Any]) -> dict[str, Any]:
        """Return the fields to send, without the caller's flags in the messages: no provider accepts these."""
        name = self.wire.messages_field
        bare = without_flags(self.wire.items(sent.get(name)))
        return sent if bare is None else {**sent, name: bare}

    def with_tool(self, definition: Mapping[str, Any]) -> dict[str, Any]:
        """Return the tools field with one more tool at its end, so that the client's cached prefix stays valid."""
        return {"tools": [*(self.fields.get("tools") or ()), copied(definition)]}


def _bytes_of(values: Sequence[Any]) -> int:
    """Return about the bytes of values, also of lone surrogates and huge integers; UNREAD if they have many more."""
    return bound_of(values, MOST_REQUEST_BYTES, math.inf, json_of).tokens


def format_of(fields: Mapping[str, Any]) -> Format:
    """Return the format of a failed request's caller, from the called route."""
    url = (fields.get("proxy_server_request") or {}).get("url") or ""
    path = url.split("?")[0].rstrip("/")
    by_route = (wire.name for wire in WIRE_FORMATS.values() if wire.route_ends and path.endswith(wire.route_ends))
    by_field = (wire.name for wire in WIRE_FORMATS.values() if not wire.route_ends and wire.messages_field in fields)
    return next(chain(by_route, by_field), CHAT)


def request_of(call_type: object, fields: Mapping[str, Any]) -> Request | None:
    """Return the request of a LiteLLM call, None for a call without a conversation (embeddings, images, files).

    Also None for the chat request that LiteLLM makes from Google's for another provider: it is already fitted, and LiteLLM
    reports the chosen deployment, which selects the policy, only to the first call. None for every call while the
    environment switches the plugin off.
    """
    fmt = None if switched_off() else FORMAT_OF_CALL_TYPE.get(str(getattr(call_type, "value", call_type)))
    if fmt is None or not fields.get(WIRE_FORMATS[fmt].messages_field):
        return None
    request = Request(fmt, fields)
    return None if fmt != GEMINI and request.call.came_over_google_route else request


def counted_history(request: Request, counter: Counter) -> History:
    """Return the history as `counter` counts it; raises MalformedConversationError and CompressionTimeoutError."""
    messages = request.messages
    return history_of(messages, message_stats(messages, counter), counter, continues=request.continues_stored_history)
