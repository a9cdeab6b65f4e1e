"""An agent's actions, by its calls and their results: files changed and read, commands and their outcome, the plan.

The keys of their arguments identify tools, and words that the tool names of all agents share. A call that may do more than
read counts as run: a mistake only puts a line of the summary under another heading. `changes_nothing` is stricter, since a
mistake there would advise the model to repeat a call that writes.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from sys import getsizeof
from typing import Any, Literal

from ctx_hooks.compaction import tool_texts
from ctx_hooks.compaction.summary import shell
from ctx_hooks.compaction.summary.outcomes import outcome_of
from ctx_hooks.conversation.model import Message, ToolCall, ToolResult
from ctx_hooks.runtime.content_cache import ContentCache, digest
from ctx_hooks.texts.json_text import parsed

Kind = Literal["changed", "read", "ran", "planned"]

POINT_KEYS = ("content", "step", "title", "text", "description")
"""Keys for a point of a plan (Claude Code's TodoWrite, Codex's update_plan)."""
PLAN_CHARS = 1_000
LONGEST_CHARS = 2 * tool_texts.DIGEST_CHARS
"""The longest quotation of a command."""
_READING = re.compile(r"browse|cat|count|describe|fetch|find|get|glob|grep|list|look|lookup|ls|read|search|stat|think|view")
"""Reading verbs. "open" and "show" are missing: they act on the view; "query" may contain any statement."""
_FINDING = ("fetch", "glob", "grep", "lookup", "search")
"""Reading verbs at the end of tool names."""
_ACTING = re.compile(
    r"add|apply|archive|book|buy|cancel|clear|close|create|delete|drop|edit|insert|kill|mark|merge|move|patch|pay|post|"
    r"publish|purge|push|put|remove|rename|replace|reset|run|save|send|set|start|stop|store|submit|sync|update|upload|write"
)
_BOTH = frozenset({"and", "or", "then"})
"""Words that join a second verb to the first."""
_REPEATABLE = frozenset({"count", "describe", "find", "glob", "grep", "list", "lookup", "ls", "search", "stat"})
_REPEATABLE_FILES = frozenset({"cat", "read", "view"})
"""Repeatable if the call names a file: "read_email" may mark as read. "get" and "fetch" are missing: they take too."""
_ORDER = re.compile(rf"\s*(?:{_ACTING.pattern})\b", re.IGNORECASE)
"""An argument that begins with a verb may be an order: `action: delete`."""
LONGEST_ADVISED_CHARS = 2_000
"""The arguments of a call that only reads are short."""
_PLANNING = ("todo", "plan", "checklist")
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_CHANGES = re.compile(
    r"apply|edit|write|patch|create_file|^create$|replace|insert|notebook|delete_file|move_file|rename", re.IGNORECASE
)
_PATCHED = re.compile(
    r"^\*\*\* (?:(?:Add|Update|Delete) File|Move to): (.{1,300})$|^\+\+\+ (?:b/)?([^\s/].{0,300})$", re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class Action:
    """One call and how it went."""

    kind: Kind
    what: str
    """The call in one line: a command, or the tool with its arguments."""
    files: tuple[str, ...]
    """The files that it changed or read."""
    outcome: str
    """How it ended: an exit status and its reason, or the last output of a run; "" if not known."""
    failed: bool
    index: int
    """The index of the message that made the call."""
    tool: str
    """The name of the tool; "" for a shell command."""
    commands: tuple[tuple[str, ...], ...]
    """The words of each command that it ran, at least one, without what pipelines do with its output."""


_actions: ContentCache[Action] = ContentCache()


def actions_of(messages: Sequence[Message]) -> tuple[Action, ...]:
    """Return the calls of the messages as actions, in order."""
    made: list[tuple[int, ToolCall]] = []
    results: dict[int, ToolResult] = {}
    open_calls: dict[str, int] = {}
    for i, message in enumerate(messages):
        for part in message.parts:
            if isinstance(part, ToolCall):
                open_calls[part.id] = len(made)
                made.append((i, part))
            elif isinstance(part, ToolResult) and part.call_id in open_calls:
                results[open_calls[part.call_id]] = part
    return tuple([replace(action_of(call, results.get(n)), index=i) for n, (i, call) in enumerate(made)])


def action_of(call: ToolCall, result: ToolResult | None) -> Action:
    """Return the action of a call and its outcome, with the index 0; remembered by content."""
    returned = (None, None) if result is None else (digest(result.original_text), result.is_error)
    key = (call.name, digest(call.arguments), *returned)
    return _actions.get(key, lambda: _action_of(call, result), _action_bytes)


def _action_bytes(action: Action) -> int:
    words = (word for command in action.commands for word in command)
    return sum(map(getsizeof, (action, action.what, action.outcome, action.files, *action.files, *words)))


def _action_of(call: ToolCall, result: ToolResult | None) -> Action:
    tool, given = tool_texts.inner_call(parsed(call.arguments))
    name = call.name if not tool or any(map(_ACTING.fullmatch, _words(call.name))) else tool
    values = given if isinstance(given, dict) else {}
    command = shell.command_of(values)
    script = shell.without_documents(command)
    parts = shell.parts_of(script)
    acting = shell.acting(script, parts)
    changed = _changed(name, values or {"": call.arguments}, command, parts)
    plan = _plan(values)
    if changed:
        kind: Kind = "changed"
    elif plan and any(word.startswith(_PLANNING) for word in _words(name)):
        kind = "planned"
    elif command:
        kind = "ran" if acting else "read"
    else:
        kind = "read" if values.get("command") in shell.VIEWS or _reads(name) else "ran"
    if command:
        what = tool_texts.beginning(shell.first_line(acting or script, command), LONGEST_CHARS)
        commands = tuple([part.words for part in parts if part.acts and part.joint != "|"])
        commands += ((what,),) * ("<<" in script or not commands)
    else:
        what = f"{call.name}({plan or tool_texts.digest(call.arguments)})"
        commands = ((what,),)
    failed, outcome = outcome_of(result, kind)
    files = changed
    if kind == "read":
        shown = tuple(dict.fromkeys(file for part in parts for file in part.shown()))
        files = shown if command else tool_texts.paths(values)
    return Action(kind, what, files, outcome, failed, 0, "" if command else call.name, commands)


def _reads(tool: str) -> bool:
    """Whether a tool's name says that it reads, by its first word or its end, and no word in it acts."""
    words = _words(tool) or [""]
    is_reading = _READING.fullmatch(words[0]) or words[-1].endswith(_FINDING)
    return bool(is_reading) and not any(map(_ACTING.fullmatch, words))


