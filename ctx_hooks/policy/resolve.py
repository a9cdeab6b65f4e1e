"""The policy of one request, resolved from the settings and the metadata of team, key, session and request."""

from __future__ import annotations

import difflib
import json
import logging
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any

from pydantic import BaseModel, ValidationError

from ctx_hooks.errors import ConfigurationError
from ctx_hooks.policy.caller import Caller
from ctx_hooks.policy.presets import PRESETS
from ctx_hooks.policy.renamed import current_name, old_names, with_current_names
from ctx_hooks.policy.settings import Policy, Scope, Settings, with_off
from ctx_hooks.runtime.warnings import one_line, warn_once

logger = logging.getLogger("ctx_hooks")

KILL_SWITCH = "CTX_HOOKS_ENABLED"
SECTION = "callback_settings.ctx_hooks"
ENVIRONMENT = {
    "TOOL_OUTPUT_MAX_LINES": "tool_result_max_lines",
    "TOOL_OUTPUT_MAX_BYTES": "tool_result_max_bytes",
    "TOOL_OUTPUT_TRUNCATE_DIRECTION": "tool_result_direction",
}
"""MyCodeAgent's variables and the fields that they override everywhere."""
RESOLVED_AT_ONCE = 512
"""A caller has at most six overrides and 22 names, 60 KB in ASCII: 30 MB in all if every request has new ones."""
MOST_LINES = 20
"""Mistakes that one request reports; the number of further ones is reported too."""
LINE_CHARS = 200
_OWN_KEYS = ("policy", "extends", "locked")
_METADATA = ("organization", "project", "team", "key")
"""Scopes in LiteLLM's metadata: whoever may make a key writes one."""
_CONFIGURATION_ALONE = ("path", "max_bytes")
"""Of `archive`: where the proxy writes files and how much it holds is said in its configuration, never in metadata."""
_CHOSEN = ("sessions.", "tags.")
"""Scopes that the caller selects by a name: a lock in any scope of the operator holds against them."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """A resolved policy.

    Attributes:
        policy: The policy of the request.
        origins: The scope that each explicitly set field came from.
        ignored: A line for everything that was left out, with the reason.

    """

    policy: Policy
    origins: Mapping[str, str] = field(default_factory=dict)
    ignored: tuple[str, ...] = ()


class Policies:
    """Resolves the policy of each caller. Scopes are validated once, at start or when metadata changes.

    >>> settings = Settings(defaults={"reserve_tokens": 8_000}, teams={"research": {"language": "zh"}})
    >>> resolved = Policies(settings).resolve(Caller(team_names=("research",)))
    >>> resolved.policy.reserve_tokens, resolved.policy.language, resolved.origins["language"]
    (8000, 'zh', 'teams.research')
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.resolve = lru_cache(maxsize=RESOLVED_AT_ONCE)(self._resolve)

    def _resolve(self, caller: Caller) -> Resolved:
        """Return the policy of a caller: field by field the most specific scope wins, unless a wider one has locked it.

        A request cannot override a lock; the environment overrides every scope.
        """
        values: dict[str, Any] = {}
        origins: dict[str, str] = {}
        ignored: list[str] = []
        layers = list(self._layers(caller))
        operators = {n: origin for origin, scope in layers if not origin.startswith(_CHOSEN) for n in _locked(scope)}
        locked: dict[str, str] = {}
        chosen: dict[str, str] = {}
        for origin, scope in layers:
            is_chosen = origin.startswith(_CHOSEN)
            fields, wrong = self._valid(origin, scope)
            ignored += wrong
            ignored += _put(fields, origin, values, origins, operators | chosen if is_chosen else locked)
            (chosen if is_chosen else locked).update(dict.fromkeys(_locked(scope), origin))
        asked, refused = self._request(caller, Policy.model_validate(values))
        refused += _put(asked, "request", values, origins, chosen | operators)
        for origin, scope in _environment():
            fields, wrong = self._valid(origin, scope)
            ignored += wrong
            _put(fields, origin, values, origins, {})
        told = _told(ignored)
        for line in told:
            warn_once(f"ctx_hooks: {line}" + (f" (team {caller.team_names[0]})" if caller.team_names else ""))
        return Resolved(Policy.model_validate(values), origins, (*told, *_told(refused, "request: ")))

    def _layers(self, caller: Caller) -> Iterator[tuple[str, Any]]:
        """Yield the scopes of a caller, the widest first."""
        settings = self.settings
        yield "defaults", settings.defaults
        yield from _matching("models", settings.models, (caller.group,))
        yield "model_info.ctx_hooks", _loaded(caller.deployment)
        yield from _matching("sessions", settings.sessions, (caller.session,))
        yield from _matching("tags", settings.tags, caller.tags)
        yield "organization", _loaded(caller.organization)
        yield "project", _loaded(caller.project)
        yield from _matching("teams", settings.teams, caller.team_names)
        yield "team", _loaded(caller.team)
        yield from _matching("keys", settings.keys, caller.key_names)
        yield "key", _loaded(caller.key)

    def _request(self, caller: Caller, policy: Policy) -> tuple[dict[str, Any], list[str]]:
        """Return the fields that the request sets and may set, and a message for each that it may not."""
        fields: dict[str, Any] = {}
        refused = [f"request: a {name} is too long to be one" for name in caller.too_long]
        if caller.request_policy:
            if caller.request_policy in policy.request_policies and self._named(caller.request_policy) is not None:
                fields |= self._valid("x-ctx-hooks", caller.request_policy)[0]
            else:
                refused.append(f"request: policy {caller.request_policy!r:.60} is not allowed")
        asked, wrong = self._valid("request", _loaded(caller.request))
        refused += wrong
        refused += [f"request: {name} may not be set" for name in asked if name not in policy.request_may_set]
        return fields | {n: v for n, v in asked.items() if n in policy.request_may_set}, refused

    def _named(self, name: str, seen: tuple[str, ...] = ()) -> dict[str, Any] | None:
        """Return the fields of a named policy, its own over those that it extends; None for an unknown name."""
        if name in seen:
            return None
        found = self.settings.policies.get(name)
        if found is None:
            return dict(PRESETS[name]) if name in PRESETS else None
        begun_from = _begun_from(found)
        base = self._named(begun_from, (*seen, name)) if begun_from else {}
        return None if base is None else base | _fields(found)

    def _valid(self, origin: str, scope: Any) -> tuple[dict[str, Any], list[str]]:
        """Return the fields of a scope; a scope with any mistake has none, and its mistakes are returned."""
        if not scope:
            return {}, []
        if isinstance(scope, str):
            scope = {"policy": scope}
        if not isinstance(scope, Mapping):
            return {}, [f"{origin}: a policy's name or fields are expected, not {scope!r:.60}"]
        fields = _fields(scope)
        if len(fields) > len(Policy.model_fields):
            return {}, [f"{origin}: has {len(fields):,} fields, and there are {len(Policy.model_fields)}"]
        name = _begun_from(scope)
        base: dict[str, Any] = {}
        if name:
            found = self._named(name)
            if found is None:
                names = sorted({*PRESETS, *self.settings.policies})
                return {}, [f"{origin}.policy: {name!r:.60} is no policy{_nearest(name, names)}"]
            base = found
        unknown = [n for n in _locked(scope) if n not in Policy.model_fields]
        wrong = [f"{origin}.locked: {n!r:.60} is no field{_nearest(str(n), Policy.model_fields)}" for n in unknown]
        archive = fields.get("archive")
        if origin in _METADATA and isinstance(archive, Mapping):
            alone = [n for n in _CONFIGURATION_ALONE if n in archive]
            wrong += [f"{origin}.archive.{n}: stands in the proxy's configuration alone" for n in alone]
        try:
            Policy.model_validate({**base, **fields})
        except ValidationError as error:
            wrong += mistakes(error, origin, Policy)
        return ({}, wrong) if wrong else ({**base, **fields}, [])

    def mistakes(self) -> list[str]:
        """Return every mistake of the settings, each with its path."""
        return [line for origin, scope in self._scopes() for line in self._valid(origin, scope)[1]]

    def old_names(self) -> list[str]:
        """Return a message for every old name in the settings, each with its path."""
        return [line for origin, scope in self._scopes() for line in old_names(origin, scope)]

    def _scopes(self) -> Iterator[tuple[str, Any]]:
        yield "defaults", self.settings.defaults
        for section in ("policies", "models", "teams", "keys", "sessions", "tags"):
            yield from ((f"{section}.{name}", scope) for name, scope in getattr(self.settings, section).items())


