"""The neutral, frozen model of a conversation that every room works on.

A part or message keeps the provider's own value in `raw`, so that whatever this model does not name (unknown
fields, citations, cache markers, encrypted items) is written back as it came. An unedited message is written as
the very object that was read.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from ctx_hooks.conversation import placeholders

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

Format = Literal["openai-chat", "anthropic", "openai-responses", "gemini"]
Role = Literal["system", "user", "assistant", "tool", "other"]
MediaKind = Literal["image", "audio", "file", "sealed"]
"""`sealed` is what a provider encrypted for itself: reasoning, or its own compaction."""


@dataclass(frozen=True, slots=True)
class Text:
    """Plain text of a message or of a tool result; `is_cut` says that a step has taken some of it away.

    `is_signed` says that the provider has signed it: it stays whole or goes with its exchange.
    """

    text: str
    raw: Any = field(default=None, repr=False, compare=False)
    is_cut: bool = field(default=False, compare=False)
    is_signed: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class Media:
    """An image, a sound or a file; `size_chars` is the length of its payload as sent, URL or base64.

    `text` is what it holds to be read beside its payload, such as a document's plain text.
    """

    kind: MediaKind
    size_chars: int
    raw: Any = field(default=None, repr=False, compare=False)
    text: str = ""


@dataclass(frozen=True, slots=True)
class Reasoning:
    """A model's thinking. Providers sign or encrypt it: it stays whole or goes whole, and is never edited.

    `media` is its sealed part.
    """

    text: str
    raw: Any = field(default=None, repr=False, compare=False)
    media: tuple[Media, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a tool; `arguments` is the JSON text of its arguments.

    `is_signed` says that the provider has signed it: it stays whole or goes with its exchange.
    """

    id: str
    name: str
    arguments: str
    raw: Any = field(default=None, repr=False, compare=False)
    is_signed: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class Opaque:
    """Something this model does not know: counted by `text` and by the `media` found in it, never changed."""

    text: str
    raw: Any = field(default=None, repr=False, compare=False)
    media: tuple[Media, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The answer to the call `call_id`.

    `is_cut` says that a step has taken some of its text away; `came_chars` is the length of the text it came with, None
    while no step has rewritten it. Both are known here alone: no text can claim them.
    """

    call_id: str
    parts: tuple[Text | Media | Opaque, ...]
    is_error: bool = False
    raw: Any = field(default=None, repr=False, compare=False)
    is_cut: bool = field(default=False, compare=False)
    came_chars: int | None = field(default=None, compare=False)

    @property
    def text(self) -> str:
        """All text of the result, its parts joined by line breaks."""
        return "\n".join(p.text for p in self.parts if isinstance(p, Text))

    @property
    def original_chars(self) -> int:
        """The length of the text that the result came with."""
        return len(self.text) if self.came_chars is None else self.came_chars


Part: TypeAlias = Text | Reasoning | ToolCall | ToolResult | Media | Opaque


@dataclass(frozen=True, slots=True)
class Message:
    """One message or item of the provider's list."""

    role: Role
    parts: tuple[Part, ...]
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
    name: str | None = None
    pinned: bool = False
    edited: bool = False

    def with_parts(self, parts: tuple[Part, ...]) -> Message:
        """Return this message with other parts; itself when nothing differs."""
        return self if parts == self.parts else replace(self, parts=parts, edited=True)

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The tool calls of this message, in order."""
        return tuple(p for p in self.parts if isinstance(p, ToolCall))

    @property
    def results(self) -> tuple[ToolResult, ...]:
        """The tool results of this message, in order."""
        return tuple(p for p in self.parts if isinstance(p, ToolResult))

    @property
    def text(self) -> str:
        """The message's own text, without tool results and reasoning."""
        return "\n".join(p.text for p in self.parts if isinstance(p, Text))


@dataclass(frozen=True)
class Conversation:
    """A conversation of one format. `preamble` is text that is sent and counted but stands outside the messages.

    The preamble holds Anthropic's `system`, Responses' `instructions` and the tool definitions; it is never changed.
    `preamble_markers` is how many of them carry a cache marker.
    """

    format: Format
    messages: tuple[Message, ...]
    preamble: tuple[str, ...] = ()
    preamble_markers: int = 0

    def with_messages(self, messages: tuple[Message, ...]) -> Conversation:
        """Return this conversation with other messages; itself when nothing differs."""
        if len(messages) == len(self.messages) and all(a is b for a, b in zip(messages, self.messages, strict=True)):
            return self
        return replace(self, messages=messages)

    def part(self, start: int, end: int) -> Conversation:
        """Return this conversation with the messages from `start` to before `end` alone."""
        return replace(self, messages=self.messages[start:end])

    def map_parts(self, edit: Callable[[int, Part], Part | None]) -> Conversation:
        """Return this conversation with every part replaced by `edit(message_index, part)`; None removes a part."""
        messages = []
        for i, message in enumerate(self.messages):
            edited = [p for part in message.parts if (p := edit(i, part)) is not None]
            messages.append(message.with_parts(tuple(edited)))
        return self.with_messages(tuple(messages))

    @cached_property
    def exchanges(self) -> tuple[range, ...]:
        """Ranges of messages that stand or fall together: a cut between two of them never parts a call from its result."""
        return tuple(_exchanges(self.messages, join_assistant_items=self.format == "openai-responses"))

    @cached_property
    def newest_request(self) -> int | None:
        """Index of the newest message in the user's own words, None when there is none."""
        human = self._human_name
        for i in range(len(self.messages) - 1, -1, -1):
            if is_request(self.messages[i]) and self.messages[i].name in (human, None):
                return i
        return None

    @cached_property
    def newest_loop(self) -> range:
        """The last exchange when it is a tool loop waiting for the model's next step, else an empty range."""
        last = self.exchanges[-1] if self.exchanges else range(0)
        waiting = any(self.messages[i].results or self.messages[i].calls for i in last)
        return last if waiting else range(0)

    @cached_property
    def _human_name(self) -> str | None:
        """Who speaks first as the user; multi-agent frameworks send other agents' output as named user messages."""
        return next((m.name for m in self.messages if is_request(m)), None)


def is_request(message: Message) -> bool:
    """Whether a user speaks here: user messages that only carry tool results back are the client's, not the user's.

    Nor does one speak that stands for a removed message, so that turns alternate.
    """
    return message.role == "user" and not message.results and message.text != placeholders.REMOVED_MESSAGE


def _exchanges(messages: tuple[Message, ...], *, join_assistant_items: bool) -> Iterator[range]:
    start = 0
    open_calls: set[str] = set()
    for i, message in enumerate(messages):
        answers = bool(message.results)
        continues = join_assistant_items and i > start and _same_answer(messages[i - 1], message)
        if i > start and not (answers or continues or (open_calls and message.role == "assistant")):
            yield range(start, i)
            start = i
            open_calls = set()
        open_calls |= {c.id for c in message.calls}
        open_calls -= {r.call_id for r in message.results}
    if messages:
        yield range(start, len(messages))


def _same_answer(before: Message, after: Message) -> bool:
    """Responses lists the items of one model answer side by side: reasoning, text and calls belong together."""
    return before.role == "assistant" and after.role == "assistant"
