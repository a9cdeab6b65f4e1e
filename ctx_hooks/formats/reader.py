"""The messages of a request, each read on its first use."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ctx_hooks.conversation.conversation import Conversation
from ctx_hooks.conversation.model import Message
from ctx_hooks.formats import WIRE_FORMATS
from ctx_hooks.formats.fields import copied, items_of


@dataclass(frozen=True, slots=True)
class MessageReader:
    """The messages of a request: a requested message is read once, any other never; behind the texts of its preamble.

    Two threads may read one message at once, with one result. The items are copied first, so that results cached by digest
    stay true if the caller changes the originals.

    Raises:
        MalformedConversationError: `items` is no list; a requested message is no mapping, or nested too deeply.
    """

    format: str
    items: Sequence[Any]
    preamble: tuple[str, ...] = ()
    preamble_markers: int = 0
    _read: dict[int, Message] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "items", [copied(item) for item in items_of(self.items)])

    def message(self, index: int) -> Message:
        """Return the message at `index`, from 0."""
        if index not in self._read:
            self._read[index] = WIRE_FORMATS[self.format].message(self.items, index)
        return self._read[index]

    def conversation(self, start: int = 0, end: int | None = None) -> Conversation:
        """Return the conversation with the messages from `start` to before `end`, by default all."""
        messages = map(self.message, range(len(self.items))[start:end])
        return WIRE_FORMATS[self.format].conversation(messages, self.preamble, self.preamble_markers)

    def selected(self, indices: Sequence[int]) -> "MessageReader":
        """Return a reader of only the messages at `indices`, in ascending order; itself if these are all."""
        if len(indices) == len(self.items):
            return self
        known = {n: self._read[i] for n, i in enumerate(indices) if i in self._read}
        return replace(self, items=[self.items[i] for i in indices], _read=known)