def _put(
    fields: Mapping[str, Any], origin: str, values: dict[str, Any], origins: dict[str, str], locks: Mapping[str, str]
) -> list[str]:
    """Set the fields that are not locked, in `values` and `origins`; return a message for each of the others."""
    free = {n: v for n, v in fields.items() if n not in locks}
    values.update(free)
    origins.update(dict.fromkeys(free, origin))
    return [f"{origin}: {n} is locked by {locks[n]}" for n in fields if n in locks]


def _told(lines: list[str], prefix: str = "") -> tuple[str, ...]:
    """Return the lines, bounded in number and length."""
    told = tuple(one_line(line, LINE_CHARS) for line in lines[:MOST_LINES])
    more = len(lines) - len(told)
    return (*told, f"{prefix}and {more:,} more mistakes") if more else told


def load_settings(raw: Any) -> Settings:
    """Return the settings of `callback_settings.ctx_hooks`; mistakes and deprecated names are logged.

    Raises:
        ConfigurationError: There is a mistake, and `strict` is true.

    """
    settings, wrong = settings_of(raw)
    for line in (*wrong, *Policies(settings).old_names()):
        logger.warning("ctx_hooks: %s", line)
    if wrong and isinstance(raw, Mapping) and raw.get("strict") is True:
        raise ConfigurationError("\n".join(wrong))
    return settings


