"""Read one scope: the fields that it sets and locks, and its mistakes.

An unreadable field is left out; the rest of the scope applies. No mistake makes the mode stronger or opens a lock: a
misspelt `mode`, `policy` or `locked` is read as the name that it resembles, and an unreadable mode is `off`.
"""

import difflib
import re
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from pydantic import BaseModel, ValidationError

from ctx_hooks.policy.settings import PRESETS, Mode, Policy, Scope, enforced_share, fraction_of, with_off

SUCCESSORS: Mapping[str, tuple[str, str]] = {
    "enabled": ("mode", "off"),
    "reserve_tokens": ("reserve", "16384"),
    "reserve_fraction": ("reserve", "8%"),
    "keep_recent_tokens": ("keep_recent", "20000"),
    "keep_recent_fraction": ("keep_recent", "20%"),
    "retrieval_fraction": ("quoting", "10%"),
    "retrieval_max_tokens": ("quoting", "8000"),
    "cost_aware": ("compaction", "cost_aware"),
    "client_compaction": ("compaction", "client_first"),
    "warn_below_tokens": ("block_below_tokens", "0"),
    "tool_result_max_chars": ("tool_results", "{max_chars: 400000}"),
    "tool_result_max_lines": ("tool_results", "{max_lines: 2000}"),
    "tool_result_max_bytes": ("tool_results", "{max_bytes: 51200}"),
    "tool_result_max_fraction": ("tool_results", "{max_fraction: 0.3}"),
    "tool_result_direction": ("tool_results", "{direction: head}"),
}
"""Fields of earlier versions, each with its successor and an example of the successor's value."""
OWN_KEYS = ("policy", "extends", "locked")
WEAKEST_FIRST: tuple[Mode, ...] = ("off", "observe", "enforce")
RESEMBLES = 0.75
"""One wrong letter of four, by difflib's ratio. Above it `tenants` would be read as `teams`."""
MOST_READ = 1_000
"""At most this many values are read under an unknown name."""
_SWITCHES = ("off", "observ", "dry_run", "dry-run")
"""Beginnings of the names of switches."""
_METADATA = ("organization", "project", "team", "key")
"""Scopes in LiteLLM's metadata: anybody who may create a key can write one."""
_CONFIGURATION_ONLY = ("path", "max_bytes")
"""Fields of `archive` that only the configuration sets, never metadata: the folder for the proxy's files, and its limit."""
_GUESSED = ("mode", "enabled", "disabled", *OWN_KEYS, "request_may_set", "request_policies")
"""Names that are read even if misspelt: the mode, and the names that decide which mode applies."""


@dataclass(frozen=True, slots=True)
class ReadScope:
    """The content of a scope.

    Attributes:
        fields: the policy's fields that it sets, all valid; the mode may be a share of the conversations, as `10%`.
        locked: the fields that it fixes for more specific scopes.
        mistakes: a line for each, with its path.
        at_most: the strongest mode that its mistakes leave; None if they do not concern the mode.
    """

    fields: Mapping[str, Any] = field(default_factory=dict)
    locked: tuple[str, ...] = ()
    mistakes: tuple[str, ...] = ()
    at_most: Mode | None = None

    def over(self, mode: Mode) -> dict[str, Any]:
        """Return the fields for a caller whose wider scopes have set a mode."""
        if self.at_most is None:
            return dict(self.fields)
        return {**self.fields, "mode": weakest((self.fields.get("mode", mode), self.at_most))}


def read_scope(origin: str, scope: Any, policies: Mapping[str, Scope], begun: tuple[str, ...] = ()) -> ReadScope:
    """Return the content of a scope.

    Args:
        origin: its path in the settings, or whose metadata it is.
        scope: the name of a policy, or fields, as the operator wrote them.
        policies: the named policies of the settings.
        begun: the named policies that are being read: one that extends itself is a mistake.
    """
    scope = with_off(scope)
    if isinstance(scope, str) and scope:
        scope = {"policy": scope}
    if scope is None or scope in ("", [], {}):
        return ReadScope(mistakes=(f"{origin}: is empty and sets nothing",) if scope is None else ())
    if not isinstance(scope, Mapping):
        return _unreadable(f"{origin}: a policy's name or fields are expected, not {scope!r:.60}")
    scope, wrong, at_most = _spelled(origin, scope, policies, begun)
    named = scope.get("policy")
    named = with_off(scope.get("extends") if named is None else named)
    base = _named(origin, str(named or ""), policies, begun)
    scope, listed = _lists(origin, scope, policies)
    wrong += listed
    locked = scope.get("locked") or ()
    if not isinstance(locked, tuple):
        return _unreadable(f"{origin}.locked: a list of fields is expected, not {locked!r:.60}")
    fields, faulty, left = _valid(origin, {n: v for n, v in scope.items() if n not in OWN_KEYS})
    at_most = weakest((at_most, left, base.at_most))
    if at_most is not None:
        wrong.append(f"{origin}: because of a mistake the mode here is {at_most!r} at most")
    return ReadScope(merged(base.fields, fields), (*base.locked, *locked), (*wrong, *faulty, *base.mistakes), at_most)


