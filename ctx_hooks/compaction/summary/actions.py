"""What an agent did, by its calls and what they returned: files changed and read, commands and their outcome, the plan.

Tools are known by what their arguments hold, and by words in their names that those of all agents share. What may do
more than read counts as run: a mistake there puts a line of the summary under another heading. The other mistake is worse:
a placeholder says of what reads that it may be repeated.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from sys import getsizeof
from typing import TYPE_CHECKING, Any, Literal

from ctx_hooks.compaction import tool_arguments
from ctx_hooks.compaction.summary import shell
from ctx_hooks.conversation import placeholders
from ctx_hooks.runtime.content_cache import ContentCache, digest
from ctx_hooks.texts.error_lines import error_lines
from ctx_hooks.texts.json_text import parsed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ctx_hooks.conversation.model import Message, ToolCall, ToolResult

Kind = Literal["changed", "read", "ran", "planned"]

ENDS_CHARS = 400
"""Tools say at the beginning or the end of what they return how it went."""
STATUS_PLACE_CHARS = 10
"""A status that begins a result so early is of all of it ("Process exited with code 1"); elsewhere it counts at the end."""
OUTCOME_CHARS = 120
"""What is quoted of why a call failed."""
ENDING_CHARS = 120
"""What is quoted of what a call returned last."""
RUNNING_KEYS = ("session_id", "bash_id", "shell_id", "task_id")
"""What agents call a command that they have left running (Codex's write_stdin, Claude Code's BashOutput)."""
STILL_RUNNING = "<status>running</status>"
"""Claude Code's BashOutput."""
OUTPUT = "\nOutput:\n"
"""Codex puts the time and the status before it."""
TRACEBACK = "Traceback (most recent call last)"
"""What it is the heading of ends with the reason."""
POINT_KEYS = ("content", "step", "title", "text", "description")
"""What planning tools call a point (Claude Code's TodoWrite, Codex's update_plan)."""
PLAN_CHARS = 1_000
LONGEST_CHARS = 2 * tool_arguments.DIGEST_CHARS
"""What is quoted of a command."""
_READING = re.compile(r"browse|cat|count|describe|fetch|find|get|glob|grep|list|look|lookup|ls|read|search|stat|think|view")
"""Verbs; "open" and "show" act on what is seen, and "query" may hold any statement."""
_FINDING = ("fetch", "glob", "grep", "lookup", "search")
"""Verbs with which names of tools end."""
_ACTING = re.compile(
    r"add|apply|archive|book|buy|cancel|clear|close|create|delete|drop|edit|insert|kill|mark|merge|move|patch|pay|post|"
    r"publish|purge|push|put|remove|rename|replace|reset|run|save|send|set|start|stop|store|submit|sync|update|upload|write"
)
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
_PATCHING = re.compile(
    r"(?:^|[\n;&|({])\s{0,40}(?:\S{0,200}/)?(?:apply_patch|patch|git (?:apply|am))\b(?!.*--(?:check|dry-run|stat))"
)
"""The commands to which a patch is given."""
_PIPED = re.compile(r"\s*(?:\d?>&?|\|)")
"""What a command's output goes through says nothing of what was run."""
_RUNNING = re.compile(r"running (?:with session|in (?:the )?background with) ID:? ([\w-]{1,80})", re.IGNORECASE)
_TALLY = re.compile(
    r"(?:^|[^\w.])\d+ (?:tests? )?(?:pass|fail|error|warning|problem|issue)|\b(?:pass|fail|error)(?:ed|ing|ures?|s)?:? \d|"
    r"^All \w+ passed|^\[[\w/.#()-]{1,100}(?: [\w()-]{1,20})? [0-9a-f]{7,40}\] |^Found \d+ |"
    r"^\s*(?:[0-9a-f]{7,40}\.\.[0-9a-f]{7,40}|\* \[new branch\]) |^https?://\S+$",
    re.IGNORECASE,
)
"""In few words what a run came to: what passed and failed, what was committed, pushed and opened."""
_FIGURE = re.compile(r"\d+")
_SAYING = re.compile(r"\w")
_STATUS = re.compile(
    r"(?:exit(?:ed)?(?: with)?(?: code| status)?|exit_?code|return_?code|status code)[\"']?\s*[:=]?\s*(-?\d{1,5})\b",
    re.IGNORECASE,
)
_TROUBLE = re.compile(
    r"^\s*(?:Error|ERROR|error|fatal|FAILED|Traceback|panic)\b|\bTraceback \(most recent call last\)|"
    r"^\w*make(?:\[\d+\])?: \*\*\*|"
    r"^\s*<\w{0,20}error>|^(?:---? )?FAIL\b|\b[1-9]\d* (?:failed|failing|failures?|errors?)\b|✗|✖|npm ERR!",
    re.MULTILINE,
)
_LOCATED = re.compile(r"^[ \t]{0,40}[\w./@-]{1,200}\.\w{1,8}(?::\d+:|\(\d+[,)]).*\S", re.MULTILINE)
"""What compilers, linters and failing tests say of a line of a file."""

