"""The tools that a request offers, and valid arguments to read a file with one of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

READERS = (
    "read_file",
    "Read",
    "read",
    "read_files",
    "exec_command",
    "shell_command",
    "shell",
    "bash",
    "Bash",
    "run_shell_command",
)
"""What clients call their tool to read a file, or to run the command that does; the first that is offered is used."""
PATHS = frozenset({"path", "file_path", "filePath", "absolute_path"})
COMMANDS = frozenset({"command", "cmd"})
TEXT = "Read files"
"""A text wherever one is asked for: a description, a title."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool that the model may call, with the JSON schema of its arguments."""

    name: str
    schema: Mapping[str, Any]


def reader(payload: Mapping[str, Any]) -> Tool | None:
    """Return the tool that reads a file; None for a request that offers none."""
    by_name = {tool.name: tool for tool in _offered(payload)}
    return next((by_name[name] for name in READERS if name in by_name), None)


def _offered(payload: Mapping[str, Any]) -> Iterator[Tool]:
    """Yield the tools of a request of any format."""
    for tool in payload.get("tools") or []:
        listed = tool.get("functionDeclarations") or tool.get("function_declarations")
        for function in listed or [tool.get("function") or tool]:
            schemas = ("parameters", "input_schema", "parametersJsonSchema", "parameters_json_schema")
            schema = next((function[s] for s in schemas if isinstance(function.get(s), Mapping)), None)
            if schema is not None and "name" in function:
                yield Tool(function["name"], schema)


def arguments(tool: Tool, path: str) -> dict[str, Any]:
    """Return the arguments with which the tool reads the file at `path`: the required ones, and where the path goes."""
    return _object(tool.schema, path)


def example(schema: Mapping[str, Any]) -> Any:
    """Return a value of a JSON schema."""
    return _value("", schema, "")


def _object(schema: Mapping[str, Any], path: str) -> dict[str, Any]:
    wanted = {*(schema.get("required") or []), *PATHS, *COMMANDS}
    properties = schema.get("properties") or {}
    return {name: _value(name, s, path) for name, s in properties.items() if name in wanted}


def _value(name: str, schema: Mapping[str, Any], path: str) -> Any:
    if schema.get("enum"):
        return schema["enum"][0]
    choices = [s for s in schema.get("anyOf") or schema.get("oneOf") or [] if s.get("type") != "null"]
    if choices:
        return _value(name, choices[0], path)
    kind = schema.get("type") or "string"
    kind = str(next((k for k in kind if k != "null"), "string") if isinstance(kind, list) else kind).lower()
    if kind == "object":
        return _object(schema, path)
    if kind == "array":
        if name in COMMANDS:
            return ["cat", path]
        items = schema.get("items") or {}
        return [_object(items, path)] if items.get("type") == "object" else []
    if kind in {"integer", "number"}:
        return schema.get("minimum", 1)
    if kind == "boolean":
        return False
    return path if name in PATHS else f"cat {path}" if name in COMMANDS else TEXT
