"""The JSON arguments of tool calls: shortened where they are long, and what they say of files and commands."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from ctx_hooks import notices
from ctx_hooks.policy.settings import Language

DIGEST_CHARS = 80
HEAD_FRACTION = 0.8
"""What a call was about stands at the start of its arguments."""
PATH_KEYS = ("file_path", "path", "filename", "file", "notebook_path", "target_file", "filepath", "uri")
COMMAND_KEYS = ("command", "cmd", "script", "code", "query", "pattern")

_KEY_AND_BLANK = re.compile(r'\{"[^"]*": ')
"""Arguments written with blanks are written so again: what stays of them stays to the letter."""


def parsed(arguments: str) -> Any:
    """Return the arguments as JSON value, or None when they are not JSON."""
    try:
        return json.loads(arguments)
    except (ValueError, RecursionError):
        return None


def shortened(arguments: str, longest_chars: int, language: Language) -> str:
    """Return the arguments with every string longer than `longest_chars` cut in its middle, still JSON in its own layout.

    Arguments that are not JSON, and those that do not get shorter, come back as they are.
    """
    if len(arguments) <= longest_chars:
        return arguments
    value = parsed(arguments)
    if not isinstance(value, (Mapping, list)):
        return arguments
    spaced = _KEY_AND_BLANK.match(arguments) is not None
    cut = json.dumps(
        _cut(value, longest_chars, language),
        ensure_ascii=arguments.isascii(),
        separators=(", ", ": ") if spaced else (",", ":"),
    )
    return cut if len(cut) < len(arguments) else arguments


def digest(arguments: str) -> str:
    """Return what tells this call from another, in at most DIGEST_CHARS characters: a path or command before the rest."""
    value = parsed(arguments)
    if isinstance(value, Mapping):
        first = [v for v in (*_values(value, PATH_KEYS), *_values(value, COMMAND_KEYS)) if v]
        text = " ".join(first) or json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    else:
        text = arguments
    line = " ".join(text[: 4 * DIGEST_CHARS].split())
    return line if len(line) <= DIGEST_CHARS else line[: DIGEST_CHARS - 1] + notices.GAP


def paths(arguments: str) -> tuple[str, ...]:
    """Return the files that the arguments name."""
    value = parsed(arguments)
    return tuple(_values(value, PATH_KEYS)) if isinstance(value, Mapping) else ()


def commands(arguments: str) -> tuple[str, ...]:
    """Return the first line of every command that the arguments hold."""
    value = parsed(arguments)
    if not isinstance(value, Mapping):
        return ()
    return tuple(v.strip().split("\n", 1)[0][: 2 * DIGEST_CHARS] for v in _values(value, ("command", "cmd")) if v.strip())


def _values(value: Mapping[str, Any], keys: tuple[str, ...]) -> Iterator[str]:
    for key in keys:
        found = value.get(key)
        if isinstance(found, str):
            yield found
        elif isinstance(found, list) and found and all(isinstance(x, str) for x in found):
            yield " ".join(found)


def _cut(value: Any, longest_chars: int, language: Language) -> Any:
    if isinstance(value, str) and len(value) > longest_chars and notices.MARK not in value:
        head = int(longest_chars * HEAD_FRACTION)
        tail = longest_chars - head
        return f"{value[:head]}\n{notices.shortened(len(value), language)}\n{value[-tail:]}"
    if isinstance(value, Mapping):
        return {k: _cut(v, longest_chars, language) for k, v in value.items()}
    if isinstance(value, list):
        return [_cut(v, longest_chars, language) for v in value]
    return value
