"""Read the input files of commands: an unreadable file is reported in one line, with its path."""

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from ctx_hooks.cli.terminal import CommandError
from ctx_hooks.formats import ANTHROPIC, CHAT, GEMINI, RESPONSES, Format
from ctx_hooks.formats.fields import mapping_or_empty

STDIN = Path("-")


def read_text(path: Path) -> str:
    """Return the text of a file, `-` for standard input; raises CommandError, or OSError, if it cannot be read."""
    try:
        data = sys.stdin.buffer.read() if path == STDIN else path.read_bytes()
        return data.decode("utf-8-sig")
    except FileNotFoundError:
        raise CommandError(f"{path}: there is no such file") from None
    except UnicodeDecodeError:
        raise CommandError(f"{path}: not a text file in UTF-8") from None


def read_json(path: Path) -> Any:
    """Return the JSON document of a file; raises CommandError if it cannot be read, or contains no JSON."""
    try:
        return json.loads(read_text(path))
    except ValueError as error:  # also for a number of too many digits
        raise CommandError(f"{path}: not JSON: {error}") from None
    except RecursionError:
        raise CommandError(f"{path}: nested too deeply") from None


def config_of(text: str, path: Path) -> dict[str, Any]:
    """Return the proxy configuration of a file's text; raises CommandError if it is not a mapping in YAML."""
    try:
        config = yaml_of(text) or {}
    except ValueError as error:
        raise CommandError(f"{path}: {error}") from None
    if not isinstance(config, dict) or {"messages", "input", "contents"} & config.keys():
        raise CommandError(f"{path}: a proxy configuration is expected, with keys such as `model_list`")
    return config


def repeated_keys(text: str) -> Iterator[str]:
    """Yield a line for each section of a YAML text, and each key in one, that is written more than once."""

    def entries(node: Any) -> list[Any]:
        return node.value if isinstance(node, yaml.MappingNode) else []

    root = yaml.compose(text, Loader=yaml.SafeLoader)
    for path, node in [("", root), *((f"{key.value}.", value) for key, value in entries(root))]:
        lines: dict[str, list[int]] = {}
        for key, _ in entries(node):
            lines.setdefault(str(key.value), []).append(key.start_mark.line + 1)
        for name, places in lines.items():
            if len(places) > 1:
                yield f"{path}{name}: written in the lines {' and '.join(map(str, places))}; only the last one is read"


def yaml_of(text: str) -> Any:
    """Return the value of a YAML text; raises ValueError with the reason if it has none."""
    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, ValueError) as error:  # also for an invalid date
        raise ValueError(f"not YAML: {error}") from None
    except RecursionError:
        raise ValueError("nested too deeply") from None


ANTHROPIC_BLOCKS = frozenset({"tool_use", "tool_result", "thinking", "redacted_thinking"})


def format_of(body: Mapping[str, Any]) -> Format:
    """Return the format of a body with `contents`, `messages` or `input`; chat if nothing in its messages says otherwise."""
    if "contents" in body:
        return GEMINI
    if "messages" not in body:
        return RESPONSES
    tools = body.get("tools")
    if "system" in body or (isinstance(tools, list) and any("input_schema" in mapping_or_empty(t) for t in tools)):
        return ANTHROPIC
    messages = body["messages"] if isinstance(body["messages"], list) else []
    contents = (mapping_or_empty(m).get("content") for m in messages)
    kinds = {str(mapping_or_empty(b).get("type")) for c in contents if isinstance(c, list) for b in c}
    return CHAT if ANTHROPIC_BLOCKS.isdisjoint(kinds) else ANTHROPIC
