"""The texts of tool calls: the JSON arguments, what they name, and the results that answer them."""

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

import orjson

from ctx_hooks.conversation import placeholders
from ctx_hooks.conversation.model import Message, Text, ToolCall, ToolResult
from ctx_hooks.texts.json_text import parsed

DIGEST_CHARS = 80
"""One terminal line: a path, or the beginning of a command."""
PATH_KEYS = ("file_path", "filePath", "path", "filename", "file", "notebook_path", "target_file", "filepath", "uri")
"""Keys for a file in the file tools of Claude Code, pi, opencode, Cline, Codex, Cursor, Gemini CLI and nanobot."""
COMMAND_KEYS = ("command", "cmd", "script", "code", "query", "pattern", "url")
"""Keys for a command or a query in their shell, search and web tools."""
TOOL_KEYS = ("tool_name", "toolName", "tool", "function", "method", "name")
"""Keys for the tool that a call of a gateway of tools names, beside one object: that tool's arguments."""
MOST_RESULTS = 64
"""A call is looked for in so many messages before its result."""


def digest(arguments: str) -> str:
    """Return at most DIGEST_CHARS characters that identify this call: a path or command before the rest."""
    tool, value = inner_call(parsed(arguments))
    if isinstance(value, dict):
        first = [v for v in (*_values(value, PATH_KEYS), *_values(value, COMMAND_KEYS)) if v]
        text = " ".join(first) or orjson.dumps(value).decode()
    else:
        text = arguments
    return beginning(f"{tool} {text}", DIGEST_CHARS)


def inner_call(value: Any) -> tuple[str, Any]:
    """Return the tool that the arguments of a gateway of tools name, and its arguments before the gateway's own.

    "" and `value` for other arguments.
    """
    if isinstance(value, dict):
        inner = [v for v in value.values() if isinstance(v, dict)]
        key = next((key for key in TOOL_KEYS if isinstance(value.get(key), str)), "")
        if len(inner) == 1 and key:
            beside = {k: v for k, v in value.items() if k != key and v is not inner[0]}
            return value[key], inner[0] | {k: v for k, v in beside.items() if k not in inner[0]}
    return "", value


def beginning(text: str, chars: int) -> str:
    """Return a text in one line of at most `chars` characters; a longer one is its beginning and a mark."""
    line = " ".join(text[: 4 * chars].split())
    return line if len(line) <= chars else line[: chars - 1] + placeholders.GAP


def paths(values: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the files that arguments name."""
    return tuple(_values(values, PATH_KEYS))


def _values(value: Mapping[str, Any], keys: tuple[str, ...]) -> Iterator[str]:
    for key in keys:
        found = value.get(key)
        if isinstance(found, str):
            yield found
        elif isinstance(found, list) and found and all(isinstance(x, str) for x in found):
            yield " ".join(found)


def with_text(result: ToolResult, text: str) -> ToolResult:
    """Return the cut result: `text` replaces its first text, its other texts go, and everything else stays."""
    first = next((p for p in result.parts if isinstance(p, Text)), None)
    kept = tuple(p for p in result.parts if not isinstance(p, Text))
    parts = (first if first is not None and first.text == text else Text(text, first.raw if first else None), *kept)
    return ToolResult(result.call_id, parts, result.is_error, result.raw, came_text=result.original_text)


def call_of(message_at: Callable[[int], Message], i: int, result: ToolResult) -> ToolCall | None:
    """Return the call of a result in message `i`: the nearest earlier one with its id; None if it is not near."""
    near = range(i - 1, max(-1, i - 1 - MOST_RESULTS), -1)
    return next((call for j in near for call in message_at(j).calls if call.id == result.call_id), None)


def call_names(messages: Collection[Message]) -> dict[tuple[int, int], tuple[str, str]]:
    """Return name and arguments of each result's call, the nearest earlier one of its id, by (message index, part index)."""
    open_calls: dict[str, tuple[str, str]] = {}
    found = {}
    for i, message in enumerate(messages):
        for k, part in enumerate(message.parts):
            if isinstance(part, ToolResult):
                found[i, k] = open_calls.get(part.call_id, ("", ""))
            elif isinstance(part, ToolCall):
                open_calls[part.id] = (part.name, part.arguments)
    return found
