"""A proxy configuration as the commands read it: the settings, their mistakes with hints, and the deployments."""

import difflib
import os
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel

from ctx_hooks.cli.terminal import CommandError
from ctx_hooks.formats.fields import mapping_or_empty
from ctx_hooks.litellm_compat.call import Deployment
from ctx_hooks.litellm_compat.rescue import fallback_groups
from ctx_hooks.policy.addon_settings import ArchiveSettings, SummarySettings
from ctx_hooks.policy.loading import SECTION, located, settings_of
from ctx_hooks.policy.resolve import Caller, Policies, Resolved, as_text
from ctx_hooks.policy.scopes import OWN_KEYS
from ctx_hooks.policy.settings import LEAST_WINDOW_TOKENS, PRESETS, EventFiles, Policy, Settings, ToolResultLimits

STDIN = Path("-")
PLUGIN = "ctx_hooks.proxy_handler_instance"
DASHBOARD = {"name": "ctx-hooks", "display_name": "Context", "url": "http://localhost:4100"}
"""The entry of `general_settings.plugins` by which LiteLLM's dashboard shows the page of `serve`."""
VARIABLE = "os.environ/"
"""How LiteLLM's configuration names a variable of the environment."""
FALLBACKS = ("context_window_fallbacks", "fallbacks", "default_fallbacks")
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
_NESTED: Mapping[str, type[BaseModel]] = {
    "tool_results": ToolResultLimits,
    "archive": ArchiveSettings,
    "summary": SummarySettings,
    "events": EventFiles,
}
_UNKNOWN = re.compile(r"(\w*)\.(\w+): there is no such field|'(.{1,60})' is no (?:field and no policy|field|policy)")


@dataclass(frozen=True, slots=True)
class Listed:
    """An entry of `model_list`: the name that clients request, and its content."""

    group: str
    deployment: Deployment
    params: Mapping[str, Any]

    @property
    def overrides(self) -> str:
        """The policy of the deployment, as a caller has it."""
        return as_text(self.deployment.model_info.get("ctx_hooks"))


@dataclass(frozen=True, slots=True)
class Configuration:
    """A proxy configuration: the plugin's settings without unreadable sections, the mistakes with paths, the deployments."""

    raw: Mapping[str, Any]
    settings: Settings
    policies: Policies
    mistakes: tuple[str, ...]
    listed: tuple[Listed, ...]

    def section(self, name: str) -> Mapping[str, Any]:
        """Return a section such as `router_settings`, an empty one if there is none."""
        return mapping_or_empty(self.raw.get(name))

    def group_of(self, name: str) -> list[Listed]:
        """Return the deployments of a model group, alias or wildcard, each with the model that it serves under that name."""
        alias = mapping_or_empty(self.section("router_settings").get("model_group_alias")).get(name, name)
        group = str(mapping_or_empty(alias).get("model") or alias)
        found = [entry for entry in self.listed if entry.group == group]
        for entry in self.listed if not found else ():
            if "*" in entry.group and fnmatchcase(group, entry.group):
                wild = group.removeprefix(entry.group.split("*")[0])
                model = entry.deployment.model.replace("*", wild)
                found.append(replace(entry, group=group, deployment=entry.deployment._replace(model=model)))
        return found

    def fallbacks_of(self, group: str, asked: Mapping[str, Any] | None = None) -> tuple[str, ...]:
        """Return the groups that the Router asks after an overflow; a request's own fields come before the settings."""
        sections = (self.section("litellm_settings"), self.section("router_settings"))
        found = {name: each[name] for name in FALLBACKS for each in sections if isinstance(each.get(name), list)}
        if "default_fallbacks" in found:
            found["fallbacks"] = [*found.get("fallbacks", ()), {"*": found.pop("default_fallbacks")}]
        return fallback_groups({**found, **(asked or {}), "model": group})

    @property
    def lists_every_group(self) -> bool:
        """Whether no model group is in LiteLLM's database."""
        return bool(self.listed) and self.section("general_settings").get("store_model_in_db") is not True

    def resolved(self, listed: Listed, **names: Any) -> Resolved:
        """Return the policy of a deployment, for a caller of these names."""
        return self.policies.resolve(Caller(group=listed.group, deployment=listed.overrides, **names))


def read_text(path: Path) -> str:
    """Return the text of a file, `-` for standard input; raises CommandError, or OSError, if it cannot be read."""
    data = sys.stdin.buffer.read() if path == STDIN else path.read_bytes()
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise CommandError(f"{path}: not a text file in UTF-8") from None


