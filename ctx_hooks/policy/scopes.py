"""Read one scope: the fields that it sets and locks, and its mistakes.

A field that is unknown or has a wrong value is left out; the rest of the scope applies, and its mode is `observe` at most.
Anybody may write into LiteLLM's metadata: an unknown field there has no effect. Words that mean off switch off everywhere.
"""

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, ValidationError

from ctx_hooks.policy.addon_settings import FOLDER_VARIABLE, RETENTION_VARIABLE
from ctx_hooks.policy.settings import PRESETS, Mode, Policy, Scope, with_off

OWN_KEYS = ("policy", "extends", "locked")
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
_DISABLED = re.compile(r"^(?:off|disabled?|disable.*|no.?(?:compress|compact|prun|trim|truncat).*)$")
"""Names under which any other value says so."""
_OFF = frozenset({"off", "false", "no", "0", "none", "never", "disable", "disabled", "n", "f"})
_RATIO = "older results give way as far as the budget needs it; write `tool_results: {max_fraction: 0.3}` for one result"
KNOWN_ELSEWHERE: Mapping[str, str] = {
    "reservetokens": "write `reserve: 16384`",
    "reservetokensfloor": "write `reserve: 16384`",
    "keeprecenttokens": "write `keep_recent: 20000`",
    "contextwindowoverride": "the deployment states its window, as `max_input_tokens` in its `model_info`",
    "contexttokens": "write `window_tokens: 128000`",
    "historylimit": "write `max_turns: 50`",
    "dmhistorylimit": "write `max_turns: 50` under `sessions: {'dm:*': ...}`",
    "softtrimratio": _RATIO,
    "hardtrimratio": _RATIO,
    "maxoverflowcompactionattempts": "write `rescue_attempts: 3`",
    "maxlines": "write `tool_results: {max_lines: 2000}`",
    "maxbytes": "write `tool_results: {max_bytes: 51200}`",
    "truncatedirection": "write `tool_results: {direction: head}`",
    "tooloutputdir": "write `archive: {backend: disk, path: FOLDER}`, or set it in the environment",
    "tooloutputretentiondays": "write `archive: {retention_days: 7}`, or set it in the environment",
}
"""Names of OpenClaw, pi, nanobot and MyCodeAgent, in small letters without separators, with the hint."""


@dataclass(frozen=True, slots=True)
class ReadScope:
    """The content of a scope.

    Attributes:
        fields: the policy's fields that it sets, all valid.
        locked: the fields that it fixes for more specific scopes.
        mistakes: a line for each, with its path.
        at_most: the strongest mode that its mistakes leave; None without mistakes.
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
    if isinstance(scope, (str, bool)) and scope != "":
        scope = {"policy": "off" if _says_off(scope) else scope}
    if scope is None or scope in ("", [], {}):
        return ReadScope(mistakes=(f"{origin}: is empty and sets nothing",) if scope is None else ())
    if not isinstance(scope, Mapping):
        return _unreadable(f"{origin}: a policy's name or fields are expected, not {scope!r:.60}")
    fields, wrong, at_most, locked = _known(origin, {str(with_off(name)): value for name, value in scope.items()})
    words = [with_off(fields.pop(word, None)) for word in ("policy", "extends")]
    base = _named(origin, words[0] or words[1], policies, begun)
    listed = fields.pop("locked", None) or ()
    unlisted = [n for n in listed if n not in [*Policy.model_fields]] if isinstance(listed, (list, tuple)) else [listed]
    if unlisted:  # it may have meant any field
        wrong += [f"{origin}.locked: {n!r:.60} is no field{suggestion(n, Policy.model_fields)}" for n in unlisted]
        locked = True
    fields, faulty = _valid(origin, fields, policies)
    wrong += faulty
    if (faulty or unlisted) and at_most is None and origin not in ENVIRONMENT:
        at_most = "observe"
    if at_most is not None:
        wrong[-1] += f"; the mode here is {at_most!r} at most"
    all_locked = (*base.locked, *(Policy.model_fields if locked else listed))
    return ReadScope(merged(base.fields, fields), all_locked, (*wrong, *base.mistakes), weakest((at_most, base.at_most)))


def merged(wider: Mapping[str, Any], narrower: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of two scopes; the narrower one takes precedence, in `tool_results` field by field."""
    both = {**wider, **narrower}
    if "tool_results" in both:
        both["tool_results"] = {**wider.get("tool_results", {}), **narrower.get("tool_results", {})}
    return both


def weakest(modes: Iterable[Mode | None]) -> Mode | None:
    """Return the weakest mode; None if there is none."""
    return min((mode for mode in modes if mode is not None), key=WEAKEST_FIRST.index, default=None)


