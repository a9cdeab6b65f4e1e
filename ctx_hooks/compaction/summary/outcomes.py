"""How a call ended, by its result: whether it failed and why, else the outcome of a run."""

import re
from collections.abc import Iterable
from itertools import islice

from ctx_hooks.conversation import placeholders
from ctx_hooks.conversation.model import ToolResult
from ctx_hooks.texts.pieces import error_lines

ENDS_CHARS = 400
"""Tools state the outcome at the beginning or the end of their output."""
STATUS_PLACE_CHARS = 10
"""A status this early in a result is its overall status ("Process exited with code 1"); otherwise the last one counts."""
OUTCOME_CHARS = 200
"""The longest quoted reason of a failed call: what an error message usually has."""
MOST_REASONS = 2
ENDING_CHARS = 120
"""The longest quotation of the end of a call's output."""
LAST_CHARS = 1_000
"""The end of a structured text, in which the last phrase is looked for: behind it come the fields of its envelope."""
OUTPUT = "\nOutput:\n"
"""Codex puts the time and the status before it."""
TRACEBACK = "Traceback (most recent call last)"
"""The heading of a traceback, which ends with the reason."""
_RUNNING = re.compile(r"running (?:with session|in (?:the )?background with) ID:? ([\w-]{1,80})", re.IGNORECASE)
_TALLY = re.compile(
    r"(?:^|[^\w.])\d+ (?:tests? )?(?:pass|fail|error|warning|problem|issue)|\b(?:pass|fail|error)(?:ed|ing|ures?|s)?:? \d|"
    r"^All \w+ passed|^\[[\w/.#()-]{1,100}(?: [\w()-]{1,20})? [0-9a-f]{7,40}\] |^Found \d+ |"
    r"^\s*(?:[0-9a-f]{7,40}\.\.[0-9a-f]{7,40}|\* \[new branch\]) |^https?://\S+$",
    re.IGNORECASE,
)
"""Short outcomes of a run: counts of passed and failed tests; commits, pushes, opened requests."""
_BAD_END = re.compile(r"abort|crash|error|fail|fault|kill|panic", re.IGNORECASE)
"""A bad ending in a last line, which is quoted beside the tally of the earlier runs."""
_MARKUP = re.compile(r"(?:\s*</?[\w:.-]{1,80}(?:\s[^<>]{0,200})?>)+\s*|\W*")
"""A line of elements or signs without a word is no outcome."""
_LABELLED = re.compile(r"(?:<\w{1,80}>)?(?:[A-Z]\w*(?: \w+){0,3}: [\w.]+(?: \w+)?|\w{1,80}: [\d.]+)(?:</\w{1,80}>)?")
"""A line such as "Timeout limit: 30 seconds" or "duration_ms: 457" after an output is the tool's own."""
_COLOUR = re.compile(r"\x1b\[[\d;?]{0,20}[A-Za-z]")
_QUOTED = re.compile(r"\\+[nrt\"/]+|\"|(?<=[=(,{\[])'|(?<=, )'|(?<!\\)'(?=[),}\]])|[{}\[\]]")
"""What encloses the texts of JSON, of JSON in a string, and of an object that a program printed."""
_ESCAPED = re.compile(r"\\+'")
_PHRASE = re.compile(r"(?:[^\W\d_]{2,}[,.:;]? +){2}[\w(/]|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{6}")
"""Three words in a row; or six characters of a script that has no spaces between them."""
_NO_END = re.compile(r"[;,{}\[\](]\)*$|^\S+[/\\]\S+$")
"""The last line of source text, of a list, or of paths says nothing about how a long output ended."""
_FIELD = re.compile(r"\s|[\w.-]{1,80}: ")
"""The beginning of a nested line, or of a field with its name: it describes something, and is no outcome."""
_STATUS = re.compile(
    r"(?:exit(?:ed)?(?: with)?(?: code| status)?|exit_?code|return_?code|status code)[\"']?\s*[:=]?\s*(-?\d{1,5})\b",
    re.IGNORECASE,
)
_TROUBLE = re.compile(
    r"^\s*(?:Error|ERROR|error|fatal|FAILED|Traceback|panic)\b|\bTraceback \(most recent call last\)|"
    r"^\w*make(?:\[\d+\])?: \*\*\*|"
    r"^\s*<\w{0,20}error>|^(?:---? )?FAIL\b|"
    r"\b[1-9]\d* (?:failed|failing|failures?|errors?)\b|✗|✖|npm ERR!",
    re.MULTILINE,
)
_FLAG = re.compile(r"\bis_?Error[\\\"']{0,9}\s?[:=]\s?[tT]rue\b")
"""The flag of an envelope, which stands before or behind its content; inside it may be quoted code."""
FLAG_CHARS = 100
_LOCATED = re.compile(
    r"^[ \t]{0,40}(?:\[[\w:.-]{1,40}\] )?[\w./@-]{1,200}\.\w{1,8}(?::\d+:|\(\d+[,)]).*\S|"
    r"^\w*make(?:\[\d+\])?: \*\*\* (?!\[).+",
    re.MULTILINE,
)
"""Messages on a line of a file, perhaps behind a task's name, and what make misses: it brackets targets that failed."""
_SOURCE = re.compile(r"[ \t>+-]{0,12}\d{1,7} ?[|│]|[+-]\s")
"""Beginnings of source or diff lines: these may name an error that the program itself defines."""