def config_of(text: str, path: Path) -> dict[str, Any]:
    """Return the proxy configuration of a file's text; raises CommandError if it is not a mapping in YAML."""
    try:
        config = yaml.safe_load(text) or {}
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # ValueError: an invalid date, or a huge number
        raise CommandError(f"{path}: not YAML: {error}") from None
    if not isinstance(config, dict):
        raise CommandError(f"{path}: a proxy configuration is expected, with keys such as `model_list`")
    return config


def read_configuration(path: Path | None, *, with_mistakes: bool = False) -> Configuration:
    """Return the configuration of a file, an empty one without a file; raises CommandError if it cannot be read.

    It also raises for mistakes, unless they are asked for.
    """
    text = read_text(path) if path else ""
    found = configuration_of(config_of(text, path) if path else {})
    found = replace(found, mistakes=(*_repeated_sections(text), *found.mistakes))
    if found.mistakes and not with_mistakes:
        raise CommandError("; ".join(found.mistakes))
    return found


def _repeated_sections(text: str) -> Iterator[str]:
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    names = (str(key.value) for key, _ in (root.value if root else ()))
    for name, times in Counter(names).items():
        if times > 1:
            yield f"{name}: written {times} times; only the last one is read"


def configuration_of(raw: Mapping[str, Any]) -> Configuration:
    """Return a configuration with its mistakes."""
    section, misplaced = located(raw)
    settings, mistakes = settings_of(section)
    wrong = [*misplaced, *mistakes]
    policies, listed = Policies(settings), tuple(_listed(raw))
    for i, entry in enumerate(listed):
        ignored = policies.resolve(Caller(deployment=entry.overrides)).ignored
        wrong += [f"model_list.{i}.{line}" for line in ignored if line.startswith("model_info")]
        window = entry.deployment.model_info.get("max_input_tokens")
        if window is not None and not (type(window) is int and window >= LEAST_WINDOW_TOKENS):
            wrong.append(
                f"model_list.{i}.model_info.max_input_tokens: a number is expected, such as 128000, not {window!r:.40}"
            )
    return Configuration(raw, settings, policies, tuple(with_hint(line, settings) for line in wrong), listed)


def plain_text(value: Any) -> str:
    """Return the text of a setting, which may name a variable of the environment; "" for anything else."""
    text = value if isinstance(value, str) else ""
    return os.environ.get(text.removeprefix(VARIABLE), "") if text.startswith(VARIABLE) else text


def values_of(raw: Any) -> Iterator[tuple[str, Any]]:
    """Yield each value of a configuration with its path; the content of a shared list or mapping only once."""
    waiting, seen = [("", raw)], set()
    for path, value in waiting:
        yield path.removeprefix("."), value
        if isinstance(value, (list, Mapping)) and id(value) not in seen:
            seen.add(id(value))
            inner = value.items() if isinstance(value, Mapping) else enumerate(value)
            waiting += [(f"{path}.{name}", v) for name, v in inner]


def _listed(raw: Mapping[str, Any]) -> Iterator[Listed]:
    entries = raw.get("model_list")
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, Mapping):
            params = mapping_or_empty(entry.get("litellm_params"))
            group = str(entry.get("model_name") or "")
            deployment = Deployment(str(params.get("model") or group), mapping_or_empty(entry.get("model_info")))
            yield Listed(group, deployment, params)


def suggestion(name: Any, known: Iterable[str]) -> str:
    """Return the hint for an unknown name: what to write for another system's name, or the name that it resembles."""
    plain = re.sub(r"[^a-z]", "", str(name).lower())
    if hint := KNOWN_ELSEWHERE.get(plain, KNOWN_ELSEWHERE.get(plain.removeprefix("tooloutput"))):
        return f"; {hint}"
    found = difflib.get_close_matches(str(name), list(known), n=1)
    return f"; did you mean {found[0]!r}?" if found else ""


def with_hint(mistake: str, settings: Settings) -> str:
    """Return the line of a mistake, with a hint if it is an unknown name."""
    if not (found := _UNKNOWN.search(mistake)):
        return mistake
    section, field, name = found.groups()
    is_top = mistake.startswith(f"{SECTION}.{field}:")
    if name:
        hint = suggestion(name, (*Policy.model_fields, *PRESETS, *settings.policies))
    elif is_top and field in (*Policy.model_fields, *OWN_KEYS):
        hint = "; it belongs under `defaults`"
    elif section in _NESTED:
        hint = suggestion(field, _NESTED[section].model_fields)
    else:
        hint = suggestion(field, Settings.model_fields if is_top else (*Policy.model_fields, *OWN_KEYS))
    return mistake.replace(found[0], found[0] + hint, 1)
