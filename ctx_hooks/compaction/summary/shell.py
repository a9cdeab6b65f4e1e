"""The effects of a shell command: its first part that does more than read, and the files that it writes.

Variables that the command itself sets are resolved. A variable or pattern that only the shell can expand is left out.
"""

import re
from collections.abc import Iterator, Mapping
from itertools import product
from math import prod
from typing import Any

MOST_COMMAND_CHARS = 8_000
"""Only the beginning of a longer command is read."""
SHELL_KEYS = ("command", "cmd", "commands", "script")
VIEWS = ("view", "open")
EDITOR_COMMANDS = (*VIEWS, "create", "str_replace", "insert", "undo_edit")
"""Sub-commands of editors (Anthropic's text editor, OpenHands)."""
MOST_FILES = 50
"""A call that changes more files is a commit or a generator; its command says more than a list of files."""

LONGEST_PATH_CHARS = 200

_DOCUMENT = re.compile(r"(?<!<)<<(-?)[ \t]?(?:'([^'\n]{1,80})'|\"([^\"\n]{1,80})\"|\\?([^\s'\"\\;&|<>()]{1,80}))")
_PREFIX = re.compile(
    r"\s{0,40}(?:(?:(?:cd|export|set)\b|source \S{0,200}(?:activate|env|rc|profile|nvm\.sh)\b)(?:(?!\$\()[^\n;&|`]){0,400}"
    r"(?:&&|;|\n)|[A-Z_][A-Z0-9_]*=(?:(?!\$\()[^\s`]){0,200}\s|sudo\s|time\s)\s{0,40}"
)
_NEXT = re.compile(r"&&|\|\||[;\n]|(?<!>)&(?!>)")
"""Separators of two commands in one call."""
_SILENCED = re.compile(r"[\d&]?>{1,2}\s?/dev/null|\d?>&\d")
_NO_MORE = (
    r"(?!\w)(?!.*(?:\s-(?:delete|ok|fprint|fls|-exec|-output|"
    r"exec(?!(?:dir)?\s(?:grep|cat|head|tail|wc|ls|stat|sed -n)\s))|"
    r">&?\s?[\w/.$~]|[$<>]\(|`))"
)
"""The rest of a reading command: no option or file that it writes, and no command in it."""
_READING_COMMAND = re.compile(
    r"\s*(?:(?:do|then|else)\s)?(?:$|cat|head|tail|less|ls|tree(?!.*\s-o)|find|fd(?!.*\s-[xX])|rg|grep|egrep|ag|nl|wc|"
    r"sed -n|awk|jq|stat|file|which|pwd|env(?=\s*$)|echo|printf|diff|du|df|ps|cd|export|for|done|fi|true|sleep|wait|test|\[|"
    r"git (?:status|log|show|diff|branch(?=\s*$|\s-(?:[avrl]|-(?:all|list|show-current|contains|merged|no-merged)))|blame|"
    r"grep|rev-parse|ls-files|ls-tree|merge-base|remote(?! [a-z])|worktree list|fetch)|"
    r"[\w.-]+ (?:\w+ )?(?:--help|--version)|gh \w+ (?:view|list|status|diff|checks)|"
    rf"Get-Content|dir|type){_NO_MORE}"
)
_FILTER = re.compile(rf"\s*(?:sort|uniq|cut|tr|column|rev|tac|fold|more|sed)(?!.*\s-[io]){_NO_MORE}")
"""Other filters for output that only read."""
_XARGS = re.compile(r"\s*xargs(?:\s+-\S+(?:\s+\d+)?)*\s")
"""The command that xargs calls must only read, too."""
_QUOTED = re.compile(r"\\[\s\S]|'[^']*(?:'|\Z)|\"[^\"\\]*(?:\\[\s\S][^\"\\]*)*(?:\"|\\?\Z)|(?<![^\s;&|()])#[^\n]*")
"""Text that the shell takes literally (an open quotation up to the end), or ignores."""
_FIRST = r"(?:^|[\n;&|({])[ \t]{0,40}(?:(?:do|then|else|sudo|time|command|exec)[ \t]{1,40}){0,3}"
"""The possible text before the name of a command; elsewhere the same word is an argument."""
_WRITING = re.compile(
    rf"(?:(?P<into>(?<![-=<>])>>?\s{{0,9}})|{_FIRST}(?:tee(?: -a)?|(?P<copies>cp(?: -(?!\w*t)\w+)*)|"
    r"(?:git )?(?:mv|rm)(?: -\w+)*|touch|(?:sed -i|perl -(?=\w*i))\S*(?: (?:-\w+|''))*?(?:(?: -e \S+)+| (?!-)\S+))\s+)"
    r"(?P<paths>(?:(?![-&<>|$(]|/dev/)[\w./@~+-]{2,200}(?=[\s;&|)<>]|$)[ \t]*){1,8})(?P<more>[^\n;&|)<>])?"
)
_READING_FILES = re.compile(
    rf"{_FIRST}(?:cat|head|tail|less|nl|wc|(?:sed -n|jq)(?:\s-\S{{1,80}}){{0,8}}\s\S{{1,400}})\s"
    r"((?:[^\s;&|<>]{1,200}[ \t]{0,9}){1,12})"
)
_FILE = re.compile(r"(?!-)(?=.*[./]\w)[\w./@~+-]{3,200}")
_SHELL = re.compile(
    rf"(?<![\w$/.-])(?P<name>[A-Za-z_]\w{{0,80}})=(?P<value>{_QUOTED.pattern}|[^\s;&|]{{0,400}})|"
    rf"\bfor\s(?P<each>\w{{1,80}})\sin\s(?P<list>[^;\n]{{0,2000}})|{_QUOTED.pattern}|"
    r"(?P<compares>\(\([^()\n]{0,200}\)\)|\[\[[^\n\]]{0,200}\]\])|"
    r"(?<![\w./@~+{}-])[\w./@~+{}-]{0,200}\$[\w./@~+{}$-]{0,200}"
)
"""An assignment to a variable, a quoted text, and a word with a variable in it."""
_PATH = re.compile(r"[\w./@~+{}$-]{1,200}")
_VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)\})")


