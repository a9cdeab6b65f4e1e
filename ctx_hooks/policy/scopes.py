"""Read one scope: what it sets and locks, and its mistakes, with which it observes at most."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, ValidationError

from ctx_hooks.policy.addon_settings import FOLDER_VARIABLE, RETENTION_VARIABLE
from ctx_hooks.policy.settings import PRESETS, Mode, Policy, Scope, with_off

WEAKENED = "; the mode here is"
"""What a mistake does, in its message."""
OWN_KEYS = ("policy", "locked")
WEAKEST_FIRST: tuple[Mode, ...] = ("off", "observe", "enforce")
ENVIRONMENT = {
    "TOOL_OUTPUT_MAX_LINES": ("tool_results", "max_lines"),
    "TOOL_OUTPUT_MAX_BYTES": ("tool_results", "max_bytes"),
    "TOOL_OUTPUT_TRUNCATE_DIRECTION": ("tool_results", "direction"),
    FOLDER_VARIABLE: ("archive", "path"),
    RETENTION_VARIABLE: ("archive", "retention_days"),
}
"""MyCodeAgent's variables and their fields. Those of `tool_results` override every scope; a wrong value changes no mode."""
METADATA = ("organization", "project", "team", "key", "request")
"""Scopes in LiteLLM's metadata and in a request's: anybody who may create a key can write one."""
_CONFIGURATION_ONLY = ("path", "max_bytes")
"""Fields of `archive` that only the configuration sets, never metadata: the folder for the proxy's files, and its limit."""
_COMPRESSION = re.compile(r"compress|compact|prun|trim|truncat|condens|enable|^(?:mode|active|on)$")
"""Names, in small letters, under which a value can say that compression is off."""
_OFF = frozenset({"off", "false", "no", "0", "none", "never"})


@dataclass(frozen=True, slots=True)
class ReadScope:
    """What a scope sets and locks, a line for each mistake, and the strongest mode that these leave, None without any."""

    fields: Mapping[str, Any] = field(default_factory=dict)
    locked: tuple[str, ...] = ()
    mistakes: tuple[str, ...] = ()
    at_most: Mode | None = None

    def over(self, mode: Mode) -> dict[str, Any]:
        """Return the fields for a caller whose wider scopes have set a mode."""
        if self.at_most is None:
            return dict(self.fields)
        return {**self.fields, "mode": weakest((self.fields.get("mode", mode), self.at_most))}


def read_scope(origin: str, scope: Any, policies: Mapping[str, Scope]) -> ReadScope:
    """Return the content of a scope, a policy's name or fields; `origin` is its path, or whose metadata it is."""
    if isinstance(scope, (str, bool)) and scope != "":
        scope = {"policy": "off" if _says_off(scope) else scope}
    if scope is None or scope in ("", [], {}):
        return ReadScope(mistakes=(f"{origin}: is empty and sets nothing",) if scope is None else ())
    if not isinstance(scope, Mapping):
        return _unreadable(f"{origin}: a policy's name or fields are expected, not {scope!r:.60}")
    given = {str(with_off(name)): value for name, value in scope.items()}
    policy, listed = (with_off(given.pop(word, None)) for word in OWN_KEYS)
    base = _named(origin, policy, policies) if policy else ReadScope()
    own = _own(origin, given, listed, policies)
    mistakes, at_most = (*own.mistakes, *base.mistakes), weakest((own.at_most, base.at_most))
    return ReadScope(merged(base.fields, own.fields), (*base.locked, *own.locked), mistakes, at_most)


def _named(origin: str, name: Any, policies: Mapping[str, Scope]) -> ReadScope:
    """Return a named policy, which itself may begin with a preset only."""
    known: dict[str, Any] = {**PRESETS, **({} if origin.startswith("policies.") else policies)}
    if not isinstance(name, str) or name not in known:
        return _unreadable(f"{origin}.policy: {name!r:.60} is no policy")
    return read_scope(f"policies.{name}", known[name], policies)


def _unreadable(line: str) -> ReadScope:
    """Return an unreadable scope: it may have locked anything."""
    return ReadScope({}, tuple(Policy.model_fields), (f"{line}{WEAKENED} 'observe' at most",), "observe")


