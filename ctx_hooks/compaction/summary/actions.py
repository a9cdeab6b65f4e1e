"""An agent's actions, by its calls and their results: files changed and read, commands and their outcome, the plan.

The keys of their arguments identify tools, and words that the tool names of all agents share. A call that may do more than
read counts as run: a mistake only puts a line of the summary under another heading. `changes_nothing` is stricter, since a
mistake there would advise the model to repeat a call that writes.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from sys import getsizeof
from typing import Any, Literal, TypeAlias

from ctx_hooks.compaction import tool_texts
from ctx_hooks.compaction.summary import shell
from ctx_hooks.compaction.summary.outcomes import ENDS_CHARS, RUNNING, outcome_of
from ctx_hooks.conversation.model import Message, ToolCall, ToolResult
from ctx_hooks.runtime.content_cache import ContentCache, digest
from ctx_hooks.texts.json_text import parsed

Kind = Literal["changed", "read", "ran", "planned"]
Command: TypeAlias = tuple[tuple[str, ...], frozenset[str]]

RUNNING_KEYS = ("session_id", "bash_id", "shell_id", "task_id")
"""Keys for a command that an agent has left running (Codex's write_stdin, Claude Code's BashOutput)."""
STILL_RUNNING = "<status>running</status>"
"""Claude Code's BashOutput."""
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
_STOPPING = frozenset({"kill", "stop", "close", "cancel"})
"""Verbs of tools that end a running command."""
_PLANNING = ("todo", "plan", "checklist")
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_CHANGES = re.compile(
    r"apply|edit|write|patch|create_file|^create$|replace|insert|notebook|delete_file|move_file|rename", re.IGNORECASE
)
_PATCHED = re.compile(
    r"^\*\*\* (?:(?:Add|Update|Delete) File|Move to): (.{1,300})$|^\+\+\+ (?:b/)?([^\s/].{0,300})$", re.MULTILINE
)
_FIGURE = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class Action:
    """One call and how it went.

    Attributes:
        kind: whether it changed files, read, ran something, or stated a plan.
        what: the call in one line: a command, or the tool with its arguments.
        files: the files that it changed or read.
        outcome: how it ended: an exit status and its reason, or the last output of a run; "" if not known.
        failed: whether it ended badly.
        ended: whether all of it certainly ran to its end: else it has fixed nothing, as beside `||`.
        index: the index of the message that made the call.
        commands: what it ran, each as its words and its files: a call is one word, without figures.
    """

    kind: Kind
    what: str
    files: tuple[str, ...]
    outcome: str
    failed: bool
    index: int
    commands: tuple[Command, ...]
    ended: bool = True


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
    actions: list[Action] = []
    running: dict[str, Action] = {}
    for n, (i, call) in enumerate(made):
        action = action_of(call, results.get(n))
        started = running.get(_waits_for(call)) if running else None
        said = results[n].original_text[:ENDS_CHARS] if n in results else ""
        left = RUNNING.search(said)
        if started is not None:
            ended = bool(said) and not (left or STILL_RUNNING in said or _STOPPING.intersection(_words(call.name)))
            action = replace(started, failed=action.failed, outcome=action.outcome, ended=ended)
        elif left is not None:
            action = running[left[1]] = replace(action, ended=False)
        actions.append(replace(action, index=i))
    return tuple(actions)


def _waits_for(call: ToolCall) -> str:
    """Return the running command that a call waits for, "" if it does anything else."""
    given = parsed(call.arguments) if len(call.arguments) <= ENDS_CHARS else None
    values = given if isinstance(given, dict) else {}
    key = next((key for key in RUNNING_KEYS if key in values), "")
    says_more = any(isinstance(value, str) and value for name, value in values.items() if name != key)
    return "" if says_more else str(values.get(key, ""))


def action_of(call: ToolCall, result: ToolResult | None) -> Action:
    """Return the action of a call and its outcome, with the index 0; remembered by content."""
    returned = (None, None) if result is None else (digest(result.original_text), result.is_error)
    key = (call.name, digest(call.arguments), *returned)
    return _actions.get(key, lambda: _action_of(call, result), _action_bytes)


def _action_bytes(action: Action) -> int:
    texts = (
        action.what,
        action.outcome,
        *action.files,
        *(word for command in action.commands for part in command for word in part),
    )
    return getsizeof(action) + getsizeof(action.files) + sum(map(getsizeof, texts))


