"""Other names of fields, which work wherever a field can be set or named. Old ones are reported as deprecated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

RENAMED: Mapping[str, str] = {
    "recall_fraction": "retrieval_fraction",
    "recall_max_tokens": "retrieval_max_tokens",
}
"""The new name of each old one."""
ALIASES: Mapping[str, str] = {"enabled": "mode"}
"""Names that stay: `enabled: false` is `mode: off`."""
OTHER_NAMES = {**RENAMED, **ALIASES}
_LISTS_OF_FIELDS = ("locked", "request_may_set")


def current_name(name: Any) -> Any:
    """Return the current name of a field; whatever is no old name is returned as it is."""
    return OTHER_NAMES.get(name, name) if isinstance(name, str) else name


def with_current_names(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return fields under their current names. A name beside its other one stays: `doubled` reports it."""
    return {k if current_name(k) in fields else current_name(k): v for k, v in fields.items()}


def doubled(fields: Mapping[str, Any]) -> list[str]:
    """Return a message for each field that is given under both names."""
    both = [name for name in OTHER_NAMES if name in fields and OTHER_NAMES[name] in fields]
    kinds = {name: "the old" if name in RENAMED else "another" for name in both}
    return [f"`{name}` is {kind} name of `{OTHER_NAMES[name]}`, which is given as well" for name, kind in kinds.items()]


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