def suggestion(name: Any, known: Iterable[str]) -> str:
    """Return the hint for an unknown name: what to write for another system's name, or the name that it resembles."""
    plain = re.sub(r"[^a-z]", "", str(name).lower())
    if hint := KNOWN_ELSEWHERE.get(plain, KNOWN_ELSEWHERE.get(plain.removeprefix("tooloutput"))):
        return f"; {hint}"
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


def switches_off(name: str, value: Any) -> bool:
    """Whether a field says that compression is off: `compaction: {enabled: false}`, `context_compression: off`.

    A wrong guess leaves requests as they are.
    """
    name = name.lower()
    if _DISABLED.search(name):
        return value is not None and not _says_off(value)
    if isinstance(value, Mapping):
        return bool(_COMPRESSION.search(name)) and any(switches_off(str(with_off(n)), v) for n, v in value.items())
    return bool(_COMPRESSION.search(name)) and _says_off(value)


def _says_off(value: Any) -> bool:
    return not isinstance(value, (Mapping, list, tuple)) and str(value).strip().lower() in _OFF and value is not None


def _unreadable(line: str) -> ReadScope:
    """Return an unreadable scope: it may have locked anything."""
    return ReadScope({}, tuple(Policy.model_fields), (f"{line}; the mode here is 'observe' at most",), "observe")


def _named(origin: str, name: Any, policies: Mapping[str, Scope], begun: tuple[str, ...]) -> ReadScope:
    """Return a named policy; an empty scope without a name."""
    if not name:
        return ReadScope()
    if name in begun:
        return _unreadable(f"{origin}.policy: {name!r:.60} begins from itself")
    every: dict[str, Any] = {**PRESETS, **policies}
    if not isinstance(name, str) or name not in every:
        return _unreadable(f"{origin}.policy: {name!r:.60} is no policy{suggestion(name, every)}")
    return read_scope(f"policies.{name}", every[name], policies, (*begun, name))


def _known(origin: str, scope: Mapping[str, Any]) -> tuple[dict[str, Any], list[str], Mode | None, bool]:
    """Return the known fields of a scope; the mistakes in the others; the mode that these leave; whether all is locked."""
    fields: dict[str, Any] = {}
    wrong: list[str] = []
    modes: list[Mode | None] = []
    may_lock = False
    for name, value in scope.items():
        known = Policy.model_fields.get(name)
        if name == "mode" and _says_off(value):
            fields[name] = "off"
        elif (known is None or known.annotation is not bool) and switches_off(name, value):
            wrong.append(f"{origin}.{name}: is read as `mode: off`; write that")
            modes.append("off")
        elif known is not None or name in OWN_KEYS:
            fields[name] = value
        else:
            wrong.append(f"{origin}.{name}: there is no such field{suggestion(name, [*Policy.model_fields, *OWN_KEYS])}")
            if origin not in METADATA:
                modes.append("observe")
                # A lock stays shut if its name is misspelt.
                may_lock |= bool(difflib.get_close_matches(name.lower(), OWN_KEYS, n=1))
    return fields, wrong, weakest(modes), may_lock


def _valid(origin: str, given: Mapping[str, Any], policies: Mapping[str, Scope]) -> tuple[dict[str, Any], list[str]]:
    """Return the readable fields, and the mistakes. Of a nested section only the wrong parts are left out."""
    fields, wrong = dict(given), list[str]()
    if origin in METADATA and isinstance(fields.get("archive"), Mapping):
        only = [n for n in _CONFIGURATION_ONLY if n in fields["archive"]]
        wrong += [f"{origin}.archive.{n}: is set in the proxy's configuration only" for n in only]
        fields["archive"] = {n: v for n, v in fields["archive"].items() if n not in only}
    key, known = "request_may_set", [*Policy.model_fields, *PRESETS, *policies]
    if isinstance(fields.get(key), (list, tuple)):
        listed = [with_off(n) for n in fields[key]]
        unknown = [n for n in listed if n not in known]
        wrong += [f"{origin}.{key}: {n!r:.60} is no field and no policy{suggestion(n, known)}" for n in unknown]
        fields[key] = tuple(n for n in listed if n in known)
    for whole in (False, True):  # a section that has lost a part may be wrong without it
        try:
            Policy.model_validate(fields)
        except ValidationError as error:
            wrong += [line for line in mistakes(error, origin, Policy) if line not in wrong]
            for name, *inner in (e["loc"] for e in error.errors() if e["loc"]):
                section = fields.get(str(name))
                if inner and not whole and isinstance(section, Mapping):
                    fields[str(name)] = {n: v for n, v in section.items() if n != inner[0]}
                else:
                    fields.pop(str(name), None)
    if "mode" in fields:
        fields["mode"] = Policy(mode=fields["mode"]).mode
    return fields, wrong
