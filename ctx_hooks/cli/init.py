"""`ctx-hooks init CONFIG`: add the plugin to a proxy configuration; the changes are shown first.

The file is edited as text at the positions of its YAML nodes, so that comments and layout stay. The edited text is parsed
again: if it does not say what it should, nothing is written.
"""

from __future__ import annotations

import difflib
import math
from codecs import BOM_UTF8
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ctx_hooks.cli.configuration import configuration_of
from ctx_hooks.cli.files import config_of, read_text, yaml_of
from ctx_hooks.cli.terminal import CommandError, as_json, confirmed, print_json, print_text
from ctx_hooks.policy.resolve import Caller

if TYPE_CHECKING:
    from collections.abc import Mapping

    from yaml import Node

PLUGIN = "ctx_hooks.proxy_handler_instance"
SETTINGS, CALLBACKS, OWN_SETTINGS = "litellm_settings", "callbacks", "callback_settings"


def run(*, config: Path, observe: bool, events: str | None, yes: bool) -> None:
    """Show the changes of a configuration, and write them if the user confirms.

    Raises:
        CommandError: the file cannot be read, written or edited, its settings enforce although they should observe, or
            nobody confirms.
    """
    text = read_text(config)
    before = config_of(text, config)
    encoding = "utf-8-sig" if config.read_bytes().startswith(BOM_UTF8) else "utf-8"
    line_end = "\r\n" if text.count("\r\n") == text.count("\n") > 0 else "\n"
    text = text.replace(line_end, "\n")
    for section in (SETTINGS, OWN_SETTINGS):
        if not isinstance(before.get(section) or {}, dict):
            raise CommandError(f"{config}: `{section}` has to be a mapping")
    wanted = _wanted(config, before, observe=observe, events=events)
    changed = text
    if wanted != before:
        changed = _text_with(text, before, wanted)
        if _read(changed) != wanted:
            raise CommandError(f"{config}: its layout is one that this command cannot edit; see docs/index.md, step 2")
    old, new = text.splitlines(keepends=True), changed.splitlines(keepends=True)
    difference = "".join(difflib.unified_diff(old, new, str(config), str(config)))
    if not as_json():
        print_text(difference.rstrip("\n") or f"{config}: nothing to change")
    is_written = bool(difference) and (yes or (not as_json() and confirmed(f"Write {config}?")))
    if is_written:
        # In place: a container's mounted file cannot be replaced.
        config.write_bytes(changed.replace("\n", line_end).encode(encoding))
    if as_json():
        print_json({"config": str(config), "difference": difference, "written": is_written})
    elif is_written:
        print_text(f"Written. Next: ctx-hooks check {config}")
        if events and not Path(events).is_dir():
            print_text(f"Nothing is recorded until the folder {events} exists where the proxy runs; it does not exist here.")


def _wanted(path: Path, before: Mapping[str, Any], *, observe: bool, events: str | None) -> dict[str, Any]:
    """Return a configuration with the plugin; raises CommandError if its own settings are not the requested ones."""
    wanted = with_plugin(before, observe=observe, events=events)
    read = configuration_of(wanted)
    everybody = read.policies.resolve(Caller())
    if observe and everybody.policy.mode == "enforce":
        raise CommandError(f"{path}: its `{OWN_SETTINGS}.ctx_hooks` enforces; write `mode: observe` under its `defaults`")
    if events and (read.settings.events is None or read.settings.events.path != events):
        raise CommandError(f"{path}: write `events: {{path: {events}}}` under its `{OWN_SETTINGS}.ctx_hooks`")
    return wanted