def _action_of(call: ToolCall, result: ToolResult | None) -> Action:
    given = parsed(call.arguments)
    values = given if isinstance(given, dict) else {}
    command = shell.command_of(values)
    script = shell.without_documents(command)
    parts = shell.parts_of(script)
    acting = shell.acting(script, parts)
    changed = _changed(call, values, command, parts)
    plan = _plan(values)
    if changed:
        kind: Kind = "changed"
    elif plan and any(word.startswith(_PLANNING) for word in _words(call.name)):
        kind = "planned"
    elif command:
        kind = "ran" if acting else "read"
    else:
        kind = "read" if values.get("command") in shell.VIEWS or _reads(call.name) else "ran"
    if command:
        what = tool_texts.beginning((acting or script).split("\n", 1)[0], LONGEST_CHARS)
        commands = tuple([_command(part.words) for part in parts if part.acts and part.joint != "|"])
    else:
        what = f"{call.name}({plan or tool_texts.digest(call.arguments)})"
        commands = (((_FIGURE.sub("0", what),), frozenset()),)
    failed, outcome = outcome_of(result, kind, masked=any(part.joint not in ("", "&&") for part in parts))
    files = changed
    if kind == "read":
        shown = tuple(dict.fromkeys(file for part in parts for file in part.shown()))
        files = shown if command else tool_texts.paths(call.arguments)
    is_sure = not any(part.joint == "||" for part in parts)
    return Action(kind, what, files, outcome, failed, 0, commands, is_sure)


def _command(words: Sequence[str]) -> Command:
    files = frozenset(word for word in words if "/" in word or "." in word)
    return tuple(word for word in words if word not in files), files


def _reads(tool: str) -> bool:
    """Whether a tool's name says that it reads, by its first word or its end, and no word in it acts."""
    words = _words(tool) or [""]
    is_reading = _READING.fullmatch(words[0]) or words[-1].endswith(_FINDING)
    return bool(is_reading) and not any(map(_ACTING.fullmatch, words))


def acts(call: ToolCall) -> bool:
    """Whether the name of a tool says that it changes something; for a shell, the command says more."""
    given = parsed(call.arguments)
    return not (isinstance(given, dict) and shell.command_of(given)) and any(map(_ACTING.fullmatch, _words(call.name)))


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
    return words[0] in _REPEATABLE or (words[0] in _REPEATABLE_FILES and bool(tool_texts.paths(call.arguments)))


def _words(tool: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(tool.rsplit("__", 1)[-1])]


def _changed(call: ToolCall, values: Mapping[str, Any], command: str, parts: Sequence[shell.Part]) -> tuple[str, ...]:
    """Return the files that a call adds, edits or moves."""
    if command:
        patched = [_patched(m) for m in _PATCHED.finditer(command)] if any(part.patches for part in parts) else []
        found = patched or [file for part in parts for file in part.written()]
    elif values.get("command") in shell.VIEWS or not _CHANGES.search(call.name):
        found = []
    else:  # a patch in a file that is written is only its content
        texts = [v for v in values.values() if isinstance(v, str)] or [call.arguments]
        patched = [_patched(m) for text in texts for m in _PATCHED.finditer(text)]
        found = list(tool_texts.paths(call.arguments)) or patched
    return tuple(dict.fromkeys(found))[: shell.MOST_FILES]


def _patched(found: re.Match[str]) -> str:
    return (found[1] or found[2]).strip()


def _plan(values: Mapping[str, Any]) -> str:
    """Return the points of a plan with their states, or its text; "" if the arguments have neither."""
    for points in values.values():
        if isinstance(points, list) and points and all(isinstance(p, dict) and "status" in p for p in points):
            named = (next((p[key] for key in POINT_KEYS if key in p), "") for p in points)
            return "; ".join(f"{name} ({p['status']})" for name, p in zip(named, points, strict=True))[:PLAN_CHARS]
    text = values.get("plan")
    return " ".join(text[: 2 * PLAN_CHARS].split())[:PLAN_CHARS] if isinstance(text, str) else ""


def still_failing(actions: Sequence[Action]) -> list[Action]:
    """Return the failures that no later success has fixed, in order.

    A success fixes failed changes of the same files, and a failed run of which it runs every command, with any words before
    it, for at least the same files or for all. A later failure of the same replaces an earlier one.
    """
    failing: list[Action] = []
    for action in actions:
        if action.kind in ("ran", "changed") and (action.ended or action.failed):
            failing = [f for f in failing if not _settles(action, f)][-shell.MOST_FILES :]
            failing += [action] * action.failed
    return failing


def _settles(action: Action, failed: Action) -> bool:
    if "changed" in (action.kind, failed.kind):
        return (action.kind, action.files) == (failed.kind, failed.files)
    if action.failed:
        return action.commands == failed.commands
    return bool(failed.commands) and all(any(_covers(c, d) for c in action.commands) for d in failed.commands)


def _covers(command: Command, failed: Command) -> bool:
    short, long = sorted((command[0], failed[0]), key=len)
    return long[len(long) - len(short) :] == short != () and (not command[1] or failed[1] <= command[1])
