"""The handles of archived texts: each identifies a text for its tenant, and tells nobody else anything."""

import re
from base64 import b32encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

HANDLE_CHARS = 12
"""60 bits. Two of a million texts of one tenant share a handle with a probability of 4 in ten million (n²/2⁶¹). A guess
hits one of them once in 10¹² tries (2⁶⁰/n)."""
_DIGEST_BYTES = 8
HANDLE = re.compile(rf"(?<![A-Za-z0-9])[a-z2-7]{{{HANDLE_CHARS}}}(?![A-Za-z0-9])")


def handle_of(tenant: bytes, text: str) -> str:
    """Return the handle of a text of the tenant with this key (64 bytes at most): the same one in every process.

    >>> handle_of(b"key of a tenant", "1,204 lines of a log")
    'pz5bbqm3fvxm'
    """
    digest = blake2b(text.encode("utf-8", "surrogatepass"), key=tenant, digest_size=_DIGEST_BYTES).digest()
    return b32encode(digest)[:HANDLE_CHARS].decode("ascii").lower()


def is_handle(text: object) -> bool:
    """Whether `text` has the form of a handle; a model may write anything."""
    return isinstance(text, str) and HANDLE.fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class Retrievable:
    """How a model can retrieve the text that was removed from a request.

    Attributes:
        tenant: the key of the tenant that owns the texts. Without it nobody can find the text of a handle, or make a handle.
        kept_days: the archive keeps the texts for at most so many days.
        tool: the definition of the tool that returns them, sent with the first reference; None if no tool is offered.
        store: queues texts, by their handles, to be archived; called in any thread, and raises nothing.
    """

    tenant: bytes = field(repr=False)
    kept_days: float
    tool: Mapping[str, Any] | None
    store: Callable[[Mapping[str, str]], None]
