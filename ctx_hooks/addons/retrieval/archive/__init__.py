"""What compaction cut, kept by tenant: in memory, on disk or in Redis, compressed and sealed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Stored:
    """What is stored of a tenant: its name, sizes, and when the texts expire, in epoch seconds."""

    name: str
    texts: int
    size_bytes: int
    first_expires_at: float
    last_expires_at: float