_actions: ContentCache[Action] = ContentCache()


@dataclass(frozen=True, slots=True)
class Action:
    """One call and how it went.

    Attributes:
        kind: whether it changed files, read, ran something, or stated a plan.
        what: the call in one line: a command, or the tool with what it was called with.
        files: the files that it changed or read.
        outcome: how it ended: an exit status and the line that says why, or what a run said last; "" if not known.
        failed: whether it ended badly.
        ended: whether it is known to have ended by itself: what was left running, or stopped, has cured nothing.
        index: of the message that made the call.
        same: equal for two that did the same: a command without what its output goes through, a call without figures.
    """

    kind: Kind
    what: str
    files: tuple[str, ...]
    outcome: str
    failed: bool
    index: int
    same: str
    ended: bool = True


def actions_of(messages: Sequence[Message]) -> tuple[Action, ...]:
    """Return the calls of the messages as actions, in the order in which they were made."""
    made: list[tuple[int, ToolCall]] = []
    results: dict[int, ToolResult] = {}
    open_calls: dict[str, int] = {}
    for i, message in enumerate(messages):
        results.update({open_calls[r.call_id]: r for r in message.results if r.call_id in open_calls})
        for call in message.calls:
            open_calls[call.id] = len(made)
            made.append((i, call))
    actions: list[Action] = []
    running: dict[str, Action] = {}
    for n, (i, call) in enumerate(made):
        action = action_of(call, results.get(n))
        started = running.get(_waits_for(call)) if running else None
        said = results[n].original_text[:ENDS_CHARS] if n in results else ""
        left = _RUNNING.search(said)
        if started is not None:
            ended = bool(said) and not (left or STILL_RUNNING in said or _STOPPING.intersection(_words(call.name)))
            action = replace(started, failed=action.failed, outcome=action.outcome, ended=ended)
        elif left is not None:
            action = running[left[1]] = replace(action, ended=False)
        actions.append(replace(action, index=i))
    return tuple(actions)


def _waits_for(call: ToolCall) -> str:
    """Return which running command a call waits for, "" if it does anything else."""
    given = parsed(call.arguments) if len(call.arguments) <= ENDS_CHARS else None
    values = given if isinstance(given, dict) else {}
    key = next((key for key in RUNNING_KEYS if key in values), "")
    says_more = any(isinstance(value, str) and value for name, value in values.items() if name != key)
    return "" if says_more else str(values.get(key, ""))


def action_of(call: ToolCall, result: ToolResult | None) -> Action:
    """Return what a call did and how that went, with the index 0; remembered by content."""
    returned = (None, None) if result is None else (digest(result.original_text), result.is_error)
    key = (call.name, digest(call.arguments), *returned)
    return _actions.get(key, lambda: _action_of(call, result), _action_bytes)


def _action_bytes(action: Action) -> int:
    texts = (action.what, action.outcome, action.same, *action.files)
    return getsizeof(action) + getsizeof(action.files) + sum(map(getsizeof, texts))


