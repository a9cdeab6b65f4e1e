"""Keeps removed texts by tenant: in memory, on disk or in Redis, compressed and sealed."""

from dataclasses import dataclass

MOST_READ_BYTES = 16_000_000
"""Limits the texts of one read, in the order of the request."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A summary of a tenant's stored texts: name, sizes, and expiry in epoch seconds."""

    name: str
    texts: int
    size_bytes: int
    first_expires_at: float
    last_expires_at: float