def command_of(values: Mapping[str, Any]) -> str:
    """Return the shell command in a call's arguments, "" if there is none."""
    value = next((values[key] for key in SHELL_KEYS if key in values), "")
    if value in EDITOR_COMMANDS:
        return ""
    if isinstance(value, list) and value and all(isinstance(x, str) for x in value):
        value = value[-1] if value[0].rsplit("/", 1)[-1] in ("bash", "sh", "zsh", "powershell", "pwsh") else " ".join(value)
    return value.strip() if isinstance(value, str) else ""


def without_documents(command: str) -> str:
    """Return a command without its here-documents; one without an end reaches to the end of the command."""
    lines = command.replace("\\\n", " ").split("\n")
    last = {key: n for n, line in enumerate(lines) for key in (("", line.rstrip("\r")), ("-", line.strip("\t\r")))}
    kept: list[str] = []
    behind = quotes = 0
    for n, line in enumerate(lines):
        if n < behind:
            continue
        kept.append(line)
        behind = n + 1
        for found in _DOCUMENT.finditer(line):
            end = (found[1], found[2] or found[3] or found[4])
            if last.get(end, -1) >= behind:
                ended = (k for k in range(behind, len(lines)) if lines[k].strip("\t\r" if end[0] else "\r") == end[1])
                behind = 1 + next(ended)
            elif not (quotes + _quotes(line[: found.start()])) % 2 and "((" not in line:
                behind = len(lines)
        quotes += _quotes(line)
    return "\n".join(kept).strip()