def merged(wider: Mapping[str, Any], narrower: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of two scopes; the narrower one takes precedence, in `tool_results` field by field."""
    both = {**wider, **narrower}
    if "tool_results" in both:
        both["tool_results"] = {**wider.get("tool_results", {}), **narrower.get("tool_results", {})}
    return both


def weakest(modes: Iterable[Mode | None]) -> Mode | None:
    """Return the weakest mode; None if there is none. A share is between observing and enforcing."""
    return min((mode for mode in modes if mode is not None), key=_strength, default=None)


def _strength(mode: Mode) -> float:
    share = fraction_of(mode)
    return WEAKEST_FIRST.index(mode) if share is None else WEAKEST_FIRST.index("observe") + share


def resembling(name: Any, known: Iterable[str]) -> list[str]:
    """Return the names that a misspelt one may mean, the nearest first."""
    spelled = str(name).strip().lower().replace("-", "_")
    names = list(known)
    return difflib.get_close_matches(spelled, names, n=max(len(names), 1), cutoff=RESEMBLES)


def suggestion(name: Any, known: Iterable[str]) -> str:
    """Return the hint for an unknown name: its successor, or the name that it resembles."""
    if name in SUCCESSORS:
        new, value = SUCCESSORS[name]
        return f"; write `{new}`, such as `{new}: {value}`"
    found = difflib.get_close_matches(str(name), list(known), n=1)
    return f"; did you mean {found[0]!r}?" if found else ""


def mistakes(error: ValidationError, path: str, model: type[BaseModel]) -> list[str]:
    """Return each mistake with its path, the value, the allowed values, and the nearest field's name."""
    lines = []
    for e in error.errors(include_url=False):
        where = ".".join([path, *map(str, e["loc"])])
        if e["type"] == "extra_forbidden":
            lines.append(f"{where}: there is no such field{suggestion(str(e['loc'][-1]), model.model_fields)}")
        else:
            said = e["msg"].removeprefix("Value error, ").replace("Input should be", "it has to be")
            lines.append(f"{where}: {said} (got {e['input']!r:.80})")
    return lines


def _unreadable(line: str) -> ReadScope:
    """Return an unreadable scope: it may have set `off`, and locked anything."""
    return ReadScope({}, tuple(Policy.model_fields), (f"{line}; the plugin is off here",), "off")


def _named(origin: str, name: str, policies: Mapping[str, Scope], begun: tuple[str, ...]) -> ReadScope:
    """Return a named policy. An unknown one has the mode of the policies whose names it resembles."""
    if not name:
        return ReadScope()
    if name in begun:
        return ReadScope(mistakes=(f"{origin}.policy: {name!r:.60} begins from itself",), at_most="off")
    every: dict[str, Any] = {**PRESETS, **policies}
    if name in every:
        return read_scope(f"policies.{name}", every[name], policies, (*begun, name))
    alike = [] if "" in begun else resembling(name, every)  # a guess follows no further guess
    line = f"{origin}.policy: {name!r:.60} is no policy{suggestion(name, every)}"
    if len(alike) != 1:
        return _unreadable(line)
    read = _named(origin, alike[0], policies, (*begun, ""))
    mode = _not_enforcing(weakest((read.fields.get("mode"), read.at_most)))
    return ReadScope({}, read.locked, (f"{line} Its mode and locks are read", *read.mistakes), mode)


def _spelled(
    origin: str, scope: Mapping[str, Any], policies: Mapping[str, Scope], begun: tuple[str, ...]
) -> tuple[dict[str, Any], list[str], Mode | None]:
    """Return a scope with the names corrected that decide its mode; the mistakes; the mode that they leave."""
    right, wrong, modes = dict(scope), [], []
    unknown = [n for n in scope if n not in Policy.model_fields and n not in OWN_KEYS]
    if len(scope) > len(Policy.model_fields) + len(OWN_KEYS):
        wrong.append(f"{origin}: has {len(scope):,} fields, and there are {len(Policy.model_fields)}")
        return {n: v for n, v in scope.items() if n not in unknown}, wrong, None
    for name in unknown:
        meant = next(iter(resembling(name, _GUESSED)), None)
        value = scope[name]
        if meant in ("mode", "enabled", "disabled"):
            mode = mode_of(value)
            switched = {"off": "enforce", "enforce": "off"}.get(str(mode)) if meant == "disabled" else mode
            modes.append(_not_enforcing(switched) if mode else "off")
        elif meant in ("policy", "extends") and not (isinstance(value, str) and value in {**PRESETS, **policies}):
            continue
        elif meant and meant not in right:
            right[meant] = right.pop(name)
            wrong.append(f"{origin}.{name}: there is no such field; it is read as {meant!r}")
        else:
            modes.append(_stated(name, value, policies, begun))
    return {str(with_off(name)): value for name, value in right.items()}, wrong, weakest(modes)


def _stated(name: Any, value: Any, policies: Mapping[str, Scope], begun: tuple[str, ...]) -> Mode | None:
    """Return the mode that an unknown field states: by its name, or by a mode or a policy's name in its value."""
    switch = str(with_off(name)).lower()
    if switch.startswith(_SWITCHES) and value:
        return "off" if switch == "off" else "observe"
    if switch.startswith("enforc"):
        return _not_enforcing(mode_of(value) or "observe")
    if name in ("tags", "session_header") and isinstance(value, Mapping):  # sections of an earlier version
        scopes = [read_scope("", scope, policies, begun) for scope in value.values()]
        return _not_enforcing(weakest(mode for read in scopes for mode in (read.fields.get("mode"), read.at_most)))
    modes, waiting = [], deque([(name, value)])
    for _ in range(MOST_READ):
        name, value = waiting.popleft() if waiting else ("", None)
        if name == "mode" and isinstance(value, Mapping):
            modes.append(_mode_meant(value))
        if isinstance(value, Mapping):
            waiting.extend(islice(value.items(), MOST_READ))
        elif isinstance(value, str) and value not in ("off", *begun) and value in {**PRESETS, **policies}:
            read = _named("", value, policies, begun)
            modes.append(_not_enforcing(weakest((read.fields.get("mode"), read.at_most))))
        elif name == "mode":
            modes.append(_mode_meant(value))
    return weakest(modes)


def _lists(origin: str, scope: Mapping[str, Any], policies: Mapping[str, Scope]) -> tuple[dict[str, Any], list[str]]:
    """Return a scope with corrected names in its lists, and the mistakes; a list of other values stays unchanged."""
    read, wrong = dict(scope), []
    known: dict[str, list[str]] = {
        "locked": [*Policy.model_fields],
        "request_may_set": [*Policy.model_fields],
        "request_policies": [*PRESETS, *policies],
    }
    for key, names in known.items():
        value = scope.get(key)
        if isinstance(value, str):
            wrong.append(f"{origin}.{key}: a list is expected, not {value!r:.60}")
            value = re.findall(r"[^\s,]+", value)
        items = [with_off(v) for v in value] if isinstance(value, (list, tuple, Mapping)) else [None]
        if not all(isinstance(item, str) for item in items):
            continue
        kind = "policy" if key == "request_policies" else "field"
        unknown = [n for n in items if n not in names]
        wrong += [f"{origin}.{key}: {n!r:.60} is no {kind}{suggestion(n, names)}" for n in unknown]
        guessed = [meant for n in unknown if n not in SUCCESSORS for meant in resembling(n, names)[:1]]
        guessed += [SUCCESSORS[str(n)][0] for n in unknown if n in SUCCESSORS and (key == "locked" or n == "enabled")]
        read[key] = tuple(dict.fromkeys([*(n for n in items if n in names), *guessed]))
    return read, wrong


def _valid(origin: str, given: Mapping[str, Any]) -> tuple[dict[str, Any], list[str], Mode | None]:
    """Return the readable fields; the mistakes; the mode that the mistakes in the mode leave."""
    fields, wrong = dict(given), list[str]()
    faulty: set[int | str] = set()
    archive = fields.get("archive")
    if origin in _METADATA and isinstance(archive, Mapping):
        only = [n for n in _CONFIGURATION_ONLY if n in archive]
        wrong += [f"{origin}.archive.{n}: is set in the proxy's configuration only" for n in only]
        faulty |= {"archive"} if only else set()
    try:
        Policy.model_validate(fields)
    except ValidationError as error:
        wrong += mistakes(error, origin, Policy)
        places = [e["loc"] for e in error.errors() if e["loc"]]
        limits = {inner[0] for name, *inner in places if name == "tool_results" and inner}
        if limits:
            fields["tool_results"] = {n: v for n, v in fields["tool_results"].items() if n not in limits}
        faulty |= {name for name, *inner in places if name != "tool_results" or not inner}
    left = _mode_meant(fields["mode"]) if "mode" in faulty else None
    kept = {n: v for n, v in fields.items() if n not in faulty}
    return kept | ({"mode": enforced_share(kept["mode"]) or mode_of(kept["mode"])} if "mode" in kept else {}), wrong, left


def mode_of(value: Any) -> Mode | None:
    """Return the mode that a value states; None if it states none."""
    try:
        return Policy(mode=value).mode
    except ValidationError:
        return None


def _mode_meant(value: Any) -> Mode | None:
    """Return the mode that a misspelt one leaves: the one that it resembles, else `off`. A wrong share observes."""
    if isinstance(value, Mapping):
        return "observe" if value and "off" not in map(with_off, value) else "off"
    alike = resembling(value, WEAKEST_FIRST) or ["off"]
    if isinstance(value, str) and ("%" in value or (alike[0] == "enforce" and re.search(r"\d", value))):
        return "observe"
    return _not_enforcing(mode_of(value) or mode_of(alike[0]))


def _not_enforcing(mode: Any) -> Mode | None:
    """Return a guessed mode, None for `enforce`: a guess does not make the wider scopes' mode stronger."""
    return None if mode == "enforce" else mode
