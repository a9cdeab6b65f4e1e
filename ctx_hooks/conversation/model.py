"""The neutral, frozen model of a conversation that every room works on, and who speaks in it.

A part or message keeps the provider's own value in `raw`, so that formats write it back with all of its fields.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal, TypeAlias

from ctx_hooks.conversation.placeholders import REMOVED_MESSAGES

Role = Literal["system", "user", "assistant", "tool", "other"]
Path: TypeAlias = tuple[str | int, ...]
"""The keys and indices that lead to a text inside a value."""
MediaKind = Literal["image", "audio", "file", "sealed"]
"""`sealed` is data that a provider encrypted for itself: reasoning, or its own compaction."""
ELIDED = "…"
"""Reasoning in its shortest form. An empty one is refused, and LiteLLM drops a blank one on `/v1/messages`."""
QUESTION_MARKS = "?\uff1f\u061f\u037e\u055e\u1367"
"""Question marks of Latin and most other scripts, Chinese and Japanese, Arabic, Greek, Armenian and Ethiopic."""


@dataclass(frozen=True, slots=True)
class Text:
    """Plain text of a message or of a tool result.

    `came_text` is the original text, None while no step has cut it. Steps keep a text that the provider has signed whole, or
    remove it with its exchange.
    """

    text: str
    raw: Any = field(default=None, repr=False, compare=False)
    came_text: str | None = field(default=None, repr=False, compare=False)
    is_signed: bool = field(default=False, compare=False)

    @property
    def is_cut(self) -> bool:
        """Whether a step has removed some of the text."""
        return self.came_text is not None

    @property
    def original_text(self) -> str:
        """The text as the client sent it."""
        return self.text if self.came_text is None else self.came_text


@dataclass(frozen=True, slots=True)
class Media:
    """An image, a sound or a file: the length of its payload as sent (URL or base64), and its readable text."""

    kind: MediaKind
    size_chars: int
    raw: Any = field(default=None, repr=False, compare=False)
    text: str = ""


@dataclass(frozen=True, slots=True)
class Reasoning:
    """A model's thinking. `media` is its sealed part; steps keep or remove a signed or sealed one whole."""

    text: str
    raw: Any = field(default=None, repr=False, compare=False)
    media: tuple[Media, ...] = ()
    is_signed: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a tool, with its arguments' JSON text; steps keep a signed one whole, or remove it with its exchange."""

    id: str
    name: str
    arguments: str
    raw: Any = field(default=None, repr=False, compare=False)
    is_signed: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class Opaque:
    """A part of unknown kind: the counter counts its `text` and the `media` found in it, and no step changes it.

    `texts` has the paths of its long texts: these are separate parts before it, each with its path as `raw`.
    """

    text: str
    raw: Any = field(default=None, repr=False, compare=False)
    media: tuple[Media, ...] = ()
    texts: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The answer to a tool call.

    Attributes:
        is_error: whether the provider's own field says that the tool failed.
        came_text: the original text, None while no step has cut it. No message text can set this field.
        is_missing: whether the client sent no result, and a repair added this one.
    """

    call_id: str
    parts: tuple[Text | Media | Opaque, ...]
    is_error: bool = False
    raw: Any = field(default=None, repr=False, compare=False)
    came_text: str | None = field(default=None, repr=False, compare=False)
    is_missing: bool = field(default=False, compare=False)

    @property
    def text(self) -> str:
        """All text of the result, its parts joined by line breaks."""
        return _joined(self.parts)

    @property
    def is_cut(self) -> bool:
        """Whether a step has removed some of its text."""
        return self.came_text is not None

    @property
    def original_text(self) -> str:
        """The text of the result as the client sent it."""
        return self.text if self.came_text is None else self.came_text


Part: TypeAlias = Text | Reasoning | ToolCall | ToolResult | Media | Opaque


@dataclass(frozen=True, slots=True)
class Message:
    """One message or item of the provider's list.

    Attributes:
        role: `other` is a provider's own item, of no known role.
        parts: its content, calls and results in order.
        name: who speaks, if there are several users or agents.
        pinned: whether the caller has marked it with `{"context": {"pin": true}}`: it stays whole.
        edited: whether the format must write it from `parts` instead of `raw`.
    """

    role: Role
    parts: tuple[Part, ...]
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
    name: str | None = None
    pinned: bool = False
    edited: bool = False

    def with_parts(self, parts: tuple[Part, ...]) -> "Message":
        """Return this message with other parts; itself if the parts are the same."""
        if parts == self.parts:
            return self
        return Message(self.role, parts, self.raw, self.name, self.pinned, edited=True)

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The tool calls of this message, in order."""
        return tuple([p for p in self.parts if isinstance(p, ToolCall)])

    @property
    def results(self) -> tuple[ToolResult, ...]:
        """The tool results of this message, in order."""
        return tuple([p for p in self.parts if isinstance(p, ToolResult)])

    @property
    def text(self) -> str:
        """The message's own text, without tool results and reasoning."""
        return _joined(self.parts)


