"""What became of the texts that one process was given, and of those that it was asked for."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Figures:
    """Counts of texts since the process began.

    Attributes:
        stored: written to a store.
        known: not written again, since this process has written them lately.
        dropped: not written, since the queue was full or the text too large.
        failed: not written, since the store failed.
        found: asked for and there.
        missing: asked for and not there, or not in time.

    """

    stored: int = 0
    known: int = 0
    dropped: int = 0
    failed: int = 0
    found: int = 0
    missing: int = 0
