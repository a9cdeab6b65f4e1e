"""The files that commands are given: what cannot be read is told in a line, with its path."""

from __future__ import annotations

import glob
import json
import sys
from pathlib import Path
from typing import Any

from ctx_hooks.cli.terminal import CommandError

STDIN = Path("-")


def read_text(path: Path) -> str:
    """Return the text of a file, `-` for standard input.

    Raises:
        CommandError: It cannot be read, or is no text.

    """
    try:
        data = sys.stdin.buffer.read() if path == STDIN else path.read_bytes()
        return data.decode("utf-8-sig")
    except OSError as error:
        raise CommandError(f"{path}: {(error.strerror or str(error)).lower()}") from None
    except UnicodeDecodeError:
        raise CommandError(f"{path}: not a text file in UTF-8") from None


def read_json(path: Path) -> Any:
    """Return the JSON document of a file.

    Raises:
        CommandError: It cannot be read, or holds no JSON.

    """
    try:
        return json.loads(read_text(path))
    except ValueError as error:  # of a number of too many digits as well
        raise CommandError(f"{path}: not JSON: {error}") from None
    except RecursionError:
        raise CommandError(f"{path}: nested too deeply") from None


def read_config(path: Path) -> dict[str, Any]:
    """Return a proxy configuration.

    Raises:
        CommandError: It cannot be read, or is not a mapping in YAML.

    """
    try:
        config = yaml_of(read_text(path)) or {}
    except ValueError as error:
        raise CommandError(f"{path}: {error}") from None
    if not isinstance(config, dict) or {"messages", "input", "contents"} & config.keys():
        raise CommandError(f"{path}: a proxy configuration is expected, with keys such as `model_list`")
    return config


def yaml_of(text: str) -> Any:
    """Return the value of a YAML text; raises ValueError, which says why, where it has none."""
    import yaml  # noqa: PLC0415 - not for --help

    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, ValueError) as error:  # of a date that is none as well
        raise ValueError(f"not YAML: {error}") from None
    except RecursionError:
        raise ValueError("nested too deeply") from None


def paths_of(name: str) -> list[Path]:
    """Return what a path or a pattern names.

    Raises:
        CommandError: That is nothing, or cannot be looked at.

    """
    try:
        found = [name] if Path(name).exists() else glob.glob(name, recursive=True)  # noqa: PTH207 - it takes no absolute one
    except OSError as error:
        raise CommandError(f"{name}: {(error.strerror or str(error)).lower()}") from None
    if not found:
        raise CommandError(f"{name}: there is no such file or folder")
    return [Path(path) for path in found]
