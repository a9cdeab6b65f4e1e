"""Figures that are summed up field by field."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import Self


@dataclass(slots=True)
class Sums:
    """The base of dataclasses of which every field can be added to that of another."""

    def __add__(self, other: Self) -> Self:
        """Return the sums of both."""
        return type(self)(*(getattr(self, each.name) + getattr(other, each.name) for each in fields(self)))
