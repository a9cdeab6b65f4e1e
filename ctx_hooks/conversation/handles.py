"""The handle of a text that was cut: it names the text to its tenant, and says nothing to anyone else."""

from __future__ import annotations

import re
from base64 import b32encode
from dataclasses import dataclass, field
from hashlib import blake2b

HANDLE_CHARS = 12
"""60 bits. Of a million texts of one tenant two share a handle with a probability of 4 in ten million (n²/2⁶¹), and a guess
hits one of them once in 10¹² tries (2⁶⁰/n)."""
_DIGEST_BYTES = 8
_HANDLE = re.compile(rf"[a-z2-7]{{{HANDLE_CHARS}}}")


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
