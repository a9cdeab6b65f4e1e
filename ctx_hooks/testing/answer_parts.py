"""What the answers of all routes are made of."""

from __future__ import annotations

from uuid import uuid4

PIECE_CHARS = 16
"""How much of a call's arguments, or of a thinking, an event brings."""


def new_id(kind: str) -> str:
    """Return an id that no other answer has: clients join what carries the same one."""
    return f"{kind}_{uuid4().hex[:24]}"


def pieces(text: str) -> list[str]:
    """Return the pieces in which a stream brings a text."""
    return [text[at : at + PIECE_CHARS] for at in range(0, len(text), PIECE_CHARS)]
