"""The tool by which a model asks for removed text: its definition, when it is offered, and the results of its calls."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel, Field, ValidationError

from ctx_hooks.addons.retrieval.hidden_calls import FORMS
from ctx_hooks.addons.retrieval.hidden_calls.answers import is_hidden
from ctx_hooks.attempts.request import Request
from ctx_hooks.compaction.selection import bm25
from ctx_hooks.conversation.placeholders import RETRIEVE
from ctx_hooks.formats import ANTHROPIC, CHAT, Format
from ctx_hooks.formats.fields import listed, mapping_or_empty
from ctx_hooks.policy.settings import Policy
from ctx_hooks.texts.json_text import parsed
from ctx_hooks.texts.pieces import utf8_bytes

PAGE_CHARS = 8_000
"""Of the result of one call: 2,000 tokens, as much as the package appends by itself."""
NOT_AVAILABLE = "not available"
"""The answer to an unknown, an expired and another tenant's handle: the same, so that it reveals nothing."""
NO_ROOM = "the context window has no room for this text now: ask for fewer texts at once"
LEAST_PAGE_BYTES = 200
"""Less says too little to be worth its frame."""
LONGEST_LINE_CHARS = 400
"""A longer line is matched in pieces: if a text were one line, a query would return all or nothing."""
_DESCRIPTION = (
    "Returns text that was removed from this conversation to save context. A line that begins with [ctx_hooks] names the "
    "handle. With `query`, the lines that match it best come first; without, the text from character `offset` on."
)
_PARAMETERS: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "handle": {"type": "string", "description": f"As in {RETRIEVE}(HANDLE)."},
        "query": {"type": "string", "description": "Words of what is looked for."},
        "offset": {"type": "integer", "minimum": 0, "default": 0},
    },
    "required": ["handle"],
}


def may_be_offered(request: Request, policy: Policy) -> bool:
    """Whether the tool is added to a request with removed text."""
    fields, is_items = request.fields, request.wire.has_items
    if not policy.retrieval or request.format not in FORMS:
        return False
    # OpenAI's Responses API keeps every answer unless `store` is false: a later request could continue it, with our call
    # unanswered. `/cursor/chat/completions` streams its answers in chat's chunks.
    url = str(mapping_or_empty(fields.get("proxy_server_request")).get("url")).split("?", 1)[0]
    is_kept = fields.get("store") is not False or request.continues_stored_history
    if is_items and (is_kept or url.endswith("/chat/completions")):
        return False
    # Without tools, later requests would have to define the tool too, for its earlier calls. LiteLLM answers the calls of
    # MCP servers' tools itself, and ours with an error.
    tools = listed(fields.get("tools"))
    if not tools or is_among_tools(request) or "mcp" in map(_kind, tools):
        return False
    # Each of several answers may ask for other texts. Of JSON documents the model may write one beside its call and another
    # after it. A client that forces a call would have the model call only ours, again and again.
    within = [holder.get("format") for holder in map(fields.get, ("text", "output_config")) if isinstance(holder, dict)]
    forms = [fields.get("response_format"), fields.get("output_format"), *within]
    is_one_text = fields.get("n") in (None, 1) and all(_kind(form) in ("", "text") for form in forms)
    return is_one_text and _kind(fields.get("tool_choice")) in ("auto", "none", "")


def is_among_tools(request: Request) -> bool:
    """Whether a request has a tool of that name: the client's, or ours if it was offered before."""
    return any(is_hidden(mapping_or_empty(tool)) for tool in listed(request.fields.get("tools")))


def definition(fmt: Format) -> Mapping[str, Any]:
    """Return the tool's definition in a format that can hide its calls."""
    named = {"name": RETRIEVE, "description": _DESCRIPTION}
    if fmt == ANTHROPIC:
        return {**named, "input_schema": _PARAMETERS}
    function = {**named, "parameters": _PARAMETERS}
    if fmt == CHAT:
        return {"type": "function", "function": function}
    return {"type": "function", **function, "strict": False}  # OpenAI's default is true, which allows of no optional field


class Asked(BaseModel):
    """What a call asks for: the lines of a text that match the query, or else a page; the handle "" names no text."""

    handle: str = ""
    query: str = ""
    offset: int = Field(default=0, ge=0)


def asked_of(arguments: str) -> Asked:
    """Read the arguments of a call: null is none (models with strict schemas write it), and wrong ones name no text."""
    given = mapping_or_empty(parsed(arguments))
    try:
        return Asked.model_validate({name: value for name, value in given.items() if value is not None})
    except ValidationError:
        return Asked()


def page_of(text: str, asked: Asked, most_bytes: float = math.inf) -> str:
    """Return the requested part of a text, PAGE_CHARS and `most_bytes` at most, below a line that names the part.

    >>> print(page_of("one two three", Asked(offset=4)))
    [characters 4 to 13 of 13]
    two three
    >>> print(page_of("the port is 8080", Asked(query="port")))
    [the lines that match best, of 16 characters; with their offsets]
    0: the port is 8080
    """
    bytes_per_char = utf8_bytes(text) / max(1, len(text))
    limit_chars = int(min(PAGE_CHARS, most_bytes / max(1, bytes_per_char)))
    less = "; the context window has no room for more at once" * (limit_chars < min(PAGE_CHARS, len(text)))
    if asked.query.strip():
        lines = list(_best_lines(text, asked.query, limit_chars))
        heading = "the lines that match best" if lines else "no line matches"
        return "\n".join((f"[{heading}, of {len(text)} characters; with their offsets{less}]", *lines))
    start = min(asked.offset, len(text))
    end = min(len(text), start + limit_chars)
    return f"[characters {start} to {end} of {len(text)}{less}]\n{text[start:end]}"


def _best_lines(text: str, query: str, limit_chars: int) -> Iterator[str]:
    """Yield the lines that match best after their offsets; a long line counts in pieces."""
    found, start = [], 0
    for line in text.splitlines(keepends=True):
        pieces = range(0, len(line), LONGEST_LINE_CHARS)
        found += [(start + at, line[at : at + LONGEST_LINE_CHARS].strip()) for at in pieces]
        start += len(line)
    scores = bm25.rank(query, [line for _, line in found])
    for n in sorted(range(len(found)), key=lambda n: -scores[n]):
        line = f"{found[n][0]}: {found[n][1]}"
        limit_chars -= len(line) + 1
        if scores[n] <= 0 or limit_chars < 0:
            return
        yield line


def _kind(value: Any) -> Any:
    """Return the kind of a tool, or the value of a tool choice, "" if there is none."""
    return (value.get("type") if isinstance(value, dict) else value) or ""
