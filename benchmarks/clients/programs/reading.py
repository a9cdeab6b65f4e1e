"""The one tool of the sessions that an SDK holds."""

from pathlib import Path

NAME = "read_file"
DESCRIPTION = "Read a file and return its text."
SCHEMA = {
    "type": "object",
    "properties": {"path": {"type": "string"}},
    "required": ["path"],
    "additionalProperties": False,
}


def read_file(path: str) -> str:
    """Read a file and return its text."""
    return Path(path).read_text(encoding="utf-8")
