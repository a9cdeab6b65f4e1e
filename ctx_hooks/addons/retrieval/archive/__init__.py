"""What compaction cut, kept by tenant: in memory, on disk or in Redis, compressed, and encrypted where there is a key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol


class Store(Protocol):
    """A backend. It sees names of tenants and sealed texts; a failure is raised, and survived by `Archives`."""

    async def write(self, tenant: str, sealed: Mapping[str, bytes], kept_seconds: float, max_bytes: int) -> None:
        """Store all texts of a batch, or none.

        Args:
            tenant: the tenant's name.
            sealed: the texts by their handles; one of the same handle is replaced.
            kept_seconds: how long they are kept from now on.
            max_bytes: most that may be stored; of the tenant that has the most, the oldest go first.

        """

    async def read(self, tenant: str, handles: Sequence[str]) -> Mapping[str, bytes]:
        """Return the sealed texts that there still are, by their handles."""


@dataclass(frozen=True, slots=True)
class Stored:
    """What is stored of a tenant: its name, sizes, and when the texts expire, in epoch seconds."""

    name: str
    texts: int
    size_bytes: int
    first_expires_at: float
    last_expires_at: float