def settings_of(raw: Any) -> tuple[Settings, list[str]]:
    """Return the settings of `callback_settings.ctx_hooks`, and every mistake in them with its path.

    A section that cannot be read is left out, and the others hold: a misspelt one must not switch `mode: observe` or a lock
    off. Of what is no mapping the settings are the defaults.
    """
    raw = raw or {}
    wrong: list[str] = []
    try:
        settings = Settings.model_validate(raw)
    except ValidationError as error:
        wrong += mistakes(error, SECTION, Settings)
        unreadable = {e["loc"][0] for e in error.errors() if e["loc"]}
        readable = [n for n in Settings.model_fields if n in raw and n not in unreadable] if isinstance(raw, Mapping) else []
        settings = Settings.model_validate({name: raw[name] for name in readable})
    return settings, [*wrong, *(f"{SECTION}.{line}" for line in Policies(settings).mistakes())]


def switched_off() -> bool:
    """Whether the environment switches the plugin off altogether."""
    return os.environ.get(KILL_SWITCH, "").strip().lower() in ("0", "false", "off", "no")


def mistakes(error: ValidationError, path: str, model: type[BaseModel]) -> list[str]:
    """Return each mistake with its path, the value, what is allowed, and the nearest field's name."""
    lines = []
    for e in error.errors(include_url=False):
        where = ".".join([path, *map(str, e["loc"])])
        near = _nearest(str(e["loc"][-1]), model.model_fields) if e["type"] == "extra_forbidden" and e["loc"] else ""
        lines.append(f"{where}: {e['msg']} (got {e['input']!r:.80}){near}")
    return lines


def _loaded(text: str) -> Any:
    return json.loads(text) if text else None


def _fields(scope: Mapping[str, Any]) -> dict[str, Any]:
    """Return the policy's fields of a scope, under their current names."""
    return with_current_names({k: v for k, v in scope.items() if k not in _OWN_KEYS})


def _begun_from(scope: Mapping[str, Any]) -> str:
    """Return the name of the policy that a scope begins from, "" for none."""
    named = scope.get("policy") if scope.get("policy") is not None else scope.get("extends")
    return str(with_off(named) or "")


def _locked(scope: Any) -> list[Any]:
    found = scope.get("locked") if isinstance(scope, Mapping) else None
    return [current_name(n) for n in found] if isinstance(found, (list, tuple)) else []


def _matching(section: str, scopes: Mapping[str, Scope], names: Iterable[str]) -> Iterator[tuple[str, Scope]]:
    """Yield the scopes whose pattern a name matches, patterns before exact names."""
    hits = {p for p in scopes for name in names if name and fnmatchcase(name, p)}
    for pattern in sorted(hits, key=lambda p: (not any(c in p for c in "*?["), len(p), p)):
        yield f"{section}.{pattern}", scopes[pattern]


def _environment() -> Iterator[tuple[str, dict[str, Any]]]:
    fields = {name: os.environ[variable] for variable, name in ENVIRONMENT.items() if os.environ.get(variable)}
    if fields:
        yield "environment", fields


def _nearest(name: str, known: Iterable[str]) -> str:
    found = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {found[0]!r}?" if found else ""