def _action_of(call: ToolCall, result: ToolResult | None) -> Action:
    given = parsed(call.arguments)
    values = given if isinstance(given, dict) else {}
    command = shell.command_of(values)
    script = shell.without_documents(command)
    acting = shell.acting(script)
    changed = _changed(call, values, command, script)
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
        line = " ".join((acting or script).split("\n", 1)[0].split())
        what, same = tool_arguments.beginning(line, LONGEST_CHARS), line if "||" in line else _PIPED.split(line)[0]
    else:
        what = f"{call.name}({plan or tool_arguments.digest(call.arguments)})"
        same = _FIGURE.sub("0", what)
    failed, outcome = _outcome(result, kind, masked=shell.masks_status(acting))
    files = changed
    if kind == "read":
        files = tuple(dict.fromkeys(shell.read_files(script))) if command else tool_arguments.paths(call.arguments)
    return Action(kind, what, files, outcome, failed, 0, same)


def _reads(tool: str) -> bool:
    """Whether a tool's name says that it reads: by its first word or its end, if no word of it acts."""
    words = _words(tool) or [""]
    is_reading = _READING.fullmatch(words[0]) or words[-1].endswith(_FINDING)
    return bool(is_reading) and not any(map(_ACTING.fullmatch, words))


def acts(call: ToolCall) -> bool:
    """Whether the name of a tool says that it changes something; of a shell its command says more."""
    given = parsed(call.arguments)
    return not (isinstance(given, dict) and shell.command_of(given)) and any(map(_ACTING.fullmatch, _words(call.name)))


def _words(tool: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(tool.rsplit("__", 1)[-1])]


def _changed(call: ToolCall, values: Mapping[str, Any], command: str, script: str) -> tuple[str, ...]:
    """Return the files that a call adds, edits, moves or deletes."""
    if command:
        patch = command if _PATCHING.search(script) else ""
        found = [_patched(m) for m in _PATCHED.finditer(patch)] or list(shell.written_files(script))
    elif values.get("command") in shell.VIEWS or not _CHANGES.search(call.name):
        found = []
    else:  # a patch in a file that is written is only its content
        texts = [v for v in values.values() if isinstance(v, str)] or [call.arguments]
        patched = [_patched(m) for text in texts for m in _PATCHED.finditer(text)]
        found = list(tool_arguments.paths(call.arguments)) or patched
    return tuple(dict.fromkeys(found))[: shell.MOST_FILES]


def _patched(found: re.Match[str]) -> str:
    return (found[1] or found[2]).strip()


def _plan(values: Mapping[str, Any]) -> str:
    """Return the points of a plan with their states, or its text; "" where the arguments hold neither."""
    for points in values.values():
        if isinstance(points, list) and points and all(isinstance(p, dict) and "status" in p for p in points):
            named = (next((p[key] for key in POINT_KEYS if key in p), "") for p in points)
            return "; ".join(f"{name} ({p['status']})" for name, p in zip(named, points, strict=True))[:PLAN_CHARS]
    text = values.get("plan")
    return " ".join(text[: 2 * PLAN_CHARS].split())[:PLAN_CHARS] if isinstance(text, str) else ""


def _outcome(result: ToolResult | None, kind: Kind, *, masked: bool) -> tuple[bool, str]:
    """Return whether a call ended badly, and how in a line; only what executes fails by what it prints.

    That counts where there is no status, and where it is `masked`, another command's.
    """
    if result is None:
        return False, ""
    text = result.original_text
    ends = text[:ENDS_CHARS] + "\n" + text[-ENDS_CHARS:]
    status = _status(text)
    is_bad_status = status not in ("", "0")
    executes = kind in ("ran", "changed")
    if not (result.is_error or is_bad_status or ((masked or not status) and executes and _TROUBLE.search(ends))):
        return False, _ending(text) if kind == "ran" else ""
    why = (executes and _reason(text)) or _ending(text)
    tally = _ending(text, tallies=True) if executes and why else ""
    told = "" if tally in why else f"({tally})"
    return True, " ".join(filter(None, (f"exit {status}" * is_bad_status, why[:OUTCOME_CHARS], told)))


