"""Keeps removed texts by tenant: on disk or in Redis, compressed and sealed."""

from typing import NamedTuple


class Stored(NamedTuple):
    """What a store has of a tenant: its name, and the number and size of its texts."""

    name: str
    texts: int
    size_bytes: int