def outcome_of(result: ToolResult | None, kind: str) -> tuple[bool, str]:
    """Return whether a call ended badly, by its status or else by what it prints, and how it ended, in one line."""
    if result is None:
        return False, ""
    text = _COLOUR.sub("", result.original_text)
    status, executes = _status(text), kind in ("ran", "changed")
    is_bad_status = status not in ("", "0")
    prints_error = _FLAG.search(f"{text[:FLAG_CHARS]}\n{text[-FLAG_CHARS:]}") or (
        _TROUBLE.search(f"{text[:ENDS_CHARS]}\n{text[-ENDS_CHARS:]}") if kind == "ran" else _TROUBLE.match(text[:ENDS_CHARS])
    )
    if not (result.is_error or is_bad_status or (executes and not status and prints_error)):
        return False, _ending(text) if kind == "ran" else ""
    why = (executes and _reason(text)) or _ending(text)
    tally = _newest(filter(_TALLY.search, _lines(text))) if executes else ""
    counted = f"({tally})" if tally and tally not in why else ""
    return True, " ".join(filter(None, (f"exit {status}" * is_bad_status, why[:OUTCOME_CHARS], counted)))


def _status(text: str) -> str:
    """Return the exit status that a tool states before a call's output, else after it, "" for none."""
    ends = f"{text[:ENDS_CHARS]}\n{text[-ENDS_CHARS:]}".lower()
    if "exit" not in ends and "code" not in ends:  # this is ten times faster than the pattern
        return ""
    output = text.find(OUTPUT, 0, ENDS_CHARS)
    first = _STATUS.search(text, 0, output if output >= 0 else ENDS_CHARS)
    if first is not None and (output >= 0 or first.start() <= STATUS_PLACE_CHARS):
        return first[1]
    found = [*_STATUS.findall(text[:ENDS_CHARS]), *_STATUS.findall(text[-ENDS_CHARS:])]
    return found[-1] if found else ""


def _reason(text: str) -> str:
    """Return the first line that locates a failure, else the first two that explain it."""
    if located := _LOCATED.search(text):
        return _with_next(text, located.start(), located[0])
    lines = islice(filter(_explains, error_lines(text)), MOST_REASONS)
    return "; ".join(dict.fromkeys(_bad_words(line) or _with_next(text, text.find(line), line) for line in lines))


def _bad_words(line: str) -> str:
    """Return the first phrase with an error in an envelope on one line; "" of another line."""
    said = _phrases(line) if "\\" in line and _QUOTED.search(line) else []
    return next((phrase.strip() for phrase in said if any(error_lines(phrase))), "")


def _explains(line: str) -> bool:
    """Whether an error line is neither a status, nor a heading of other lines, nor source text."""
    return not (_STATUS.search(line) or TRACEBACK in line or _SOURCE.match(line))


def _with_next(text: str, start: int, line: str) -> str:
    """Return a line of `text`, with the next one if it is only a heading."""
    if not line.rstrip().endswith(":"):
        return line.strip()
    behind = start + len(line)
    return f"{line.strip()} {text[behind : behind + ENDS_CHARS].strip().split(chr(10), 1)[0]}".strip()


def _ending(text: str) -> str:
    """Return a run's tallies and a bad last line, else a short result on one line, or the last line of a longer one."""
    lines = _lines(text)
    tallies = [line for line in lines if _TALLY.search(line)]
    if tallies and _BAD_END.search(lines[-1]):
        tallies.append(lines[-1][:ENDING_CHARS])
    if tallies:
        return _newest(tallies)
    if len(text) <= 2 * ENDS_CHARS and TRACEBACK not in text and len(whole := "; ".join(lines)) <= ENDING_CHARS:
        return whole
    line = lines[-1] if lines else ""
    if len(line) <= ENDING_CHARS:
        return "" if _NO_END.search(line) else line
    end = placeholders.GAP + line[1 - ENDING_CHARS :]
    words = _last_words(text[-LAST_CHARS:]) if _QUOTED.search(line) else end
    return words or ("" if "\\" in end else end)  # the fields of an envelope say nothing


def _last_words(text: str) -> str:
    """Return the last phrase in the end of a structured text on one line; "" if it is only a field of a list."""
    said = _phrases(text)[-1:]
    return "".join(phrase[:ENDING_CHARS].strip(" ,;:=(\\") for phrase in said if not _FIELD.match(phrase))


def _phrases(text: str) -> list[str]:
    """Return the phrases in a structured text, without what encloses them."""
    return [_ESCAPED.sub("'", piece.rstrip()) for piece in _QUOTED.split(text) if _PHRASE.search(piece)]


def _lines(text: str) -> list[str]:
    """Return the lines at both ends of an output that say something, without the tool's own; else where it runs on."""
    begins = text.find(OUTPUT, 0, ENDS_CHARS)
    begin = begins + len(OUTPUT) if begins >= 0 else 0
    head, tail = text[begin : begin + ENDS_CHARS].rpartition("\n")[0], text[-ENDS_CHARS:]
    ends = text[begin:] if len(text) - begin <= 2 * ENDS_CHARS else f"{head}\n{tail[tail.find(chr(10)) + 1 :]}"
    lines = [" ".join(s.split()) for s in ends.split("\n") if not (_MARKUP.fullmatch(s) or _STATUS.search(s))]
    while lines and _LABELLED.fullmatch(lines[-1]) and not (_TALLY.search(lines[-1]) or _BAD_END.search(lines[-1])):
        lines.pop()
    return lines or [found[0] for found in _RUNNING.finditer(text, 0, ENDS_CHARS)]


def _newest(lines: Iterable[str]) -> str:
    """Return the last of these lines that fit one quotation together, each once."""
    fitting = list(dict.fromkeys(lines))
    while len("; ".join(fitting)) > ENDING_CHARS:
        fitting.pop(0)
    return "; ".join(fitting)
