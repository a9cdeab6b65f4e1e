"""The settings of the proxy's configuration, with every mistake in them, wherever they are in it."""

import logging
import re
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from ctx_hooks.policy.resolve import Policies, environment
from ctx_hooks.policy.scopes import OWN_KEYS, mistakes, suggestion, switches_off, weakest
from ctx_hooks.policy.settings import Mode, Policy, Settings, with_off

logger = logging.getLogger("ctx_hooks")

NAME = "ctx_hooks"
PARENT = "callback_settings"
SECTION = f"{PARENT}.{NAME}"
DEEPEST = 2
"""Sections above misplaced settings: `callback_settings` under `litellm_settings`."""
SECTIONS = ("models", "teams", "keys", "sessions")
"""Sections of scopes by the caller's names."""
_OURS = re.compile(r"ctx.?hook")


def located(config: Mapping[str, Any]) -> tuple[Any, list[str]]:
    """Return the plugin's settings in a proxy's configuration, and a message if they are not where LiteLLM looks.

    Settings elsewhere are returned in a list, which is no mapping of sections: the plugin observes.
    """
    parent = config.get(PARENT)
    if isinstance(parent, Mapping) and NAME in parent:
        return parent[NAME], []
    if parent and not isinstance(parent, Mapping):
        return [parent], [f"{PARENT}: a mapping is expected, with the key `{NAME}`, not {parent!r:.60}"]
    sections = [("", config)]
    for path, section in sections:
        for name, found in section.items():
            if found and _OURS.match(str(name).lower()):
                return [found], [f"{path}{name}: belongs under `{PARENT}`, as `{NAME}`; it is not read"]
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

    Without an unknown or unreadable section the plugin observes at most: the section may have said so for anybody.
    """
    if raw is None or raw in ({}, [], ""):
        raw = {}
    if not isinstance(raw, Mapping):
        said = f"{SECTION}: sections are expected, such as `defaults`, not {raw!r:.60}; the mode is 'observe' at most"
        return Settings().with_most("off" if switches_off("mode", raw) else "observe"), [said]
    sections = {name: raw[name] for name in raw if name in Settings.model_fields}
    others = {str(with_off(name)): value for name, value in raw.items() if name not in sections}
    wrong = [f"{SECTION}.{name}: {_place_of(name)}; the mode is 'observe' at most" for name in others]
    modes: list[Mode] = ["off" if switches_off(name, value) else "observe" for name, value in others.items()]
    while True:  # a section without its wrong part may be wrong too
        try:
            settings = Settings.model_validate(sections)
        except ValidationError as error:
            wrong += mistakes(error, SECTION, Settings)
            for name, *inner in (e["loc"] for e in error.errors()):
                section = sections.pop(str(name), None)
                if inner and isinstance(section, Mapping) and inner[0] in section:
                    sections[str(name)] = {n: v for n, v in section.items() if n != inner[0]}
                elif name in (*SECTIONS, "policies") and section not in (None, [], ""):
                    modes.append("observe")
        else:
            return settings.with_most(weakest(modes)), [
                *wrong,
                *(f"{SECTION}.{line}" for line in Policies(settings).mistakes()),
                *(line for _, read in environment() for line in read.mistakes),
            ]


def _place_of(name: str) -> str:
    if name in Policy.model_fields or name in OWN_KEYS:
        return "belongs under `defaults`, and is not read here"
    return f"there is no such section{suggestion(name, Settings.model_fields)}"
