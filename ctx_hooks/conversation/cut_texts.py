"""The removed texts of a compaction, by the handles in its placeholders.

A handle identifies a text for its tenant, and tells nobody else anything.
"""

import re
from base64 import b32encode
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from ctx_hooks.conversation.model import Message, Text, ToolCall, ToolResult
from ctx_hooks.conversation.placeholders import Reference

HANDLE_CHARS = 12
"""60 bits. Two of a million texts of one tenant share a handle with a probability of 4 in ten million (n²/2⁶¹). A guess
hits one of them once in 10¹² tries (2⁶⁰/n)."""
_DIGEST_BYTES = 8
_HANDLE = re.compile(rf"(?<![A-Za-z0-9])[a-z2-7]{{{HANDLE_CHARS}}}(?![A-Za-z0-9])")


@dataclass(frozen=True, slots=True)
class Handles:
    """The handles of one tenant's texts: the same text has the same handle in every process.

    Attributes:
        key: the tenant's key, at most 64 bytes. Without it nobody can find the text of a handle, or make a handle.

    >>> Handles(b"key of a tenant").of("1,204 lines of a log")
    'pz5bbqm3fvxm'
    """

    key: bytes = field(repr=False)

    def of(self, text: str) -> str:
        """Return the handle of a text: HANDLE_CHARS of a to z and 2 to 7."""
        digest = blake2b(text.encode("utf-8", "surrogatepass"), key=self.key, digest_size=_DIGEST_BYTES).digest()
        return b32encode(digest)[:HANDLE_CHARS].decode("ascii").lower()


def is_handle(text: object) -> bool:
    """Whether `text` has the form of a handle; a model may write anything."""
    return isinstance(text, str) and _HANDLE.fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class Retrievable:
    """How a model can retrieve the text that was removed from a request.

    Attributes:
        handles: the handles of the tenant that owns the texts.
        kept_days: the archive keeps the texts for at most so many days.
        tool: the definition of the tool that returns them, sent with the first reference; None if no tool is offered.
    """

    handles: Handles
    kept_days: float
    tool: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True, eq=False)
class CutTexts:
    """Gives references to texts before a step cuts them, and remembers the texts. For one compression, in one thread.

    Attributes:
        handles: the handles of the tenant that owns the texts.
        kept_days: the archive keeps the texts for at most so many days.
        is_offered: whether the request offers the model the tool that returns the texts.
        remakes: whether remembered compactions are made again, so that all of their texts are known.

    >>> from ctx_hooks.conversation.model import Message, Text
    >>> cut = CutTexts(Handles(b"tenant"), kept_days=7, is_offered=True)
    >>> cut.reference("a long text").handle == cut.reference("a long text").handle
    True
    >>> sent = Message("user", (Text(f"for the rest: {cut.reference('a long text').handle}"),))
    >>> list(cut.named_in([sent]).values()), cut.named_in([Message("user", (Text("nothing"),))])
    (['a long text'], {})
    """

    handles: Handles
    kept_days: float
    is_offered: bool
    remakes: bool = False
    _texts: dict[str, str] = field(default_factory=dict, init=False, repr=False)

    @property
    def digested(self) -> tuple[str, float, bool]:
        """The fields that change the bytes of placeholders."""
        return self.handles.key.hex(), self.kept_days, self.is_offered

    def reference(self, text: str) -> Reference:
        """Return a reference to the whole of a text that a step shortens."""
        handle = self.handles.of(text)
        self._texts[handle] = text
        return Reference(handle, self.kept_days, self.is_offered)

    def named_in(self, messages: Iterable[Message]) -> dict[str, str]:
        """Return the texts whose handles the messages contain, by handle: only these were removed."""
        if not self._texts:
            return {}
        named = (found for text in _texts(messages) for found in _HANDLE.findall(text))
        return {handle: self._texts[handle] for handle in named if handle in self._texts}


def _texts(messages: Iterable[Message]) -> Iterator[str]:
    for message in messages:
        for part in message.parts:
            if isinstance(part, (Text, ToolResult)):
                yield part.text
            elif isinstance(part, ToolCall):
                yield part.arguments
