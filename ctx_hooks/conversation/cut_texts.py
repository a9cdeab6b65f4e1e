"""The texts that a compaction has cut, by the handles that its placeholders name.

A handle names a text to its tenant, and says nothing to anyone else.
"""

import re
from base64 import b32encode
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from ctx_hooks.conversation.model import Message, Text, ToolCall, ToolResult

HANDLE_CHARS = 12
"""60 bits. Of a million texts of one tenant two share a handle with a probability of 4 in ten million (n²/2⁶¹), and a guess
hits one of them once in 10¹² tries (2⁶⁰/n)."""
_DIGEST_BYTES = 8
_HANDLE = re.compile(rf"(?<![A-Za-z0-9])[a-z2-7]{{{HANDLE_CHARS}}}(?![A-Za-z0-9])")


@dataclass(frozen=True, slots=True)
class Handles:
    """The handles of one tenant's texts: the same text has the same handle in every process.

    Attributes:
        key: the tenant's key, at most 64 bytes. Without it nobody can tell which text a handle is of, nor make a handle.

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
class Reference:
    """Where the whole of a text is that was cut.

    Attributes:
        handle: names the text.
        kept_days: how long it is kept at most.
        is_offered: whether the model is offered the tool that returns it.
    """

    handle: str
    kept_days: float
    is_offered: bool


@dataclass(frozen=True, slots=True)
class Retrievable:
    """How what is removed from a request can be had again.

    Attributes:
        handles: of the tenant whose texts they are.
        kept_days: how long they are kept at most.
        tool: the definition of the tool that returns them, which goes with the first reference; None if none is offered.
    """

    handles: Handles
    kept_days: float
    tool: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True, eq=False)
class CutTexts:
    """Gives references to texts that are about to be cut, and remembers the texts. For one compression, in one thread.

    Attributes:
        handles: of the tenant whose texts they are.
        kept_days: how long they are kept at most.
        is_offered: whether the model is offered the tool that returns them.
        remakes: whether compactions are made anew, so that all of their texts are known, though they are remembered.

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
        """What the bytes of placeholders depend on."""
        return self.handles.key.hex(), self.kept_days, self.is_offered

    def reference(self, text: str) -> Reference:
        """Return a reference to the whole of a text, of which less is kept."""
        handle = self.handles.of(text)
        self._texts[handle] = text
        return Reference(handle, self.kept_days, self.is_offered)

    def named_in(self, messages: Iterable[Message]) -> dict[str, str]:
        """Return the texts whose handles stand in the messages, by handle; others were references to what was not cut."""
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
