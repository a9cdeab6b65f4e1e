"""The policy of one request, resolved from the settings and the metadata of team, key, session and request."""

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any, NamedTuple

from ctx_hooks.policy.addon_settings import FOLDER_VARIABLE
from ctx_hooks.policy.scopes import ENVIRONMENT, WEAKENED, ReadScope, merged, read_scope, weakest
from ctx_hooks.policy.settings import DEFAULT_POLICY, Policy, Scope, Settings
from ctx_hooks.runtime.warnings import one_line, warn_once

SECTIONS = ("policies", "models", "teams", "keys", "sessions")
"""Sections of scopes by name."""
KILL_SWITCH = "CTX_HOOKS_ENABLED"
_SWITCHED_ON = ("", "1", "true", "on", "yes", "t", "y")
"""Values of the switch that leave the plugin on. Any other value was meant to switch something off."""
RESOLVED_AT_ONCE = 512
"""A caller has at most six overrides and 22 names, 60 KB in ASCII: 30 MB in all if every request has new ones."""
MOST_LINES = 20
"""Mistakes that one request reports."""
LINE_CHARS = 200
LONGEST_OVERRIDES_CHARS = 4_096
"""For the overrides of one scope as JSON: a policy with every field set has about 1,300, and a summary's prompt 2,000."""
LONGEST_NAME_CHARS = 200
"""For names of sessions and policies: patterns are written by hand, and LiteLLM's own ids have 36 or 64 characters."""
_ENCODER = json.JSONEncoder(sort_keys=True, default=repr, ensure_ascii=False, check_circular=False)
"""Without the check for cycles, which would keep their objects until garbage collection."""
_UNREADABLE = json.dumps([f"unreadable, or over {LONGEST_OVERRIDES_CHARS:,} characters"])
"""A list is no overrides: resolving it reports a mistake that quotes the reason."""
_CHOSEN = "sessions."
"""Scopes that the caller selects by a name: a lock in any scope of the operator applies to them."""


class Caller(NamedTuple):
    """The caller of a request, with the names that scopes match and the overrides in its metadata, as `as_text` has them."""

    group: str = ""
    deployment: str = ""
    session: str = ""
    organization: str = ""
    project: str = ""
    team_names: tuple[str, ...] = ()
    team: str = ""
    key_names: tuple[str, ...] = ()
    key: str = ""
    request_policy: str = ""
    request: str = ""


@dataclass(frozen=True, slots=True)
class Resolved:
    """The policy of a request, the scope of each field that one sets, and a line for everything that was left out."""

    policy: Policy
    origins: Mapping[str, str] = field(default_factory=dict)
    ignored: tuple[str, ...] = ()


def as_text(overrides: Any) -> str:
    """Return overrides as the JSON text of a Caller, "" for none; if they are invalid, a text with the reason."""
    if overrides is None or overrides == {}:
        return ""
    try:
        text = _ENCODER.encode(overrides)
    except (TypeError, ValueError, RecursionError):  # keys of several types, a cycle, a nesting without end
        return _UNREADABLE
    return text if len(text) <= LONGEST_OVERRIDES_CHARS else _UNREADABLE