def is_request(message: Message) -> bool:
    """Whether a user speaks here: user messages that return tool results are the client's words, not the user's.

    A message that replaces a removed one is no request either. A result that a repair added before words does not count.
    """
    if message.role != "user" or message.text in REMOVED_MESSAGES:
        return False
    results = message.results
    return not results or (len(results) < len(message.parts) and all(r.is_missing for r in results))


def is_question(message: Message) -> bool:
    """Whether a user speaks here and asks: the words contain a question mark."""
    text = message.text if is_request(message) else ""
    return any(mark in text for mark in QUESTION_MARKS)


def prefill_of(messages: Sequence[Message]) -> int | None:
    """Return the index of a prefilled answer: the last message, if the assistant's and without tool calls."""
    last = len(messages) - 1
    return last if messages and messages[last].role == "assistant" and not messages[last].calls else None


@dataclass(frozen=True)
class Conversation:
    """A conversation of one format.

    Attributes:
        messages: the messages or items, oldest first.
        preamble: the texts that are sent and counted outside the messages: Anthropic's `system`, Responses'
            `instructions` and the tool definitions. No step changes it.
        preamble_markers: how many of these texts have a cache marker.
        settled: how many of the first messages an earlier compaction left: no step touches them.
        has_items: whether each part of a turn is an item of its own (Responses).
        signs_parts: whether signatures are on calls and texts, not on the reasoning (Google).
    """

    format: str
    messages: tuple[Message, ...]
    preamble: tuple[str, ...] = ()
    preamble_markers: int = 0
    settled: int = 0
    has_items: bool = False
    signs_parts: bool = False

    def with_messages(self, messages: tuple[Message, ...]) -> "Conversation":
        """Return this conversation with other messages; itself if the messages are the same."""
        if len(messages) == len(self.messages) and all(a is b for a, b in zip(messages, self.messages, strict=True)):
            return self
        return replace(self, messages=messages)

    @cached_property
    def exchanges(self) -> tuple[range, ...]:
        """Ranges of messages that are kept or removed together: a cut between two never separates a call from its result.

        Neighbouring items of the assistant are one answer: reasoning, text and calls belong together.
        """
        messages, joins_items = self.messages, self.has_items
        ends: list[int] = []
        open_calls: set[str] = set()
        for i, message in enumerate(messages):
            own = {c.id for c in message.calls}
            results = any(r.call_id not in own for r in message.results) or (joins_items and not own.isdisjoint(open_calls))
            continues = joins_items and i > 0 and messages[i - 1].role == message.role == "assistant"
            if i > 0 and not (results or continues or (open_calls and message.role == "assistant")):
                ends.append(i)
                open_calls = set()
            open_calls.update(own)
            open_calls.difference_update([r.call_id for r in message.results])
        return tuple(range(start, end) for start, end in pairwise([0, *ends, len(messages)]) if messages)

    @cached_property
    def newest_request(self) -> int | None:
        """Index of the newest message in any user's own words; None without one."""
        return next((i for i in range(len(self.messages) - 1, -1, -1) if is_request(self.messages[i])), None)

    @cached_property
    def newest_loop(self) -> range:
        """The tool loop that waits for the model's next step (the last exchange before a prefill), else an empty range."""
        for exchange in reversed(self.exchanges):
            if any(self.messages[i].results or self.messages[i].calls for i in exchange):
                return exchange
            if prefill_of(self.messages) not in exchange:
                break
        return range(0)


def _joined(parts: tuple[Part, ...]) -> str:
    """Return the texts of some parts, joined by line breaks."""
    return "\n".join([part.text for part in parts if isinstance(part, Text)])