def acts(call: ToolCall) -> bool:
    """Whether the name of a tool says that it changes something; for a shell, the command says more."""
    tool, given = tool_texts.inner_call(parsed(call.arguments))
    runs_command = isinstance(given, dict) and shell.command_of(given)
    return not runs_command and any(map(_ACTING.fullmatch, (*_words(call.name), *_words(tool))))


def changes_nothing(call: ToolCall) -> bool:
    """Whether a call is known to change nothing, so that a placeholder may advise to make it again.

    A wrong False costs a hint, a wrong True an action that nobody asked for: every doubt is False. A shell's command is a
    doubt, since quoted scripts write files too.
    """
    given = parsed(call.arguments) if len(call.arguments) <= LONGEST_ADVISED_CHARS else None
    words = _words(call.name)
    if not (isinstance(given, dict) and words and call.name.isascii()) or any(key in given for key in shell.SHELL_KEYS):
        return False
    values = [v for value in given.values() for v in (value if isinstance(value, list) else [value])]
    said = [*given, *(v for v in values if isinstance(v, str))]
    is_nested = any(isinstance(v, (dict, list)) for v in values)
    if is_nested or _ACTING.search(call.name.lower()) or _BOTH.intersection(words) or any(map(_ORDER.match, said)):
        return False
    return words[0] in _REPEATABLE or (words[0] in _REPEATABLE_FILES and bool(tool_texts.paths(given)))


def _words(tool: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(tool.rsplit("__", 1)[-1])]


def _changed(tool: str, values: Mapping[str, Any], command: str, parts: Sequence[shell.Part]) -> tuple[str, ...]:
    """Return the files that a call adds, edits or moves."""
    if command:
        patched = [_patched(m) for m in _PATCHED.finditer(command)] if any(part.patches for part in parts) else []
        found = patched or [file for part in parts for file in part.written()]
    elif values.get("command") in shell.VIEWS or not _CHANGES.search(tool):
        found = []
    else:  # a patch in a file that is written is only its content
        texts = (v for v in values.values() if isinstance(v, str))
        patched = [_patched(m) for text in texts for m in _PATCHED.finditer(text)]
        found = list(tool_texts.paths(values)) or patched
    return tuple(dict.fromkeys(found))[: shell.MOST_FILES]


def _patched(found: re.Match[str]) -> str:
    return (found[1] or found[2]).strip()


def _plan(values: Mapping[str, Any]) -> str:
    """Return the points of a plan with their states, or its text; "" if the arguments have neither."""
    for points in values.values():
        if isinstance(points, list) and points and all(isinstance(p, dict) and "status" in p for p in points):
            named = (next((p[key] for key in POINT_KEYS if key in p), "") for p in points)
            listed = "; ".join(f"{name} ({p['status']})" for name, p in zip(named, points, strict=True))
            return tool_texts.beginning(listed, PLAN_CHARS)
    text = values.get("plan")
    return tool_texts.beginning(text, PLAN_CHARS) if isinstance(text, str) else ""
