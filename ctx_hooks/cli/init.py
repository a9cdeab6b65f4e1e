"""`ctx-hooks init CONFIG`: add the plugin to a proxy configuration; the changes are shown first."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ctx_hooks.cli.configuration import DASHBOARD, PLUGIN, configuration_of
from ctx_hooks.cli.editing import Key, change
from ctx_hooks.cli.files import config_of, read_text
from ctx_hooks.cli.terminal import CommandError, as_json, print_json, print_text
from ctx_hooks.policy.resolve import Caller


def run(*, config: Path, observe: bool, events: str | None, dashboard: bool, yes: bool) -> None:
    """Show the changes of a configuration, and write them if the user confirms.

    Raises CommandError if the file cannot be edited, its own settings are not the requested ones, or nobody confirms.
    """
    before = config_of(read_text(config), config)
    for section in ("litellm_settings", "callback_settings", "general_settings"):
        if not isinstance(before.get(section) or {}, dict):
            raise CommandError(f"{config}: `{section}` has to be a mapping")
    changes = additions(before, observe=observe, events=events, dashboard=dashboard)
    own = before.get("callback_settings") or {}
    read = configuration_of(
        {"callback_settings": {"ctx_hooks": changes.get(("callback_settings", "ctx_hooks"), own.get("ctx_hooks"))}}
    )
    if observe and read.policies.resolve(Caller()).policy.mode == "enforce":
        raise CommandError(
            f"{config}: its `callback_settings.ctx_hooks` enforces; write `mode: observe` under its `defaults`"
        )
    if events and (read.settings.events is None or read.settings.events.path != events):
        raise CommandError(f"{config}: write `events: {{path: {events}}}` under its `callback_settings.ctx_hooks`")
    difference, is_written = change(config, changes, yes=yes)
    if as_json():
        print_json({"config": str(config), "difference": difference, "written": is_written})
    elif is_written:
        print_text(f"Written. Next: ctx-hooks check {config}")
        if events and not Path(events).is_dir():
            print_text(f"Nothing is recorded until the folder {events} exists where the proxy runs; it does not exist here.")


def additions(config: Mapping[str, Any], *, observe: bool, events: str | None, dashboard: bool) -> dict[Key, Any]:
    """Return the values that a configuration lacks: its callback, its settings if it has none, the dashboard's plugin."""
    found = (config.get("litellm_settings") or {}).get("callbacks")
    names = found if isinstance(found, list) else [] if found is None else [found]
    added: dict[Key, Any] = {} if PLUGIN in names else {("litellm_settings", "callbacks"): [*names, PLUGIN]}
    defaults = ({"mode": "observe"} if observe else {}) | ({} if PLUGIN in names else {"compaction_api": True})
    asked: dict[str, Any] = {"defaults": defaults} if defaults else {}
    asked |= {"events": {"path": events}} if events else {}
    if asked and "ctx_hooks" not in (config.get("callback_settings") or {}):
        added["callback_settings", "ctx_hooks"] = asked
    plugins = (config.get("general_settings") or {}).get("plugins") or []
    if dashboard and DASHBOARD["name"] not in [plugin.get("name") for plugin in plugins]:
        added["general_settings", "plugins"] = [*plugins, DASHBOARD]
    return added
