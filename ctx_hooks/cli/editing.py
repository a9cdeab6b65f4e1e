"""`ctx-hooks init CONFIG`: add the plugin to a proxy configuration; the changes are shown first.

A YAML file is changed as text, at the positions of its nodes, so that comments and layout stay.
"""

import copy
import difflib
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from ctx_hooks.cli.configuration import DASHBOARD, PLUGIN, config_of, configuration_of, read_text
from ctx_hooks.cli.terminal import CommandError, as_json, confirmed, print_text
from ctx_hooks.policy.resolve import Caller

Key = tuple[Any, ...]
"""The place of a value: keys of mappings and indices of lists."""


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
    change(config, changes, yes=yes)
    print_text(f"Next: ctx-hooks check {config}")


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


def change(file: Path, changes: Mapping[Key, Any], *, yes: bool) -> None:
    """Show the difference that new values make in a file, and write it if the user confirms.

    Raises CommandError if the layout is one that cannot be edited, or nobody confirms.
    """
    text = read_text(file)
    line_end = "\r\n" if text.count("\r\n") == text.count("\n") > 0 else "\n"
    text = text.replace(line_end, "\n")
    changed = edited(text, changes)
    old, new = text.splitlines(keepends=True), changed.splitlines(keepends=True)
    difference = "".join(difflib.unified_diff(old, new, str(file), str(file)))
    if not as_json():
        print_text(difference.rstrip("\n") or f"{file}: nothing to change")
    if difference and (yes or confirmed(f"Write {file}?")):
        # In place: a container's mounted file cannot be replaced.
        file.write_bytes(changed.replace("\n", line_end).encode())


def edited(text: str, changes: Mapping[Key, Any]) -> str:
    """Return a YAML text with new values; raises CommandError if its layout cannot be edited."""
    wanted = yaml.safe_load(text) or {}
    try:
        for path, value in changes.items():
            wanted = _set(copy.deepcopy(wanted), path, value)
            text = _with_value(text, path, value)
        found = yaml.safe_load(text) or {}
    except yaml.YAMLError:
        found = None
    if wanted != found:
        raise CommandError("the layout of the file is one that this command cannot edit; see docs/index.md, step 2")
    return text


def _set(value: Any, path: Key, new: Any) -> Any:
    if not path:
        return new
    if isinstance(value, list):
        value[path[0]] = _set(value[path[0]], path[1:], new)
        return value
    return {**(value or {}), path[0]: _set((value or {}).get(path[0]), path[1:], new)}


def _with_value(text: str, path: Key, value: Any) -> str:
    """Return a text with a value at a path; of a list in lines, only the new items are written."""
    node: Any = yaml.compose(text, Loader=yaml.SafeLoader)
    column = -2
    for depth, key in enumerate(path):
        if isinstance(node, yaml.SequenceNode):
            node = node.value[key]
            continue
        entries = node.value if isinstance(node, yaml.MappingNode) else []
        found = next((entry for entry in entries if entry[0].value == key), None)
        if found is None:
            for outer in reversed(path[depth + 1 :]):
                value = {outer: value}
            return _with_entry(text, node, column + 2, str(key), value)
        column, node = found[0].start_mark.column, found[1]
    start, end = node.start_mark.index, node.end_mark.index
    if isinstance(node, yaml.SequenceNode) and not node.flow_style:
        at = _line_end(text, node.value[-1].end_mark.index)
        items = "".join(f"\n{' ' * node.start_mark.column}- {_flow(item)}" for item in value[len(node.value) :])
        return f"{text[:at]}{items}{text[at:]}"
    return f"{text[:start]}{'' if text[start - 1].isspace() else ' '}{_flow(value)}{text[end:]}"


def _with_entry(text: str, node: Any, column: int, key: str, value: Any) -> str:
    """Return a text whose mapping has one more entry; a new section comes at the end of the file."""
    if column == 0:
        (inner, content) = next(iter(value.items()))
        end = "" if text.endswith("\n") or not text else "\n"
        return f"{text}{end}\n{key}:\n  {inner}: {_flow(content)}\n"
    start = node.start_mark.index
    if not node.value or not isinstance(node.value, list):  # an empty section
        at = start + 1 if text[start : start + 1] == "{" else _line_end(text, start)
        return f"{text[:at]}{'' if text[at - 1] == '{' else chr(10) + ' ' * column}{key}: {_flow(value)}{text[at:]}"
    if node.flow_style:
        return f"{text[: start + 1]}{key}: {_flow(value)}, {text[start + 1 :]}"
    return f"{text[:start]}{key}: {_flow(value)}\n{' ' * node.start_mark.column}{text[start:]}"


def _line_end(text: str, index: int) -> int:
    end = text.find("\n", index)
    return len(text) if end < 0 else end


def _flow(value: Any) -> str:
    return yaml.safe_dump(value, default_flow_style=True, width=math.inf, sort_keys=False).removesuffix("...\n").strip()
