"""The removed texts of a compaction, by the handles in its placeholders."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from ctx_hooks.conversation.handles import HANDLE, Retrievable, handle_of
from ctx_hooks.conversation.model import Message, Text, ToolCall, ToolResult
from ctx_hooks.conversation.placeholders import Reference


@dataclass(frozen=True, slots=True, eq=False)
class CutTexts:
    """Gives references to texts before a step cuts them, and archives them. For one compression, in one thread.

    >>> from ctx_hooks.conversation.model import Message, Text
    >>> stored = {}
    >>> cut = CutTexts(Retrievable(b"tenant", 7, None, stored.update))
    >>> sent = Message("user", (Text(f"for the rest: {cut.reference('a long text').handle}"),))
    >>> cut.store([Message("user", (Text("nothing"),))]), cut.store([sent]), list(stored.values())
    (False, True, ['a long text'])
    """

    retrievable: Retrievable
    _texts: dict[str, str] = field(default_factory=dict, init=False, repr=False)

    @property
    def is_offered(self) -> bool:
        """Whether the request offers the model the tool that returns the texts."""
        return self.retrievable.tool is not None

    @property
    def digested(self) -> tuple[str, float, bool]:
        """The fields that change the bytes of placeholders."""
        return self.retrievable.tenant.hex(), self.retrievable.kept_days, self.is_offered

    def reference(self, text: str) -> Reference:
        """Return a reference to the whole of a text that a step shortens."""
        handle = handle_of(self.retrievable.tenant, text)
        self._texts[handle] = text
        return Reference(handle, self.retrievable.kept_days, self.is_offered)

    def store(self, messages: Iterable[Message]) -> bool:
        """Archive the texts whose handles the messages contain, as only these were removed; return whether there are any."""
        named = (handle for text in _texts(messages) for handle in HANDLE.findall(text)) if self._texts else ()
        found = {handle: self._texts[handle] for handle in named if handle in self._texts}
        if found:
            self.retrievable.store(found)
        return bool(found)


def _texts(messages: Iterable[Message]) -> Iterator[str]:
    for message in messages:
        for part in message.parts:
            if isinstance(part, (Text, ToolResult)):
                yield part.text
            elif isinstance(part, ToolCall):
                yield part.arguments
