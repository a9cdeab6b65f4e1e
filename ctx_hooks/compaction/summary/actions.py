"""What an agent did, by its calls and what they returned: files changed and read, commands and their outcome, the plan.

Tools are known by what their arguments hold, and by words in their names that those of all agents share. What may do
more than read counts as run: a mistake there puts a line of the summary under another heading. The other mistake is worse:
a placeholder says of what reads that it may be repeated.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from ctx_hooks.compaction import tool_arguments
from ctx_hooks.conversation import placeholders
from ctx_hooks.texts.error_lines import error_lines
from ctx_hooks.texts.json_text import parsed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ctx_hooks.conversation.model import Message, ToolCall, ToolResult

Kind = Literal["changed", "read", "ran", "planned"]

ENDS_CHARS = 400
"""Tools say at the beginning or the end of what they return how it went."""
OUTCOME_CHARS = 120
"""What of the line that names an error is quoted."""
MOST_COMMAND_CHARS = 8_000
"""Of a longer command, such as a file that is written by one, the beginning is read."""
SHELL_KEYS = ("command", "cmd", "commands", "script")
VIEWS = ("view", "open")
EDITOR_COMMANDS = (*VIEWS, "create", "str_replace", "insert", "undo_edit")
"""What editors with sub-commands take for a command (Anthropic's text editor, OpenHands)."""
POINT_KEYS = ("content", "step", "title", "text", "description")
"""What planning tools call a point (Claude Code's TodoWrite, Codex's update_plan)."""
PLAN_CHARS = 1_000
LONGEST_CHARS = 2 * tool_arguments.DIGEST_CHARS
"""What is quoted of a command."""
MOST_FILES = 50
"""One call that changes more is a commit or a generator, and its command says more than a list."""

_READS = re.compile(
    r"(?:^|_)(?:read|get|list|ls|view|open|show|cat|find|query|think)|search|grep|glob|fetch|look_?up|browse",
    re.IGNORECASE,
)
_ACTS = re.compile(
    r"(?:^|_)(?:add|apply|archive|book|buy|cancel|clear|close|create|delete|drop|kill|mark|merge|move|pay|post|publish|purge|"
    r"push|put|remove|reset|run|save|send|set|start|stop|submit|sync|update|upload)(?:_|$)",
    re.IGNORECASE,
)
_CHANGES = re.compile(
    r"edit|write|patch|create_file|^create$|replace|insert|notebook|delete_file|move_file|rename", re.IGNORECASE
)
_PLANS = re.compile(r"todo|plan|task_list|checklist", re.IGNORECASE)
_PATCHED = re.compile(
    r"^\*\*\* (?:(?:Add|Update|Delete) File|Move to): (.{1,300})$|^\+\+\+ (?:b/)?([^\s/].{0,300})$", re.MULTILINE
)
_PREFIX = re.compile(
    r"\s*(?:(?:cd|export|source|set)\b[^\n;&|]{0,400}(?:&&|;|\n)|[A-Z_][A-Z0-9_]*=\S{0,200}\s|sudo\s|time\s)\s*"
)
_NEXT = re.compile(r"&&|\|\||[;\n]|(?<!>)&(?!>)")
"""Between two commands of one call."""
_SILENCED = re.compile(r"[\d&]?>{1,2}\s?/dev/null|\d?>&\d?")
_NO_MORE = r"(?!\w)(?!.*(?:\s-(?:delete|ok|exec(?!(?:dir)?\s(?:grep|cat|head|tail|wc|ls|stat|sed -n)\s))|>\s?[\w/.]|\$\(|`))"
"""Behind the name of a command that reads: neither an option nor a file that it writes, nor a command in it."""
_READING_COMMAND = re.compile(
    r"\s*(?:(?:do|then|else)\s)?(?:$|cat|head|tail|less|ls|tree|find|fd|rg|grep|egrep|ag|nl|wc|sed -n|awk|jq|stat|file|"
    r"which|pwd|env(?=\s*$)|echo|printf|diff|du|df|ps|cd|export|for|done|fi|true|sleep|wait|test|\[|"
    r"git (?:status|log|show|diff|branch(?! -[dDmMcCfu])|blame|grep|rev-parse|ls-files|remote(?! [a-z])|worktree list|"
    rf"fetch)|gh \w+ (?:view|list|status|diff|checks)|Get-Content|dir|type){_NO_MORE}"
)
_FILTER = re.compile(rf"\s*(?:sort|uniq|cut|tr|column|rev|tac|fold|more|sed)(?!.*\s-[io]){_NO_MORE}")
"""What else output may go through that only reads."""
_XARGS = re.compile(r"\s*xargs(?:\s+-\S+(?:\s+\d+)?)*\s")
"""What is called with the output has to read, too."""
_PIPED = re.compile(r"\s*(?:\d?>&?|\|)")
"""What a command's output goes through says nothing of what was run."""
_QUOTED = re.compile(r"'[^']{0,2000}'|\"[^\"]{0,2000}\"")
_FIGURE = re.compile(r"\d+")
_WRITING = re.compile(
    r"(?:>>?|\btee(?: -a)?|\b(?:sed -i|perl -(?=\w*i))\S*(?: -e)?(?: '')?|\b(?:git )?(?:mv|cp|rm)(?: -\w+)*|\btouch)"
    r"\s+((?:(?![-&<>|$(]|/dev/)[\w./@~+-]{2,200}[ \t]*){1,8})"
)
_STATUS = re.compile(
    r"(?:exit(?:ed)?(?: with)?(?: code| status)?|exit_?code|return_?code|status code)[\"']?\s*[:=]?\s*(-?\d{1,5})\b",
    re.IGNORECASE,
)
_TROUBLE = re.compile(
    r"^\s*(?:Error|ERROR|error|fatal|FAILED|Traceback|panic)\b|\bTraceback \(most recent call last\)|"
    r"^(?:---? )?FAIL\b|\b[1-9]\d* (?:failed|failing|failures?|errors?)\b|✗|✖|npm ERR!",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Action:
    """One call and how it went.

    Attributes:
        kind: whether it changed files, read, ran something, or stated a plan.
        what: the call in one line: a command, or the tool with what it was called with.
        files: the files that it changed or read.
        outcome: how it ended: an exit status or the line that names an error; "" for well, or not known.
        failed: whether it ended badly.
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
    return tuple(action_of(i, call, results.get(n)) for n, (i, call) in enumerate(made))


def action_of(index: int, call: ToolCall, result: ToolResult | None) -> Action:
    """Return what the message `index` did by a call, and how that went."""
    given = parsed(call.arguments)
    values = given if isinstance(given, dict) else {}
    command = _command(values)
    acting = _acting(command)
    changed = _changed(call, values, command)
    if changed:
        kind: Kind = "changed"
    elif _PLANS.search(call.name):
        kind = "planned"
    elif command:
        kind = "ran" if acting else "read"
    else:
        reads = _READS.search(call.name) and not _ACTS.search(call.name)
        kind = "read" if values.get("command") in VIEWS or reads else "ran"
    if command:
        line = " ".join((acting or command).split("\n", 1)[0].split())
        what, same = _short(line), _PIPED.split(line)[0]
    else:
        what = f"{call.name}({_plan(values) or tool_arguments.digest(call.arguments)})"
        same = _FIGURE.sub("0", what)
    failed, outcome = _outcome(result, executes=kind in ("ran", "changed"))
    files = changed or (tool_arguments.paths(call.arguments) if kind == "read" else ())
    return Action(kind, what, files, outcome, failed, index, same)


def _acting(command: str) -> str:
    """Return a command from its first part on that does more than read; "" where none does."""
    shell = _SILENCED.sub(_blank, _QUOTED.sub(_blank, _without_document(command)))
    start = 0
    for found in (*_NEXT.finditer(shell), None):
        first, *behind = shell[start : found.start() if found else len(shell)].split("|")
        if not (_READING_COMMAND.match(first) and all(map(_only_reads, behind))):
            return command[start:].strip()
        start = found.end() if found else 0
    return ""


def _only_reads(piped: str) -> bool:
    """Whether a command only reads that gets the output of another one."""
    called = _XARGS.sub("", piped, 1)
    return bool(_READING_COMMAND.match(called) or _FILTER.match(called))


def _blank(found: re.Match[str]) -> str:
    runs = found[0][0] == '"' and ("$(" in found[0] or "`" in found[0])
    return ("$(" if runs else "_").center(len(found[0]))


def _without_document(command: str) -> str:
    """Return a command without the text that it is given behind its first line."""
    return command if "<<" not in command else command.split("\n", 1)[0]


def _command(values: Mapping[str, Any]) -> str:
    """Return the shell command of a call without what prepares it; "" where it has none."""
    value = next((values[key] for key in SHELL_KEYS if key in values), "")
    if value in EDITOR_COMMANDS:
        return ""
    if isinstance(value, list) and value and all(isinstance(x, str) for x in value):
        value = value[-1] if value[0].rsplit("/", 1)[-1] in ("bash", "sh", "zsh", "powershell", "pwsh") else " ".join(value)
    command = value[:MOST_COMMAND_CHARS].replace("\\\n", " ") if isinstance(value, str) else ""
    while prefix := _PREFIX.match(command):
        command = command[prefix.end() :]
    return command.strip()


def _changed(call: ToolCall, values: Mapping[str, Any], command: str) -> tuple[str, ...]:
    """Return the files that a call adds, edits, moves or deletes."""
    texts = [v for v in values.values() if isinstance(v, str)] or [call.arguments]
    patches = [t for t in (*texts, command) if t.find("*** Begin Patch") >= 0 or t.find("\n+++ ") >= 0]
    found = [(m[1] or m[2]).strip() for text in patches for m in _PATCHED.finditer(text)]
    if command and not found:
        shell = _QUOTED.sub("''", _without_document(command))
        found = [path for m in _WRITING.finditer(shell) for path in m[1].split()]
    elif not found and values.get("command") not in VIEWS and _CHANGES.search(call.name):
        found = list(tool_arguments.paths(call.arguments))
    return tuple(dict.fromkeys(found))[:MOST_FILES]


def _plan(values: Mapping[str, Any]) -> str:
    """Return the points of a plan with their states; "" where the arguments hold none."""
    for points in values.values():
        if isinstance(points, list) and points and all(isinstance(p, dict) and "status" in p for p in points):
            named = (next((p[key] for key in POINT_KEYS if key in p), "") for p in points)
            return "; ".join(f"{name} ({p['status']})" for name, p in zip(named, points, strict=True))[:PLAN_CHARS]
    return ""


def last_line(text: str) -> str:
    """Return the last line that is not blank, of a longer one the end: most tools say there how it went."""
    line = text.rstrip().rsplit("\n", 1)[-1].strip()
    return line if len(line) <= OUTCOME_CHARS else placeholders.GAP + line[1 - OUTCOME_CHARS :]


def _outcome(result: ToolResult | None, *, executes: bool) -> tuple[bool, str]:
    """Return whether a call ended badly, and how in a line; only what executes fails by what it prints."""
    if result is None:
        return False, ""
    text = result.original_text
    ends = text[:ENDS_CHARS] + "\n" + text[-ENDS_CHARS:]
    status = next((found[1] for found in _STATUS.finditer(ends)), "")
    is_bad_status = status not in ("", "0")
    if not (result.is_error or is_bad_status or (not status and executes and _TROUBLE.search(ends))):
        return False, ""
    line = (next(error_lines(text), "") if executes else "") or text.strip().split("\n", 1)[0]
    return True, " ".join(filter(None, (f"exit {status}" * is_bad_status, line.strip()[:OUTCOME_CHARS])))


def still_failing(actions: Sequence[Action]) -> Iterator[Action]:
    """Yield the failures that no later success has cured, in order.

    A success cures the failures of a change of the same files, and of the same command for the same files or some of these;
    one that names no files cures all of the command's failures.
    """
    failing: dict[object, dict[frozenset[str], Action]] = {}
    for action in actions:
        if action.kind in ("ran", "changed"):
            of_its_kind, files = _scope(action)
            known = failing.setdefault(of_its_kind, {})
            for cured in [k for k in known if k == files or (not action.failed and (not files or k < files))]:
                del known[cured]
            if action.failed:
                known[files] = action
                if len(known) > MOST_FILES:
                    del known[next(iter(known))]
    yield from sorted((action for known in failing.values() for action in known.values()), key=lambda action: action.index)


def _scope(action: Action) -> tuple[object, frozenset[str]]:
    """Return what was done and to which files: of a command the words that are no paths, and those that are."""
    if action.kind == "changed":
        return action.files, frozenset()
    words = action.same.split()
    files = [word for word in words if "/" in word or "." in word]
    return tuple(word for word in words if not ("/" in word or "." in word)), frozenset(files)


def _short(line: str) -> str:
    return line if len(line) <= LONGEST_CHARS else line[: LONGEST_CHARS - 1] + placeholders.GAP
