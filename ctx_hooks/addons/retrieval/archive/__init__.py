"""What compaction cut, kept by tenant: in memory, on disk or in Redis, compressed and sealed."""

from dataclasses import dataclass

MOST_READ_BYTES = 16_000_000
"""Of texts that are read at once, in the order in which they are asked for: a few of the longest, or the hidden turns of any
session but one that is made to be long."""


@dataclass(frozen=True, slots=True)
class Stored:
    """What is stored of a tenant: its name, sizes, and when the texts expire, in epoch seconds."""

    name: str
    texts: int
    size_bytes: int
    first_expires_at: float
    last_expires_at: float