class Policies:
    """Resolves the policy of each caller. Scopes are validated once, at start or when metadata changes."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._logged = frozenset(self.mistakes())  # `load_settings` logs them at the start
        self.resolve = lru_cache(maxsize=RESOLVED_AT_ONCE)(self._resolve)

    def _resolve(self, caller: Caller) -> Resolved:
        """Return the policy of a caller: field by field the most specific scope wins, unless a wider one has locked it."""
        values: dict[str, Any] = {}
        origins: dict[str, str] = {}
        ignored: list[str] = []
        layers = [(origin, self._read(origin, scope)) for origin, scope in self._layers(caller)]
        operators = {n: origin for origin, read in layers if not origin.startswith(_CHOSEN) for n in read.locked}
        locked: dict[str, str] = {}
        chosen: dict[str, str] = {}
        for origin, read in layers:
            is_chosen = origin.startswith(_CHOSEN)
            ignored += read.mistakes
            ignored += _put(read, origin, values, origins, operators | chosen if is_chosen else locked)
            (chosen if is_chosen else locked).update(dict.fromkeys(read.locked, origin))
        asked, refused = self._request(caller, Policy.model_validate(values))
        refused += _put(asked, "request", values, origins, chosen | operators)
        for variable, read in environment():
            keeps = variable == FOLDER_VARIABLE and "archive" not in values
            fields = {n: v for n, v in read.fields.items() if v and (n != "archive" or keeps)}
            _put(ReadScope(fields), "environment", values, origins, {})
        if self.settings.at_most is not None:
            values["mode"] = weakest((values.get("mode", DEFAULT_POLICY.mode), self.settings.at_most))
        lines = list(dict.fromkeys(ignored))[:MOST_LINES]
        for line in (line for line in lines if line not in self._logged):
            warn_once(f"ctx_hooks: {line}" + (f" (team {caller.team_names[0]})" if caller.team_names else ""))
        told = tuple(one_line(line, LINE_CHARS) for line in (*lines, *refused[:MOST_LINES]))
        return Resolved(Policy.model_validate(values), origins, told)

    def _layers(self, caller: Caller) -> Iterator[tuple[str, Any]]:
        """Yield the scopes of a caller, the widest first."""
        settings = self.settings
        yield "defaults", settings.defaults
        yield from _matching("models", settings.models, (caller.group,))
        yield "model_info.ctx_hooks", _loaded(caller.deployment)
        yield from _matching("sessions", settings.sessions, (caller.session,))
        yield "organization", _loaded(caller.organization)
        yield "project", _loaded(caller.project)
        yield from _matching("teams", settings.teams, caller.team_names)
        yield "team", _loaded(caller.team)
        yield from _matching("keys", settings.keys, caller.key_names)
        yield "key", _loaded(caller.key)

    def _request(self, caller: Caller, policy: Policy) -> tuple[ReadScope, list[str]]:
        """Return the fields that the request sets and may set, and a message for each one that it may not."""
        refused: list[str] = []
        # A field's name allows only the field, also if a policy has the same name.
        allowed = set(policy.request_may_set) - Policy.model_fields.keys()
        named = self._read("x-ctx-hooks", caller.request_policy)
        fields: dict[str, Any] = {}
        if caller.request_policy in allowed and not named.mistakes:
            fields = named.over(policy.mode)
        elif caller.request_policy:
            refused.append(f"request: policy {caller.request_policy!r:.60} is not allowed")
        read = self._read("request", _loaded(caller.request))
        may_weaken = "mode" in policy.request_may_set
        asked = read.over(policy.mode) if may_weaken else read.fields
        refused += read.mistakes if may_weaken else (line.partition(WEAKENED)[0] for line in read.mistakes)
        refused += [f"request: {name} may not be set" for name in asked if name not in policy.request_may_set]
        return ReadScope(merged(fields, {n: v for n, v in asked.items() if n in policy.request_may_set})), refused

    def _read(self, origin: str, scope: Any) -> ReadScope:
        return read_scope(origin, scope, self.settings.policies)

    def mistakes(self) -> list[str]:
        """Return every mistake of the settings, each with its path."""
        found = [line for origin, scope in self.scopes() for line in self._read(origin, scope).mistakes]
        return list(dict.fromkeys(found))

    def addon_names(self) -> tuple[str, ...]:
        """Return the add-ons that any scope of the settings names, each once."""
        policies = [Policy.model_validate(self._read(origin, scope).fields) for origin, scope in self.scopes()]
        policies.append(self.resolve(Caller()).policy)  # the environment may switch the archive on
        return tuple(dict.fromkeys(name for policy in policies for name in policy.addon_names))

    def scopes(self) -> Iterator[tuple[str, Any]]:
        """Yield each scope of the settings with its path, the named policies too."""
        yield "defaults", self.settings.defaults
        for section in SECTIONS:
            yield from ((f"{section}.{name}", scope) for name, scope in getattr(self.settings, section).items())


def environment() -> Iterator[tuple[str, ReadScope]]:
    """Yield each variable of ENVIRONMENT that is set, and what it sets; `load_settings` logs its mistakes."""
    for variable, (section, name) in ENVIRONMENT.items():
        if value := os.environ.get(variable):
            yield variable, read_scope(variable, {section: {name: value}}, {})


def _put(
    read: ReadScope, origin: str, values: dict[str, Any], origins: dict[str, str], locks: Mapping[str, str]
) -> list[str]:
    """Set the fields that are not locked, in `values` and `origins`; return a message for each of the others."""
    fields = read.over(values.get("mode", DEFAULT_POLICY.mode))
    free = {n: v for n, v in fields.items() if n not in locks}
    values.update(merged(values, free))
    origins.update(dict.fromkeys(free, origin))
    return [f"{origin}: {n} is locked by {locks[n]}" for n in fields if n in locks]


def switched_off() -> bool:
    """Whether the environment switches the plugin off altogether."""
    return os.environ.get(KILL_SWITCH, "").strip().lower() not in _SWITCHED_ON


def _loaded(text: str) -> Any:
    return json.loads(text) if text else {}


def _matching(section: str, scopes: Mapping[str, Scope], names: Iterable[str]) -> Iterator[tuple[str, Scope]]:
    """Yield the scopes whose pattern a name matches, patterns before exact names."""
    hits = {p for p in scopes for name in names if name and fnmatchcase(name, p)}
    for pattern in sorted(hits, key=lambda p: (not any(c in p for c in "*?["), len(p), p)):
        yield f"{section}.{pattern}", scopes[pattern]