def acting(command: str) -> str:
    """Return a command from its first part that does more than read or prepare; "" if no part does."""
    shell = _SILENCED.sub(_blank, _QUOTED.sub(_blank, command))
    start = 0
    while prefix := _PREFIX.match(shell, start):
        start = prefix.end()
    if len(command) > MOST_COMMAND_CHARS:
        return command[start:].strip()
    for found in (*_NEXT.finditer(shell, start), None):
        first, *behind = shell[start : found.start() if found else len(shell)].split("|")
        if not (_READING_COMMAND.match(first) and all(map(_only_reads, behind))):
            return command[start:].strip()
        start = found.end() if found else 0
    return ""


def masks_status(command: str) -> bool:
    """Whether the exit status of a command may belong to another part than the failed one."""
    return any(mark in _QUOTED.sub(_blank, command[:MOST_COMMAND_CHARS]) for mark in "|;\n")


def written_files(command: str) -> Iterator[str]:
    """Yield the files that a command without here-documents writes, moves or deletes, as far as it names them itself."""
    for found in _WRITING.finditer(_resolved(command)):
        paths = found["paths"].split()
        if found["copies"]:  # only the last path is written, so all must be known
            yield from () if found["more"] or len(paths) == 1 else paths[-1:]
        else:
            yield from paths[:1] if found["into"] else paths


def read_files(command: str) -> Iterator[str]:
    """Yield the files that a command without here-documents shows, as far as it names them itself."""
    for found in _READING_FILES.finditer(_resolved(command)):
        yield from filter(_FILE.fullmatch, found[1].split())


def _only_reads(piped: str) -> bool:
    """Whether a command that gets another one's output only reads."""
    called = _XARGS.sub("", piped, 1)
    return bool(_READING_COMMAND.match(called) or _FILTER.match(called))


def _quotes(text: str) -> int:
    return text.count('"') + text.count("'")


def _blank(found: re.Match[str]) -> str:
    text = found[0]
    runs = text[0] == '"' and ("$(" in text or "`" in text)
    is_open = text[0] in "\"'" and (len(text) == 1 or text[-1] != text[0])
    fill = " " if text[0] == "#" else "_"
    return "$(".ljust(len(text)) if runs or is_open else "".join(c if c == "\n" and fill == " " else fill for c in text)


def _resolved(command: str) -> str:
    """Return a command with paths in place of variables and quoted paths, and marks in place of other quoted text."""
    variables: dict[str, list[str]] = {}

    def resolved(found: re.Match[str]) -> str:
        if name := found["name"] or found["each"]:
            given = found["value"] if found["each"] is None else found["list"]
            words = [_values(word, variables) for word in given.strip("\"'").split()]
            values = [value for found_values in words for value in found_values] if all(words) else []
            variables[name] = values[: MOST_FILES + 1]
            return " "
        if found["compares"] or found[0][0] in "#\\":
            return "''" if found["compares"] else "$" if found[0][0] == "\\" else " "
        quoted = found[0][0] in "\"'"
        if quoted and (not any(mark in found[0] for mark in "/.$") or (found[0].startswith("'") and "$" in found[0])):
            return "''"
        return " ".join(_values(found[0], variables)) or ("''" if quoted else "$")

    beginning = command if len(command) <= MOST_COMMAND_CHARS else command[:MOST_COMMAND_CHARS].rpartition(" ")[0]
    return _SHELL.sub(resolved, beginning)


def _values(word: str, variables: Mapping[str, list[str]]) -> list[str]:
    """Return the paths that a word expands to; none if the command does not determine them."""
    bare = word.strip("\"'")
    names = sorted({a or b for a, b in _VARIABLE.findall(bare)}, key=len, reverse=True)
    choices = [variables.get(name, []) for name in names]
    found = []
    for chosen in product(*choices) if _PATH.fullmatch(bare) and prod(map(len, choices)) <= MOST_FILES else ():
        path = bare
        for name, value in zip(names, chosen, strict=True):
            path = path.replace(f"${{{name}}}", value).replace(f"${name}", value)
        found.append(path)
    return found if all(len(path) <= LONGEST_PATH_CHARS for path in found) else []