def _status(text: str) -> str:
    """Return the exit status that a tool says of a call before its output, or else behind it, "" for none."""
    output = text.find(OUTPUT, 0, ENDS_CHARS)
    first = _STATUS.search(text, 0, output if output >= 0 else ENDS_CHARS)
    if first is not None and (output >= 0 or first.start() <= STATUS_PLACE_CHARS):
        return first[1]
    found = [*_STATUS.findall(text[:ENDS_CHARS]), *_STATUS.findall(text[-ENDS_CHARS:])]
    return found[-1] if found else ""


def _reason(text: str) -> str:
    """Return the first line that says where or why something failed, with the next where it is only a heading."""
    located = _LOCATED.search(text)
    named = (line for line in error_lines(text) if not (_STATUS.search(line) or TRACEBACK in line))
    line = located[0] if located else next(named, "")
    if not line.rstrip().endswith(":"):
        return line.strip()
    behind = text.find(line) + len(line)
    return f"{line.strip()} {text[behind : behind + ENDS_CHARS].strip().split(chr(10), 1)[0]}".strip()


def _ending(text: str, *, tallies: bool = False) -> str:
    """Return what a run came to, else a short result on one line, of a longer one the last line; or only the first of these.

    What a tool says beside the result is no part of it.
    """
    begins = text.find(OUTPUT, 0, ENDS_CHARS)
    begin = begins + len(OUTPUT) if begins >= 0 else 0
    is_short = len(text) - begin <= 2 * ENDS_CHARS
    head, tail = text[begin : begin + ENDS_CHARS].rpartition("\n")[0], text[-ENDS_CHARS:]
    ends = text[begin:] if is_short else f"{head}\n{tail[tail.find(chr(10)) + 1 :]}"
    lines = [" ".join(s.split()) for s in ends.split("\n") if _SAYING.search(s) and not _STATUS.search(s)]
    told = [line for line in lines if _TALLY.search(line)]
    while len("; ".join(told)) > ENDING_CHARS:
        told.pop(0)
    if told or tallies:
        return "; ".join(dict.fromkeys(told))
    if lines and is_short and TRACEBACK not in ends and len("; ".join(lines)) <= ENDING_CHARS:
        return "; ".join(lines)
    left = None if lines else _RUNNING.search(text, 0, ENDS_CHARS)
    line = lines[-1] if lines else left[0] if left else ""
    return line if len(line) <= ENDING_CHARS else placeholders.GAP + line[1 - ENDING_CHARS :]


def still_failing(actions: Sequence[Action]) -> Iterator[Action]:
    """Yield the failures that no later success has cured, in order.

    A success cures the failures of a change of the same files, and of the same command for the same files or some of these;
    one that names no files cures all of the command's failures. What `&&` joins has all succeeded; of what `||` joins
    nobody knows it.
    """
    failing: dict[object, dict[frozenset[str], Action]] = {}
    for action in actions:
        if action.kind in ("ran", "changed") and (action.ended or action.failed):
            parts = () if action.failed or "||" in action.same else action.same.split(" && ")
            for done in dict.fromkeys((*parts, action.same)):
                of_its_kind, files = _scope(action, done)
                known = failing.setdefault(of_its_kind, {})
                for cured in [k for k in known if k == files or (not action.failed and (not files or k < files))]:
                    del known[cured]
            if action.failed:
                known[files] = action
                if len(known) > shell.MOST_FILES:
                    del known[next(iter(known))]
    yield from sorted((action for known in failing.values() for action in known.values()), key=lambda action: action.index)


def _scope(action: Action, done: str) -> tuple[object, frozenset[str]]:
    """Return what was done and to which files: of a command the words that are no paths, and those that are."""
    if action.kind == "changed":
        return action.files, frozenset()
    words = done.split()
    files = frozenset(word for word in words if "/" in word or "." in word)
    return tuple(word for word in words if word not in files), files
