"""The parts of a shell command: what each runs, whether it only reads, and the files that it writes and shows.

A word with a variable or a pattern names no file. A mistake only puts a line of a record under another heading.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

MOST_COMMAND_CHARS = 8_000
"""Only the beginning of a longer command is read."""
SHELL_KEYS = ("command", "cmd", "commands", "script")
VIEWS = ("view", "open")
EDITOR_COMMANDS = (*VIEWS, "create", "str_replace", "insert", "undo_edit")
"""Sub-commands of editors (Anthropic's text editor, OpenHands)."""
MOST_FILES = 50
"""A call that changes more files is a commit or a generator; its command says more than a list of files."""
_DOCUMENT = re.compile(r"(?<!<)<<-?[ \t]?['\"\\]?([A-Za-z_][\w.-]{0,80})")
_TOKEN = re.compile(
    r"(?P<operator>&&|\|\||&>{1,2}|\d?>{1,2}&?|[;\n|&()<])|#[^\n]*|"
    r"(?P<word>(?:\\[\s\S]|'[^']*'|\"(?:\\[\s\S]|[^\"\\])*\"|[^\s;&|()<>'\"\\])+)"
)
_QUOTE = re.compile(r"\\([\s\S])|['\"]")
_PREFIX = re.compile(
    r"[A-Za-z_]\w*=.*|-.*|[\d.]+[smh]?|[{!]|do|then|else|if|while|until|sudo|env|time|timeout|nice|nohup|command|exec|xargs",
    re.DOTALL,
)
"""Words before the name of a command."""
_READS = re.compile(
    r"cat|head|tail|less|more|ls|tree|find|fd|rg|[ef]?grep|ag|nl|wc|sed|awk|jq|stat|file|which|type|pwd|echo|printf|diff|du|df|ps|"
    r"cd|export|set|source|\.|for|done|fi|true|false|sleep|wait|test|\[\[?|sort|uniq|cut|tr|column|basename|dirname|date|dir|"
    r"Get-Content"
)
_GIT_READS = re.compile(r"status|log|show|diff|blame|grep|rev-parse|ls-files|ls-tree|merge-base")
_SHOWS = re.compile(r"cat|head|tail|less|nl|wc|sed|jq")
_WRITES = re.compile(r"-(?:delete|exec|execdir|ok|x|X|o|i\S*)")
"""Options with which commands that read do more."""
_FILE = re.compile(r"(?!-|/dev/)[\w./@~+-]{2,200}")


class Part(NamedTuple):
    """One simple command: its words from its name on, the files that its output goes to, and where its pipeline begins."""

    words: tuple[str, ...]
    into: tuple[str, ...]
    joint: str
    """The operator before it, "" for the first."""
    start: int

    @property
    def acts(self) -> bool:
        """Whether it does more than read."""
        name, second, *_ = (*self.words, "", "")
        reads = _GIT_READS.fullmatch(second) if name == "git" else not name or _READS.fullmatch(name)
        runs = any("$(" in word or "`" in word for word in self.words)
        return not reads or runs or bool(self.into) or (name != "git" and any(map(_WRITES.fullmatch, self.words)))

    def written(self) -> Iterator[str]:
        """Yield the files that it writes or moves, as far as it names them itself; what it deletes has no state to know."""
        name, *rest = self.words[1:] if self.words[:2] == ("git", "mv") else self.words or ("",)
        named = [word for word in rest if word and not word.startswith("-")]
        if name == "cp":
            named = named[-1:] if len(named) > 1 and "-t" not in rest else []
        elif name in ("sed", "perl"):
            named = (named[-1:] if "-e" in rest else named[1:]) if any(word.startswith("-i") for word in rest) else []
        elif name not in ("tee", "touch", "mv"):
            named = []
        yield from filter(_FILE.fullmatch, (*named, *self.into))

    def shown(self) -> Iterator[str]:
        """Yield the files that it shows, as far as it names them itself."""
        named = self.words[1:] if self.words and _SHOWS.fullmatch(self.words[0]) else ()
        yield from (word for word in named if _FILE.fullmatch(word) and re.search(r"[./]\w", word))

    @property
    def patches(self) -> bool:
        """Whether it applies a patch."""
        return bool(self.words) and (
            self.words[0].rpartition("/")[2] in ("apply_patch", "patch")
            or (self.words[0] == "git" and self.words[1:2] in (("apply",), ("am",)) and "--check" not in self.words)
        )


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
    command = command.replace("\\\n", " ")
    at = 0
    while opened := _DOCUMENT.search(command, at):
        at = opened.end()
        line_end = command.find("\n", at)
        if line_end < 0:
            break
        end = re.compile(rf"^[ \t]*{re.escape(opened[1])}[ \t\r]*$", re.MULTILINE).search(command, line_end + 1)
        command = command[:line_end] + (command[end.end() :] if end else "")
    return command.strip()


def first_line(script: str, command: str) -> str:
    """Return the first line of a script, with the first line of the here-document that it opens in `command`."""
    line = script.split("\n", 1)[0]
    at = command.find(f"{line}\n") if _DOCUMENT.search(line) else -1
    return line if at < 0 else " ".join(command[at:].split("\n", 2)[:2])


def parts_of(script: str) -> list[Part]:
    """Return the parts of a command without here-documents, in order."""
    found: list[Part] = []
    words: list[str] = []
    into: list[str] = []
    joint, redirect, start = "", "", -1

    def close() -> None:
        if words or into:
            skipped = next((n for n, word in enumerate(words) if not _PREFIX.fullmatch(word)), len(words))
            is_test = words[skipped : skipped + 1] == ["[["]
            found.append(Part(tuple(words[skipped:]), () if is_test else tuple(into), joint, start))
        words.clear()
        into.clear()

    for token in _TOKEN.finditer(script[:MOST_COMMAND_CHARS]):
        operator, word = token["operator"], token["word"]
        start = token.start() if start < 0 and word else start
        if word:
            bare = _QUOTE.sub(r"\1", word) if "'" not in word or "$" not in word else word
            if not redirect:
                words.append(bare)
            elif not (bare == "/dev/null" or (redirect.endswith("&") and bare.isdigit())):
                into.append(bare)
            redirect = ""
        elif operator and (operator == "<" or ">" in operator):
            redirect = operator if operator != "<" else ""
        elif operator:
            close()
            joint, redirect = operator, ""
            start = start if operator in "|(" else -1
    close()
    return found


def acting(script: str, parts: Sequence[Part]) -> str:
    """Return a command from the pipeline of its first part that does more than read; "" if no part does."""
    if len(script) > MOST_COMMAND_CHARS and not any(part.acts for part in parts):
        return script
    return next((script[part.start :].strip() for part in parts if part.acts), "")
