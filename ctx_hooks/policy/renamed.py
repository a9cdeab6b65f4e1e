"""Renamed fields. The old name works wherever a field can be set or named, and is reported as deprecated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

RENAMED: Mapping[str, str] = {
    "recall_fraction": "retrieval_fraction",
    "recall_max_tokens": "retrieval_max_tokens",
}
"""The new name of each old one."""
_LISTS_OF_FIELDS = ("locked", "request_may_set")


def current_name(name: Any) -> Any:
    """Return the current name of a field; whatever is no old name is returned as it is."""
    return RENAMED.get(name, name) if isinstance(name, str) else name


def with_current_names(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return fields under their current names. An old name beside its new one stays: `doubled` reports it."""
    return {k if current_name(k) in fields else current_name(k): v for k, v in fields.items()}


def doubled(fields: Mapping[str, Any]) -> list[str]:
    """Return a message for each field that is given under both names."""
    both = [old for old in RENAMED if old in fields and RENAMED[old] in fields]
    return [f"`{old}` is the old name of `{RENAMED[old]}`, which is given as well" for old in both]


def old_names(path: str, scope: Any) -> list[str]:
    """Return a message for each old name in a scope, with its path and the name to write instead."""
    if not isinstance(scope, Mapping):
        return []
    places = [(f"{path}.{name}", name) for name in scope]
    for key in _LISTS_OF_FIELDS:
        listed = scope.get(key)
        places += [(f"{path}.{key}", name) for name in listed] if isinstance(listed, (list, tuple)) else []
    return [
        f"{where}: `{name}` is deprecated, its name is `{RENAMED[name]}`"
        for where, name in places
        if isinstance(name, str) and name in RENAMED
    ]
