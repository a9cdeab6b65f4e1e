"""Handles of archived texts, which identify a text only for its tenant, and the texts that one compaction removes."""

import re
from base64 import b32encode
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from ctx_hooks.conversation.model import Message, Text, ToolCall, ToolResult
from ctx_hooks.conversation.placeholders import Reference

HANDLE_CHARS = 12
"""60 bits. Two of a million texts of one tenant share a handle with a probability of 4 in ten million (n²/2⁶¹). A guess
hits one of them once in 10¹² tries (2⁶⁰/n)."""
_DIGEST_BYTES = 8
HANDLE = re.compile(rf"(?<![A-Za-z0-9])[a-z2-7]{{{HANDLE_CHARS}}}(?![A-Za-z0-9])")


def handle_of(tenant: bytes, text: str) -> str:
    """Return the handle of a text of the tenant with this key (64 bytes at most): the same one in every process."""
    digest = blake2b(text.encode("utf-8", "surrogatepass"), key=tenant, digest_size=_DIGEST_BYTES).digest()
    return b32encode(digest)[:HANDLE_CHARS].decode("ascii").lower()


def is_handle(text: object) -> bool:
    """Whether `text` has the form of a handle; a model may write anything."""
    return isinstance(text, str) and HANDLE.fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class Retrievable:
    """Where the text that is removed from a request goes: for whom, how long, by which tool the model gets it (or None).

    `store` queues texts by their handles, in any thread, and raises nothing.
    """

    tenant: bytes = field(repr=False)
    kept_days: float
    tool: Mapping[str, Any] | None
    store: Callable[[Mapping[str, str]], None]


@dataclass(frozen=True, slots=True, eq=False)
class CutTexts:
    """Gives references to texts before a step cuts them, and archives them; for one compression, in one thread."""

    retrievable: Retrievable | None
    _texts: dict[str, str] = field(default_factory=dict, init=False, repr=False)

    @property
    def is_offered(self) -> bool:
        """Whether the request offers the model the tool that returns the texts."""
        return self.retrievable is not None and self.retrievable.tool is not None

    @property
    def digested(self) -> tuple[object, ...]:
        """The fields that change the bytes of placeholders."""
        found = self.retrievable
        return () if found is None else (found.tenant.hex(), found.kept_days, self.is_offered)

    def reference(self, text: str) -> Reference | None:
        """Return a reference to the whole of a text that a step shortens; None without an archive."""
        if self.retrievable is None:
            return None
        handle = handle_of(self.retrievable.tenant, text)
        self._texts[handle] = text
        return Reference(handle, self.retrievable.kept_days, self.is_offered)

    def store(self, messages: Iterable[Message]) -> bool:
        """Archive the texts whose handles the messages contain, as only these were removed; return whether there are any."""
        named = (handle for text in _texts(messages) for handle in HANDLE.findall(text)) if self._texts else ()
        found = {handle: self._texts[handle] for handle in named if handle in self._texts}
        if found and self.retrievable is not None:
            self.retrievable.store(found)
        return bool(found)


NO_ARCHIVE = CutTexts(None)


def _texts(messages: Iterable[Message]) -> Iterator[str]:
    for message in messages:
        for part in message.parts:
            if isinstance(part, (Text, ToolResult)):
                yield part.text
            elif isinstance(part, ToolCall):
                yield part.arguments
