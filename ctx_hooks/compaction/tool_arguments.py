"""The JSON arguments of tool calls: shortened where they are long, and what they say of files and commands."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import Any

import orjson

from ctx_hooks.conversation import placeholders
from ctx_hooks.conversation.cut_texts import Reference
from ctx_hooks.policy.settings import Language
from ctx_hooks.texts.json_text import parsed, strings

DIGEST_CHARS = 80
"""One line of a terminal: a path or the beginning of a command."""
HEAD_FRACTION = 0.8
"""What a call was about stands at the start of its arguments."""
PATH_KEYS = ("file_path", "path", "filename", "file", "notebook_path", "target_file", "filepath", "uri")
"""What the file tools of Claude Code, pi, opencode, Cline, Codex, Cursor, Gemini CLI and nanobot call a file."""
COMMAND_KEYS = ("command", "cmd", "script", "code", "query", "pattern")
"""What their shell and search tools call what is run or looked for."""


def _nowhere(text: str) -> None:
    """Return no reference to the whole of a text."""


def shortened(
    arguments: str, longest_chars: int, language: Language, reference: Callable[[str], Reference | None] = _nowhere
) -> str:
    """Return the arguments with every string value longer than `longest_chars` cut in its middle, all else to the letter.

    Each that is cut says where the whole of it is, as `reference` tells of its value. Arguments that are not JSON, and those
    that do not get shorter, come back as they are.
    """
    if len(arguments) <= longest_chars or not isinstance(parsed(arguments), (dict, list)):
        return arguments
    pieces = []
    ascii_only = arguments.isascii()
    for (between, string), (behind, _) in pairwise([*strings(arguments), ("", "")]):
        is_key = behind.lstrip().startswith(":")
        cut = (
            string
            if is_key or len(string) <= longest_chars
            else _cut(string, longest_chars, language, reference, ascii_only=ascii_only)
        )
        pieces += [between, cut]
    cut = "".join(pieces)
    return cut if len(cut) < len(arguments) else arguments


def digest(arguments: str) -> str:
    """Return what tells this call from another, in at most DIGEST_CHARS characters: a path or command before the rest."""
    value = parsed(arguments)
    if isinstance(value, dict):
        first = [v for v in (*_values(value, PATH_KEYS), *_values(value, COMMAND_KEYS)) if v]
        text = " ".join(first) or orjson.dumps(value).decode()
    else:
        text = arguments
    line = " ".join(text[: 4 * DIGEST_CHARS].split())
    return line if len(line) <= DIGEST_CHARS else line[: DIGEST_CHARS - 1] + placeholders.GAP


def paths(arguments: str) -> tuple[str, ...]:
    """Return the files that the arguments name."""
    value = parsed(arguments)
    return tuple(_values(value, PATH_KEYS)) if isinstance(value, dict) else ()


def commands(arguments: str) -> tuple[str, ...]:
    """Return the first line of every command that the arguments hold."""
    value = parsed(arguments)
    if not isinstance(value, dict):
        return ()
    return tuple(v.strip().split("\n", 1)[0][: 2 * DIGEST_CHARS] for v in _values(value, ("command", "cmd")) if v.strip())


def _values(value: Mapping[str, Any], keys: tuple[str, ...]) -> Iterator[str]:
    for key in keys:
        found = value.get(key)
        if isinstance(found, str):
            yield found
        elif isinstance(found, list) and found and all(isinstance(x, str) for x in found):
            yield " ".join(found)


def _cut(
    string: str, longest_chars: int, language: Language, reference: Callable[[str], Reference | None], *, ascii_only: bool
) -> str:
    """Return a JSON string with the middle of its value cut out, unless that is short enough or was cut before."""
    value: str = orjson.loads(string)
    if len(value) <= longest_chars or placeholders.MARK in value:
        return string
    head = int(longest_chars * HEAD_FRACTION)
    tail = longest_chars - head
    kept = f"{value[:head]}\n{placeholders.shortened(len(value), language, reference(value))}\n{value[-tail:]}"
    return json.dumps(kept, ensure_ascii=ascii_only)