def with_plugin(config: Mapping[str, Any], *, observe: bool, events: str | None = None) -> dict[str, Any]:
    """Return a configuration with the plugin among its callbacks, and the requested settings if it has none."""
    names, own = _callbacks(config), config.get(OWN_SETTINGS) or {}
    settings = config.get(SETTINGS)
    if PLUGIN not in names:
        settings = {**(settings or {}), CALLBACKS: [*names, PLUGIN]}
    asked: dict[str, Any] = {"defaults": {"mode": "observe"}} if observe else {}
    asked |= {"events": {"path": events}} if events else {}
    added = {OWN_SETTINGS: {**own, "ctx_hooks": asked}} if asked and "ctx_hooks" not in own else {}
    return {**config, SETTINGS: settings, **added}


def _callbacks(config: Mapping[str, Any]) -> list[Any]:
    """Return the callbacks of a configuration; LiteLLM takes a list of names, or one name."""
    found = (config.get(SETTINGS) or {}).get(CALLBACKS)
    return found if isinstance(found, list) else [] if found is None else [found]


def _text_with(text: str, before: dict[str, Any], wanted: dict[str, Any]) -> str:
    import yaml  # noqa: PLC0415 - not for --help

    if before.get(SETTINGS) != wanted.get(SETTINGS):
        found = _entry(text, SETTINGS, CALLBACKS)
        text = _added(text, SETTINGS, CALLBACKS, f'["{PLUGIN}"]') if found is None else _appended(text, found[1])
    if before.get(OWN_SETTINGS) != wanted.get(OWN_SETTINGS):
        own = yaml.safe_dump(wanted[OWN_SETTINGS]["ctx_hooks"], default_flow_style=True, width=math.inf, sort_keys=False)
        text = _added(text, OWN_SETTINGS, "ctx_hooks", own.strip())
    return text


def _added(text: str, section: str, key: str, value: str) -> str:
    """Return a text whose section has one more entry, on the line after the section's name."""
    found = _entry(text, section)
    if found is None:
        return f"{text}{'' if text.endswith(chr(10)) or not text else chr(10)}\n{section}:\n  {key}: {value}\n"
    name, node = found
    if getattr(node, "flow_style", False):
        at, rest = node.start_mark.index + 1, ", " if node.value else ""
        return f"{text[:at]}{key}: {value}{rest}{text[at:]}"
    first = node.value[0][0] if isinstance(node.value, list) else None
    line_end = text.find("\n", name.end_mark.index)
    at = len(text) if line_end < 0 else line_end
    indent = first.start_mark.column if first is not None else name.start_mark.column + 2
    return f"{text[:at]}\n{' ' * indent}{key}: {value}{text[at:]}"


def _appended(text: str, node: Node) -> str:
    """Return a text whose list of callbacks, or its one name, has the plugin after the others."""
    start, end = node.start_mark.index, node.end_mark.index
    if not isinstance(node.value, list):
        name = "" if node.tag.endswith(":null") else f"{text[start:end]}, "
        return f'{text[:start]}{"" if text[start - 1].isspace() else " "}[{name}"{PLUGIN}"]{text[end:]}'
    if getattr(node, "flow_style", False):
        inside = text[start + 1 : end - 1].rstrip()
        comma = ", " if inside and not inside.endswith(",") else ""
        return f'{text[: start + 1]}{inside}{comma}"{PLUGIN}"{text[end - 1 :]}'
    last = text.find("\n", node.value[-1].end_mark.index)
    at = len(text) if last < 0 else last
    return f"{text[:at]}\n{' ' * node.start_mark.column}- {PLUGIN}{text[at:]}"


def _entry(text: str, *path: str) -> tuple[Node, Any] | None:
    """Return the nodes of a key and of its value at a path of keys, None if a mapping has no such key."""
    import yaml  # noqa: PLC0415 - not for --help

    node, found = yaml.compose(text, Loader=yaml.SafeLoader), None
    for key in path:
        entries = node.value if node is not None and isinstance(node.value, list) else []
        found = next((e for e in entries if isinstance(e, tuple) and e[0].value == key), None)
        if found is None:
            return None
        node = found[1]
    return found


def _read(text: str) -> Any:
    try:
        return yaml_of(text) or {}
    except ValueError:
        return None
