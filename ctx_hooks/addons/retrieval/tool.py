"""The tool by which a model asks for what was cut: its definition, and which requests it is offered in."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

from ctx_hooks.addons.retrieval.hidden_calls import FORMS
from ctx_hooks.conversation.cut_texts import Retrievable
from ctx_hooks.conversation.placeholders import RETRIEVE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ctx_hooks.conversation.cut_texts import Handles
    from ctx_hooks.conversation.model import Format
    from ctx_hooks.policy.settings import Policy
    from ctx_hooks.request.request import Request

PAGE_CHARS = 8_000
"""What one call returns unless it asks for less or more: 2,000 tokens, as much as the package appends by itself."""
MOST_PAGE_CHARS = 40_000
"""10,000 tokens: a third of the smallest window that is not warned of."""
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
        "limit": {
            "type": "integer",
            "minimum": 1,
            "maximum": MOST_PAGE_CHARS,
            "default": PAGE_CHARS,
            "description": "Most characters.",
        },
    },
    "required": ["handle"],
}


def retrievable(request: Request, policy: Policy, handles: Handles) -> Retrievable | None:
    """Return how what is cut from a request can be had again; None where it is not archived."""
    settings = policy.archive_in_use
    if settings is None:
        return None
    offered = definition(request.format) if may_be_offered(request, policy) else None
    return Retrievable(handles, settings.retention_days, offered)


def may_be_offered(request: Request, policy: Policy) -> bool:
    """Whether the tool is added to a request from which something is cut.

    Not where the client has a tool of that name, nor where it has the model call a tool in any case: the model could then
    call only ours, again and again. Nor where calls cannot be hidden, or the provider keeps the answer. Nor beside
    tools of MCP servers: LiteLLM answers calls of its own there by itself, and ours with an error.
    """
    if not policy.retrieval or request.format not in FORMS or not can_hide_calls(request):
        return False
    if request.wire.has_items and _may_be_continued(request):
        return False
    tools = request.fields.get("tools") or ()
    if not isinstance(tools, (list, tuple)) or not (tools or policy.retrieval == "always"):
        return False
    if is_among_tools(request) or "mcp" in map(_kind, tools):
        return False
    return _kind(request.fields.get("tool_choice")) in ("auto", "none", "")


def can_hide_calls(request: Request) -> bool:
    """Whether what the model says before and behind a call of the tool can be one answer.

    Not where several answers are wanted, each of which may call for other texts; nor where the answer is to be one JSON
    document: the model may write one beside its call, and another behind it.
    """
    fields = request.fields
    within = [holder.get("format") for holder in map(fields.get, ("text", "output_config")) if isinstance(holder, dict)]
    forms = [fields.get("response_format"), fields.get("output_format"), *within]
    return fields.get("n") in (None, 1) and all(_kind(form) in ("", "text") for form in forms)


def is_among_tools(request: Request) -> bool:
    """Whether a request has a tool of that name: ours, where it was offered before, or the client's."""
    tools = request.fields.get("tools")
    return isinstance(tools, (list, tuple)) and RETRIEVE in map(_name, tools)


def tools_for_calls(request: Request) -> dict[str, Any]:
    """Return the field of the tools with this one where the request has calls of it and no tools, else nothing.

    A conversation has them where something was retrieved in an earlier turn. "Requests which include `tool_use` or
    `tool_result` blocks must define tools" (Anthropic).
    """
    items = request.items if request.format in FORMS and not request.fields.get("tools") else None
    if not isinstance(items, (list, tuple)) or not any(map(_calls_it, items)):
        return {}
    return request.with_tool(definition(request.format))


def definition(fmt: Format) -> Mapping[str, Any]:
    """Return the tool's definition in a format that can hide its calls."""
    named = {"name": RETRIEVE, "description": _DESCRIPTION}
    if fmt == "anthropic":
        return {**named, "input_schema": _PARAMETERS}
    function = {**named, "parameters": _PARAMETERS}
    if fmt == "openai-chat":
        return {"type": "function", "function": function}
    return {"type": "function", **function, "strict": False}  # OpenAI's default is true, which allows of no optional field


def _calls_it(item: Any) -> bool:
    if not isinstance(item, dict):
        return False
    listed = (x for x in (item.get("content"), item.get("tool_calls")) if isinstance(x, (list, tuple)))
    return RETRIEVE in map(_name, (item, *chain.from_iterable(listed)))


def _may_be_continued(request: Request) -> bool:
    """Whether a later request can go on from what the provider keeps, where a call of ours may be unanswered.

    OpenAI's Responses API keeps every answer unless it is told not to.
    """
    return request.fields.get("store") is not False or request.continues_stored_history


def _name(tool: Any) -> Any:
    if not isinstance(tool, dict):
        return None
    function = tool.get("function")
    return function.get("name") if isinstance(function, dict) else tool.get("name")


def _kind(value: Any) -> Any:
    """Return the kind of a tool, or what a tool choice says, "" where there is none."""
    return (value.get("type") if isinstance(value, dict) else value) or ""
