"""Second names of fields, which work wherever a field can be set or named."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

OTHER_NAMES: Mapping[str, str] = {"enabled": "mode"}
"""`enabled: false` is `mode: off`."""
REMOVED_NAMES: Mapping[str, str] = {
    "text_max_chars": "a long older answer keeps its most useful parts: delete this line",
    "calibrate": "the ratio of tokens is always learned: delete this line",
    "learned_limit_floor_fraction": "it is half of the window: delete this line",
}
"""Fields that are gone, each with what to do."""


def current_name(name: Any) -> Any:
    """Return the name of a field by any of its names; a value that is no second name is returned unchanged."""
    return OTHER_NAMES.get(name, name) if isinstance(name, str) else name


def with_current_names(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return fields under their first names. A name beside its other one stays: `doubled` reports it."""
    return {k if current_name(k) in fields else current_name(k): v for k, v in fields.items()}


def doubled(fields: Mapping[str, Any]) -> list[str]:
    """Return a message for each field that is given under both names."""
    both = [(second, first) for second, first in OTHER_NAMES.items() if {second, first} <= fields.keys()]
    return [f"`{second}` is another name of `{first}`, which is given as well" for second, first in both]
