"""The JSON arguments of tool calls: shortened where they are long, and what they say of files and commands."""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import orjson

from ctx_hooks.conversation import placeholders
from ctx_hooks.conversation.cut_texts import Reference
from ctx_hooks.policy.settings import Language
from ctx_hooks.texts.json_text import parsed, strings
from ctx_hooks.texts.pieces import head_end, tail_start

DIGEST_CHARS = 80
"""One line of a terminal: a path or the beginning of a command."""
HEAD_FRACTION = 0.8
"""What a call was about stands at the start of its arguments."""
PATH_KEYS = ("file_path", "filePath", "path", "filename", "file", "notebook_path", "target_file", "filepath", "uri")
"""What the file tools of Claude Code, pi, opencode, Cline, Codex, Cursor, Gemini CLI and nanobot call a file."""
COMMAND_KEYS = ("command", "cmd", "script", "code", "query", "pattern", "url")
"""What their shell, search and web tools call what is run or looked for."""


def shortened(arguments: str, longest_chars: int, language: Language, reference: Callable[[str], Reference | None]) -> str:
    """Return the arguments with every string value longer than `longest_chars` cut in its middle, all else to the letter.

    It keeps so many characters and says where the whole of it is, as `reference` tells of its value. Arguments that are not
    JSON, and those that do not get shorter, come back as they are.
    """
    if len(arguments) <= longest_chars or not isinstance(parsed(arguments), (dict, list)):
        return arguments
    head_chars = int(longest_chars * HEAD_FRACTION)
    pieces = []
    for between, string, is_key in strings(arguments):
        value = "" if is_key else _long_value(string, longest_chars)
        if not value:
            pieces += [between, string]
            continue
        head, tail = head_end(value, head_chars), tail_start(value, longest_chars - head_chars)
        placeholder = placeholders.shortened(len(value), language, reference(value))
        kept = f"{value[:head]}\n{placeholder}\n{value[tail:]}"
        pieces += [between, json.dumps(kept, ensure_ascii=arguments.isascii())]
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
    return beginning(text, DIGEST_CHARS)


def beginning(text: str, chars: int) -> str:
    """Return a text in one line, of a longer one the beginning with a mark behind it: at most `chars` characters."""
    line = " ".join(text[: 4 * chars].split())
    return line if len(line) <= chars else line[: chars - 1] + placeholders.GAP


def paths(arguments: str) -> tuple[str, ...]:
    """Return the files that the arguments name."""
    value = parsed(arguments)
    return tuple(_values(value, PATH_KEYS)) if isinstance(value, dict) else ()


def _values(value: Mapping[str, Any], keys: tuple[str, ...]) -> Iterator[str]:
    for key in keys:
        found = value.get(key)
        if isinstance(found, str):
            yield found
        elif isinstance(found, list) and found and all(isinstance(x, str) for x in found):
            yield " ".join(found)


def _long_value(string: str, longest_chars: int) -> str:
    """Return the value of a JSON string; "" where that is short enough or was cut before."""
    if len(string) <= longest_chars:
        return ""
    value: str = orjson.loads(string)
    return "" if len(value) <= longest_chars or placeholders.MARK in value else value
