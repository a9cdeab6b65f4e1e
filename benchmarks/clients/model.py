"""The model of the sessions: it reads one file after another through the client's own tool, then says that it is done."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tools import TEXT, arguments, example, reader

from ctx_hooks.testing.behaviour import Call, Reply
from ctx_hooks.testing.rules import Format

CALLS = 25
"""As many as take a session of results of 4,000 tokens well past a window of 60,000."""
RETRIEVE = "ctx_retrieve"
HANDLE = re.compile(rf"{RETRIEVE}\(([a-z2-7]{{12}})\)")
SUMMARY_WORDS = ("summar", "checkpoint")
"""What stands in a client's request for a summary of its session, which may offer the tools too."""
RESULT_SIGNS = ('"tool_result"', '"functionResponse"', '"function_response"')
"""What stands in a user's message that carries tool results, in the formats that have no role for these."""
DONE = "All files are read."
SAY_DONE = f"Answer with exactly: {DONE}"
"""How a client that calls no tools asks for the end."""
PROMPT = (
    f"Read every file from file_01.txt to file_{CALLS:02}.txt in this folder, one after another, and say when you are done."
)


def file_name(number: int) -> str:
    """Return the name of the session's nth file, from 1."""
    return f"file_{number:02}.txt"


class Model:
    """Answers the requests of one session after another; a script of the fake provider.

    A request that offers no tool to read a file, or asks for a summary, is the client's own business beside the session: it
    gets a short answer in the form it asks for, and is no step of the session.

    Args:
        retrieves: whether it asks once in each session for something that was cut, as soon as it is offered the tool.
    """

    def __init__(self, *, retrieves: bool = False) -> None:
        self._folder = Path()
        self._retrieves = retrieves
        self.calls = 0
        self.retrieved = 0
        self.done = False

    def begin(self, folder: Path) -> None:
        """Start a session whose files are in `folder`."""
        self._folder, self.calls, self.retrieved, self.done = folder, 0, 0, False

    def __call__(self, fmt: Format, payload: Mapping[str, Any], before: int) -> Reply:
        """Return the next answer; how many were given `before` is not asked, since tools may change within a session."""
        del fmt, before
        tool = reader(payload)
        if tool is None or asks_for_summary(payload):
            return Reply(self._beside(payload))
        if self._retrieves and not self.retrieved and RETRIEVE in json.dumps(payload.get("tools")):
            self.retrieved += 1
            handle = HANDLE.findall(json.dumps(payload))[-1]
            return Reply("Let me look.", calls=[Call(RETRIEVE, {"handle": handle})])
        if self.calls == CALLS:
            self.done = True
            return Reply(DONE)
        self.calls += 1
        return Reply(calls=[Call(tool.name, arguments(tool, str(self._folder / file_name(self.calls))))])

    def _beside(self, payload: Mapping[str, Any]) -> str:
        schema = _answer_schema(payload)
        if schema is not None:
            return json.dumps(example(schema))
        if SAY_DONE in json.dumps(payload.get("messages")):
            self.done = True
            return DONE
        return TEXT


def asks_for_summary(payload: Mapping[str, Any]) -> bool:
    """Say whether the last message is a client's instruction to summarise: no user's, no tool result and no summary."""
    items = payload.get("messages") or payload.get("input") or payload.get("contents")
    last = items[-1] if isinstance(items, list) and items else {}
    text = json.dumps(last)
    if last.get("role") != "user" or any(sign in text for sign in (PROMPT, TEXT, *RESULT_SIGNS)):
        return False
    return any(word in text.lower() for word in SUMMARY_WORDS)


def _answer_schema(payload: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the JSON schema that the answer has to follow, as the four formats name it."""
    places = (
        ("response_format", "json_schema", "schema"),
        ("output_format", "schema"),
        ("output_config", "format", "schema"),
        ("text", "format", "schema"),
        ("generationConfig", "responseJsonSchema"),
        ("generationConfig", "responseSchema"),
    )
    for place in places:
        found: Any = payload
        for name in place:
            found = found.get(name) if isinstance(found, Mapping) else None
        if isinstance(found, Mapping):
            return found
    return None
