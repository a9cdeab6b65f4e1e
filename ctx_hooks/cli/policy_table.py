"""What the policies of a configuration come to: each field that differs from the defaults, for whom, and who says so."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ctx_hooks.cli.configuration import Configuration, Listed
from ctx_hooks.litellm_compat import Deployment
from ctx_hooks.policy.resolve import Resolved
from ctx_hooks.policy.settings import DEFAULT_POLICY

SECTIONS = ("teams", "keys", "sessions", "tags")
"""Sections of the settings whose scopes hold for callers of a name, on every model."""
ELSEWHERE = Listed("", "", Deployment("", {}), {})
"""Any deployment, of a proxy whose models are all in LiteLLM's database: what holds for every model holds for these."""


@dataclass(frozen=True, slots=True)
class Row:
    """A field of a policy that a scope sets.

    Attributes:
        models: the model groups that it holds for; none where that is all of them.
        caller: for whom, as `teams.research`; "" for everybody.
        field: its name.
        value: its value, as JSON has it.
        set_by: the scope.
        is_default: whether the value is the default.
    """

    models: tuple[str, ...]
    caller: str
    field: str
    value: Any
    set_by: str
    is_default: bool


def rows(config: Configuration) -> list[Row]:
    """Return what is set for all callers, and what callers of each name have besides; alike for several models, once."""
    deployments = config.listed or (ELSEWHERE,)
    alone = {listed.path: config.resolved(listed) for listed in deployments}
    found = list(_rows(deployments, {path: _set(resolved) for path, resolved in alone.items()}, ""))
    for section in SECTIONS:
        for name in getattr(config.settings, section):
            theirs = {listed.path: config.resolved(listed, **_caller(section, name)) for listed in deployments}
            beyond = {
                path: {n: said for n, said in _set(resolved).items() if said != _set(alone[path]).get(n)}
                for path, resolved in theirs.items()
            }
            found += _rows(deployments, beyond, f"{section}.{name}")
    return found


def _rows(listed: Sequence[Listed], fields: Mapping[str, Mapping[str, tuple[Any, str]]], caller: str) -> Iterator[Row]:
    """Yield the fields of each deployment, a row for those that have the same."""
    groups: dict[tuple[str, str, str], tuple[Any, dict[str, None]]] = {}
    for entry in listed:
        for name, (value, origin) in fields[entry.path].items():
            groups.setdefault((name, repr(value), origin), (value, {}))[1][entry.group] = None
    everyone = tuple(dict.fromkeys(entry.group for entry in listed))
    rows = [
        Row(() if tuple(models) == everyone else tuple(models), caller, name, value, origin, value == default_of(name))
        for (name, _, origin), (value, models) in groups.items()
    ]
    yield from sorted(rows, key=lambda row: (row.models, row.field))


def _set(resolved: Resolved) -> dict[str, tuple[Any, str]]:
    values = resolved.policy.model_dump(mode="json")
    return {name: (values[name], origin) for name, origin in resolved.origins.items()}


def default_of(name: str) -> Any:
    """Return the default of a field, as JSON has it."""
    return DEFAULT_POLICY.model_dump(mode="json", include={name})[name]


def _caller(section: str, name: str) -> dict[str, Any]:
    """Return the names by which a caller matches a scope; a pattern matches itself."""
    names: dict[str, dict[str, Any]] = {
        "teams": {"team_names": (name,)},
        "keys": {"key_names": (name,)},
        "sessions": {"session": name},
        "tags": {"tags": (name,)},
    }
    return names[section]
