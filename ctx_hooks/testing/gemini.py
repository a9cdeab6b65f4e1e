"""Google's `generateContent` and `streamGenerateContent`: addresses and message rules."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

ROLES = frozenset({"user", "model", "function"})
DATA = frozenset(
    {
        *("text", "functionCall", "function_call", "functionResponse", "function_response", "inlineData", "inline_data"),
        *("fileData", "file_data", "executableCode", "executable_code", "codeExecutionResult", "code_execution_result"),
    }
)
"""Each part has one of these fields."""
SIGNATURES = ("thoughtSignature", "thought_signature")
SIGNATURE_PREFIX = "fake-sig-"
UNANSWERED = (
    "Please ensure that function response turn comes immediately after a function call turn. And the number of function "
    "response parts should be equal to number of function call parts of the function call turn."
)


def addressed(payload: Mapping[str, Any], *, stream: bool) -> tuple[str, dict[str, Any]]:
    """Return the model and method from the path of a request, and its body, which does not name them."""
    method = "streamGenerateContent?alt=sse" if stream else "generateContent"
    body = {name: value for name, value in payload.items() if name not in ("model", "stream")}
    return f"{payload['model']}:{method}", body


def violations(payload: Mapping[str, Any]) -> Iterator[str]:
    """Yield Google's text for every rule of contents that the payload breaks."""
    contents = payload.get("contents")
    if not isinstance(contents, list) or not contents:
        yield "* GenerateContentRequest.contents: contents is not specified"
        return
    if contents[0].get("role") == "model":
        yield "Please ensure that multiturn requests alternate between user and model."
    asked: list[Mapping[str, Any]] = []
    for n, content in enumerate(contents):
        if content.get("role", "user") not in ROLES:
            yield "Please use a valid role: user, model."
        parts = content.get("parts") or []
        if not parts:
            yield f"* GenerateContentRequest.contents[{n}].parts: contents.parts must not be empty."
        for part in parts:
            yield from _part_violations(part, f"GenerateContentRequest.contents[{n}].parts")
        calls = _all(parts, "function_call")
        if calls and (n == 0 or contents[n - 1].get("role") == "model"):
            yield "Please ensure that function call turn comes immediately after a user turn or after a function response turn."
        if not _answers(asked, _all(parts, "function_response")):
            yield UNANSWERED
        asked = calls
    if asked:
        yield UNANSWERED
    yield from _unsigned(contents)


def _part_violations(part: Mapping[str, Any], place: str) -> Iterator[str]:
    signature = _signature(part)
    if not set(part) & DATA:
        yield f"* {place}.data: required oneof field 'data' must have one initialized field"
    if part.get("text") == "" and not signature:
        yield "Unable to submit request because it must have a text parameter. Add a text parameter and try again."
    if signature.startswith(SIGNATURE_PREFIX) and signature != sign(part):
        yield "Thought signature is not valid."


def sign(part: Mapping[str, Any]) -> str:
    """Return this provider's signature of a part, which shows whether the part was altered."""
    signed = {name: value for name, value in part.items() if name not in SIGNATURES}
    return SIGNATURE_PREFIX + hashlib.sha256(json.dumps(signed, sort_keys=True).encode()).hexdigest()[:16]


def _signature(part: Mapping[str, Any]) -> str:
    return next((str(part[name]) for name in SIGNATURES if part.get(name)), "")


def _answers(calls: list[Mapping[str, Any]], responses: list[Mapping[str, Any]]) -> bool:
    """Whether there are as many responses as calls, with the same ids if all of them have ids."""
    ids = [sorted(str(x["id"]) for x in listed if x.get("id")) for listed in (calls, responses)]
    return len(calls) == len(responses) and (ids[0] == ids[1] or any(len(found) < len(calls) for found in ids))


def _unsigned(contents: list[Mapping[str, Any]]) -> Iterator[str]:
    """Yield Gemini 3's error for each step of the current turn whose first call has lost its signature.

    It signs the first call of each of its steps. So if any call of the request is signed, it signed these.
    """
    steps = [[p for p in content.get("parts") or [] if _all([p], "function_call")] for content in contents]
    if not any(_signature(part) for step in steps for part in step):
        return
    asked = [n for n, c in enumerate(contents) if c.get("role") == "user" and not _all(c["parts"], "function_response")]
    for n, step in enumerate(steps):
        if step and n > max(asked, default=-1) and not _signature(step[0]):
            yield f"Function call is missing a thought_signature in functionCall parts. Content position {n}."


def _all(parts: list[Mapping[str, Any]], kind: str) -> list[Mapping[str, Any]]:
    """Return the values in the parts of a kind; Google reads both spellings of a name."""
    head, tail = kind.split("_")
    return [found for part in parts if (found := part.get(kind, part.get(head + tail.capitalize()))) is not None]
