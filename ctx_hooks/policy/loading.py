"""The settings of the proxy's configuration, with every mistake in them, wherever they are in it."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from ctx_hooks.policy.resolve import Policies
from ctx_hooks.policy.scopes import OWN_KEYS, mistakes, resembling, suggestion
from ctx_hooks.policy.settings import Policy, Settings, with_off

logger = logging.getLogger("ctx_hooks")

NAME = "ctx_hooks"
PARENT = "callback_settings"
SECTION = f"{PARENT}.{NAME}"
DEEPEST = 2
"""Sections above misplaced settings: `callback_settings` under `litellm_settings`."""
SECTIONS = ("models", "teams", "keys", "sessions")
"""Sections of scopes by the caller's names."""


def located(config: Mapping[str, Any]) -> tuple[Any, list[str]]:
    """Return the plugin's settings in a proxy's configuration, and a message if they are not where LiteLLM looks.

    They are found in any section: otherwise a misspelt `callback_setting` would make a proxy enforce that should observe.
    """
    parent = config.get(PARENT)
    if isinstance(parent, Mapping) and NAME in parent:
        return parent[NAME], []
    if parent and not isinstance(parent, Mapping):
        return [parent], [f"{PARENT}: a mapping is expected, with the key `{NAME}`, not {parent!r:.60}"]
    sections = [("", config)]
    for path, section in sections:
        for name, found in section.items():
            begins = isinstance(found, Mapping) and str(name).lower().replace("-", "_").startswith(NAME)
            if found and (begins or resembling(name, [NAME])):
                return found, [f"{path}{name}: belongs under `{PARENT}`, as `{NAME}`; it is read as {SECTION}"]
        if path.count(".") < DEEPEST:
            sections += [(f"{path}{name}.", found) for name, found in section.items() if isinstance(found, Mapping)]
    return None, []


def load_settings(raw: Any, misplaced: Sequence[str] = ()) -> tuple[Settings, tuple[str, ...]]:
    """Return the settings of `callback_settings.ctx_hooks`, and every mistake in them, which is logged."""
    settings, wrong = settings_of(raw)
    found = (*misplaced, *wrong)
    for line in found:
        logger.warning("ctx_hooks: %s", line)
    return settings, found


def settings_of(raw: Any) -> tuple[Settings, list[str]]:
    """Return the settings of `callback_settings.ctx_hooks`, and every mistake in them with its path.

    Unreadable settings are left out; the rest applies. But a mistake never makes a caller's mode stronger: a section of
    scopes that is no mapping may have switched off any of its callers, so all of them are off.
    """
    sections, wrong = _sections(raw)
    try:
        settings = Settings.model_validate(sections)
    except ValidationError as error:
        wrong += mistakes(error, SECTION, Settings)
        unreadable = {str(e["loc"][0]) for e in error.errors() if e["loc"]}
        readable = {name: found for name, found in sections.items() if name not in unreadable}
        for name in unreadable.intersection(SECTIONS):
            if sections[name] not in (None, []):
                readable[name] = {"*": sections[name]}
        settings = Settings.model_validate(readable)
    return settings, [*wrong, *(f"{SECTION}.{line}" for line in Policies(settings).mistakes())]


def _sections(raw: Any) -> tuple[dict[str, Any], list[str]]:
    """Return the settings under the names of sections, and the mistakes in the names that they had."""
    if raw is None or raw in ({}, [], ""):
        return {}, []
    if not isinstance(raw, Mapping):
        line = f"{SECTION}: sections are expected, such as `defaults`, not {raw!r:.60}; it is read as `defaults`"
        return {"defaults": raw}, [line]
    found: dict[str, Any] = {name: raw[name] for name in raw if name in Settings.model_fields}
    fields: dict[str, Any] = {}
    wrong: list[str] = []
    for name, value in raw.items():
        if name in found:
            continue
        if name == "session_header" and str(value).lower() != "x-session-id":
            value = raw.get("sessions")  # noqa: PLW2901 - no scope of it is found any more by what that header says
        meant = next((n for n in resembling(name, Settings.model_fields) if n not in found), None)
        is_known = name in (*Policy.model_fields, *OWN_KEYS)
        if is_known or not meant:
            fields[name] = value
            line = "belongs" if is_known else f"there is no such section{suggestion(name, Settings.model_fields)}; it is put"
            wrong.append(f"{SECTION}.{name}: {line} under `defaults`, where it is read")
        else:
            found[meant] = value
            wrong.append(f"{SECTION}.{name}: there is no such section; it is read as {meant!r}")
    if fields:
        defaults = with_off(found.get("defaults")) or {}
        defaults = {"policy": defaults} if isinstance(defaults, str) else defaults
        found["defaults"] = {**fields, **defaults} if isinstance(defaults, Mapping) else defaults
    return found, wrong


def configuration_schema() -> dict[str, Any]:
    """Return a JSON Schema of the proxy's configuration that knows the plugin's settings and allows all others."""
    policy, settings = Policy.model_json_schema(), Settings.model_json_schema()
    parts = policy.pop("$defs") | settings.pop("$defs")
    name, names = {"type": "string"}, {"type": "array", "items": {"enum": list(Policy.model_fields)}}
    begins = {"policy": name, "extends": name, "locked": names}
    scope = {"anyOf": [name, {"const": False}, {"$ref": "#/$defs/Policy"}]}
    own = {**settings, "properties": dict(settings["properties"])}
    own["properties"]["defaults"] |= scope
    for section in ("policies", *SECTIONS):
        own["properties"][section] |= {"additionalProperties": scope}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {PARENT: {"type": "object", "properties": {NAME: {"$ref": "#/$defs/Settings"}}}},
        "$defs": {**parts, "Policy": {**policy, "properties": {**policy["properties"], **begins}}, "Settings": own},
    }
