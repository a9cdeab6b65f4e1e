"""The settings of the proxy's configuration, with every mistake in them, wherever they are in it."""

import logging
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ctx_hooks.policy.resolve import SECTIONS, Policies, environment
from ctx_hooks.policy.scopes import switches_off, valid_part, weakest
from ctx_hooks.policy.settings import Mode, Settings, with_off

logger = logging.getLogger("ctx_hooks")

NAME = "ctx_hooks"
PARENT = "callback_settings"
SECTION = f"{PARENT}.{NAME}"
DEEPEST = 2
"""Sections above misplaced settings: `callback_settings` under `litellm_settings`."""
_OURS = re.compile(r"ctx.?hook")


def located(config: Mapping[str, Any]) -> tuple[Any, list[str]]:
    """Return the plugin's settings, and a message if they are elsewhere: then in a list, which is no mapping of sections."""
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
    """Return the settings, and every mistake with its path; an unreadable section may have said `observe` for anybody."""
    if raw is None or raw in ({}, [], ""):
        raw = {}
    if not isinstance(raw, Mapping):
        said = f"{SECTION}: sections are expected, such as `defaults`, not {raw!r:.60}; the mode is 'observe' at most"
        return Settings().with_most("off" if switches_off("mode", raw) else "observe"), [said]
    given = {str(with_off(name)): value for name, value in raw.items()}
    sections, wrong, lost = valid_part(Settings, given, SECTION)
    modes: list[Mode] = []
    for name in lost:
        is_scoped = name in SECTIONS and given[name] not in (None, [], "")
        if is_scoped or name not in Settings.model_fields:
            modes.append("off" if switches_off(name, given[name]) else "observe")
    if (at_most := weakest(modes)) is not None:
        wrong[-1] += f"; the mode is {at_most!r} at most"
    settings = Settings.model_validate(sections).with_most(at_most)
    inner = [f"{SECTION}.{line}" for line in Policies(settings).mistakes()]
    return settings, [*wrong, *inner, *(line for _, read in environment() for line in read.mistakes)]
