"""Counts over time, in as many slots as a chart can show, however long the time is."""

from __future__ import annotations

from datetime import datetime, timezone

from ctx_hooks.cli.report.counts import Tally

WIDTHS_SECONDS = (60, 300, 900, 3_600, 14_400, 86_400, 604_800)
"""Of a slot, each a multiple of the one before; weeks are doubled as often as needed."""
MOST_SLOTS = 90
"""Bars of 4 pixels on a phone."""
NAMES = {60: "minute", 300: "5 minutes", 900: "15 minutes", 3_600: "hour", 14_400: "4 hours", 86_400: "day", 604_800: "week"}


class Series:
    """Tallies by slots of time; when there are too many, slots become wider. The order of events does not matter."""

    def __init__(self) -> None:
        self.width_seconds = WIDTHS_SECONDS[0]
        self._slots: dict[int, Tally] = {}
        self._first = self._last = 0

    def at(self, time_seconds: float) -> Tally:
        """Return the tally of the slot that holds a time, in epoch seconds."""
        slot = int(time_seconds // self.width_seconds)
        if not self._slots:
            self._first = self._last = slot
        if min(slot, self._first) + MOST_SLOTS <= max(slot, self._last):
            self._widen()
            return self.at(time_seconds)
        self._first, self._last = min(slot, self._first), max(slot, self._last)
        return self._slots.setdefault(slot, Tally())

    def slots(self) -> list[tuple[datetime, Tally]]:
        """Return every slot from the first event to the last, with its start in UTC."""
        if not self._slots:
            return []
        return [(self._start(n), self._slots.get(n, Tally())) for n in range(self._first, self._last + 1)]

    @property
    def width(self) -> str:
        """The width of a slot in words."""
        return NAMES.get(self.width_seconds) or f"{self.width_seconds // 604_800} weeks"

    def _start(self, slot: int) -> datetime:
        return datetime.fromtimestamp(slot * self.width_seconds, timezone.utc)

    def _widen(self) -> None:
        width = next((w for w in WIDTHS_SECONDS if w > self.width_seconds), 2 * self.width_seconds)
        ratio = width // self.width_seconds
        slots: dict[int, Tally] = {}
        for slot, tally in self._slots.items():
            slots.setdefault(slot // ratio, Tally()).add(tally)
        self.width_seconds, self._slots = width, slots
        self._first, self._last = self._first // ratio, self._last // ratio
