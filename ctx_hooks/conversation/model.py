"""The neutral, frozen model of a conversation that every room works on.

A part or message keeps the provider's own value in `raw`. So formats write fields that this model does not know
(citations, cache markers) back unchanged. They write an unedited message as the same object that they read.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal, TypeAlias

from ctx_hooks.conversation.exchanges import is_request, prefill_of

Format = Literal["openai-chat", "anthropic", "openai-responses", "gemini"]
Role = Literal["system", "user", "assistant", "tool", "other"]
Path: TypeAlias = tuple[str | int, ...]
"""The keys and indices that lead to a text inside a value."""
MediaKind = Literal["image", "audio", "file", "sealed"]
"""`sealed` is data that a provider encrypted for itself: reasoning, or its own compaction."""
ELIDED = "…"
"""Reasoning in its shortest form. An empty one is refused, and LiteLLM drops a blank one on `/v1/messages`."""


@dataclass(frozen=True, slots=True)
class Text:
    """Plain text of a message or of a tool result.

    Attributes:
        text: the text.
        raw: the provider's own value, written back with all of its fields.
        came_text: the original text, None while no step has cut it.
        is_signed: whether the provider has signed it: steps keep it whole, or remove it with its exchange.

    >>> Text("Hello").text
    'Hello'
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
    """An image, a sound or a file; `size_chars` is the length of its payload as sent, URL or base64.

    `text` is its readable text beside the payload, such as a document's plain text.
    """

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
    """A call of a tool; `arguments` is the JSON text of its arguments.

    `is_signed` says that the provider has signed it: steps keep it whole, or remove it with its exchange.
    """

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
        call_id: the id of the call.
        parts: the tool's output.
        is_error: whether the provider's own field says that the tool failed.
        raw: the provider's own value.
        came_text: the original text, None while no step has cut it. No message text can set this field.
        is_missing: whether the client sent no result, and a repair added this one.

    >>> ToolResult("call_1", (Text("total 2"), Text("a.py"))).text.splitlines()
    ['total 2', 'a.py']
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
        raw: the provider's own value.
        name: who speaks, if there are several users or agents.
        pinned: whether the caller has marked it with `{"context": {"pin": true}}`: it stays whole.
        edited: whether the format must write it from `parts` instead of `raw`.

    >>> asked = Message("user", (Text("Hello"),), raw={"role": "user", "content": "Hello"})
    >>> shorter = asked.with_parts((Text("Hi"),))
    >>> asked.text, shorter.text, shorter.edited
    ('Hello', 'Hi', True)
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


@dataclass(frozen=True)
class Conversation:
    """A conversation of one format.

    Attributes:
        format: the provider's format.
        messages: the messages or items, oldest first.
        preamble: the texts that are sent and counted outside the messages: Anthropic's `system`, Responses'
            `instructions` and the tool definitions. No step changes it.
        preamble_markers: how many of these texts have a cache marker.
        settled: how many of the first messages an earlier compaction left: no step touches them.

    >>> talk = Conversation("openai-chat", (Message("user", (Text("Hi"),)), Message("assistant", (Text("Hello"),))))
    >>> talk.newest_request, talk.exchanges
    (0, (range(0, 1), range(1, 2)))
    """

    format: Format
    messages: tuple[Message, ...]
    preamble: tuple[str, ...] = ()
    preamble_markers: int = 0
    settled: int = 0

    def with_messages(self, messages: tuple[Message, ...]) -> "Conversation":
        """Return this conversation with other messages; itself if the messages are the same."""
        if len(messages) == len(self.messages) and all(a is b for a, b in zip(messages, self.messages, strict=True)):
            return self
        return replace(self, messages=messages)

    def map_parts(self, edit: Callable[[int, Part], Part | None]) -> "Conversation":
        """Return this conversation with every part replaced by `edit(message_index, part)`; None removes a part."""
        messages = []
        for i, message in enumerate(self.messages):
            edited = [p for part in message.parts if (p := edit(i, part)) is not None]
            messages.append(message.with_parts(tuple(edited)))
        return self.with_messages(tuple(messages))

    @cached_property
    def exchanges(self) -> tuple[range, ...]:
        """Ranges of messages that are kept or removed together: a cut between two never separates a call from its result.

        In Responses, neighbouring assistant messages are one answer: reasoning, text and calls belong together.
        """
        messages, joins_items = self.messages, self.format == "openai-responses"
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
        """The tool loop that waits for the model's next step (the last exchange before a prefill), else an empty range.

        Reasoning before a prefill may be in the same exchange.
        """
        before, newest = (range(0), range(0), *self.exchanges)[-2:]
        if prefill_of(self.messages) in newest and not self._holds_tools(newest):
            newest = before
        return newest if self._holds_tools(newest) else range(0)

    def _holds_tools(self, exchange: range) -> bool:
        return any(self.messages[i].results or self.messages[i].calls for i in exchange)


def _joined(parts: tuple[Part, ...]) -> str:
    """Return the texts of some parts, joined by line breaks."""
    return "\n".join([part.text for part in parts if isinstance(part, Text)])