def _own(origin: str, given: dict[str, Any], listed: Any, policies: Mapping[str, Scope]) -> ReadScope:
    """Return what the fields of a scope and its list of locked ones say, without the named policy that it begins from."""
    wrong = _without_unknown_names(origin, given, policies)
    fields, faults, lost = valid_part(Policy, given, origin)
    if "mode" in fields:
        fields["mode"] = Policy(mode=fields["mode"]).mode
    locked = listed if isinstance(listed, (list, tuple)) else [listed] if listed else []
    unknown = [n for n in locked if n not in [*Policy.model_fields]] if locked is listed else locked
    modes: list[Mode] = ["observe"] if wrong or unknown else []
    foreign = [name for name in lost if name not in Policy.model_fields]
    for name in lost:
        if switches_off(name, given[name]):
            modes.append("off")
        elif name not in foreign or origin not in METADATA:
            modes.append("observe")
    # An unknown word may be a misspelt `locked` or `policy`: what it may have locked stays locked.
    words = [given[name] for name in foreign if origin not in METADATA]
    may_lock = unknown or any(isinstance(word, list) or word in [*policies] for word in words)
    lines = [*wrong, *faults, *(f"{origin}.locked: {name!r:.60} is no field" for name in unknown)]
    at_most = None if origin in ENVIRONMENT else weakest(modes)
    if at_most is not None:
        lines[-1] += f"{WEAKENED} {at_most!r} at most"
    return ReadScope(fields, tuple(Policy.model_fields if may_lock else locked), tuple(lines), at_most)


def merged(wider: Mapping[str, Any], narrower: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of two scopes; the narrower one takes precedence, in `tool_results` field by field."""
    both = {**wider, **narrower}
    if "tool_results" in both:
        both["tool_results"] = {**wider.get("tool_results", {}), **narrower.get("tool_results", {})}
    return both


def weakest(modes: Iterable[Mode | None]) -> Mode | None:
    """Return the weakest mode; None if there is none."""
    return min((mode for mode in modes if mode is not None), key=WEAKEST_FIRST.index, default=None)


def valid_part(model: type[BaseModel], given: Mapping[str, Any], path: str) -> tuple[dict[str, Any], list[str], list[str]]:
    """Return the valid fields, a line for each mistake, and the fields with one. A nested section loses only wrong parts."""
    fields, lines, lost = dict(given), dict[str, None](), dict[str, None]()
    while True:  # a section without its wrong part may be wrong too
        try:
            model.model_validate(fields)
        except ValidationError as error:
            for e in error.errors(include_url=False):
                where = ".".join([path, *map(str, e["loc"])])
                said = e["msg"].removeprefix("Value error, ").replace("Input should be", "it has to be")
                is_unknown = e["type"] == "extra_forbidden"
                lines[f"{where}: " + ("there is no such field" if is_unknown else f"{said} (got {e['input']!r:.80})")] = None
                name, *inner = map(str, e["loc"])
                lost[name], section = None, fields.pop(name, None)
                if inner and isinstance(section, Mapping) and inner[0] in section:
                    fields[name] = {part: value for part, value in section.items() if part != inner[0]}
        else:
            return fields, list(lines), list(lost)


def switches_off(name: str, value: Any) -> bool:
    """Whether a field says that compression is off: `compaction: {enabled: false}`, `context_compression: off`."""
    if not _COMPRESSION.search(name.lower()):
        return False
    if isinstance(value, Mapping):
        return any(switches_off(str(with_off(inner)), said) for inner, said in value.items())
    return _says_off(value)


def _says_off(value: Any) -> bool:
    return isinstance(value, (str, int)) and str(value).strip().lower() in _OFF


def _without_unknown_names(origin: str, given: dict[str, Any], policies: Mapping[str, Scope]) -> list[str]:
    """Remove what a scope may not name from its fields; return a line for each."""
    wrong, archive, listed = list[str](), given.get("archive"), given.get("request_may_set")
    if origin in METADATA and isinstance(archive, Mapping):
        only = [name for name in _CONFIGURATION_ONLY if name in archive]
        wrong += [f"{origin}.archive.{name}: is set in the proxy's configuration only" for name in only]
        given["archive"] = {name: value for name, value in archive.items() if name not in only}
    if isinstance(listed, (list, tuple)):
        names, known = [with_off(name) for name in listed], [*Policy.model_fields, *PRESETS, *policies]
        wrong += [f"{origin}.request_may_set: {name!r:.60} is no field and no policy" for name in names if name not in known]
        given["request_may_set"] = tuple(name for name in names if name in known)
    return wrong
