"""The neutral, frozen messages that every room works on; their `raw` is the provider's own value, for writing it back."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

Role = Literal["system", "user", "assistant", "tool", "other"]
Path: TypeAlias = tuple[str | int, ...]
"""The keys and indices that lead to a text inside a value."""
MediaKind = Literal["image", "audio", "file", "sealed"]
"""`sealed` is data that a provider encrypted for itself: reasoning, or its own compaction."""
ELIDED = "…"
"""Text or reasoning in its shortest form: empty reasoning is refused, and LiteLLM drops a blank on `/v1/messages`."""
PROVIDER_SUMMARIES = ("compaction", "compaction_summary", "context_compaction")
"""Types of blocks and items that contain a compaction made by Anthropic, OpenAI or Codex."""
REMOVED_MESSAGE = {"en": "[ctx_hooks] An earlier message was removed here.", "zh": "[ctx_hooks] 此处移除了一条较早的消息。"}
"""The placeholder of a removed message, by language: the roles around it alternate, and nobody speaks in it."""
QUESTION_MARKS = "?\uff1f\u061f\u037e\u055e\u1367"
"""Question marks of Latin and most other scripts, Chinese and Japanese, Arabic, Greek, Armenian and Ethiopic."""


@dataclass(frozen=True, slots=True)
class Text:
    """Plain text; a signed one stays whole. `came_text` is the original text, None while no step has cut it."""

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
    """A part of unknown kind, and the `media` in it; its long texts are parts before it, with the paths in `texts`."""

    text: str
    raw: Any = field(default=None, repr=False, compare=False)
    media: tuple[Media, ...] = ()
    texts: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The answer to a tool call; `is_error` is the provider's own flag, and `is_missing` one that a repair added."""

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
    """One message or item of the provider's list, said by `name`; an item of the provider's own has the role `other`.

    `pinned`: the caller wants it whole. `edited`: the format writes it from `parts`, not from `raw`.
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
    """Whether a user speaks here, and not the client: it returns tool results, and a placeholder replaces a message."""
    if message.role != "user" or message.text in REMOVED_MESSAGE.values():
        return False
    results = message.results
    # A repair may have added results before a user's words.
    return not results or (len(results) < len(message.parts) and all(r.is_missing for r in results))


def is_question(message: Message) -> bool:
    """Whether a user asks here: the words contain a question mark."""
    text = message.text if is_request(message) else ""
    return any(mark in text for mark in QUESTION_MARKS)


def stays(message: Message) -> bool:
    """Whether a message stays whole at any place. Its text never decides this: anybody could write one that stays."""
    return message.role in ("system", "other") or message.pinned or replaces_history(message)


def replaces_history(message: Message) -> bool:
    """Whether it has a provider's summary of what came before; without it the model may have nothing of that."""
    own = message.raw.get("provider_specific_fields")  # in which LiteLLM keeps the blocks of a chat message
    if own and isinstance(own, Mapping) and own.get("compaction_blocks"):
        return True
    opaque = [p.raw for p in message.parts if isinstance(p, Opaque) and isinstance(p.raw, Mapping)]
    return any(raw.get("type") in PROVIDER_SUMMARIES for raw in opaque)


def _joined(parts: tuple[Part, ...]) -> str:
    return "\n".join([part.text for part in parts if isinstance(part, Text)])
