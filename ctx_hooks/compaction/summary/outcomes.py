"""How a call ended, by what it returned: whether it failed and why, else what a run came to."""

from __future__ import annotations

import re

from ctx_hooks.conversation import placeholders
from ctx_hooks.conversation.model import ToolResult
from ctx_hooks.texts.error_lines import error_lines

ENDS_CHARS = 400
"""Tools say at the beginning or the end of what they return how it went."""
STATUS_PLACE_CHARS = 10
"""A status that begins a result so early is of all of it ("Process exited with code 1"); elsewhere it counts at the end."""
OUTCOME_CHARS = 120
"""What is quoted of why a call failed."""
ENDING_CHARS = 120
"""What is quoted of what a call returned last."""
OUTPUT = "\nOutput:\n"
"""Codex puts the time and the status before it."""
TRACEBACK = "Traceback (most recent call last)"
"""What it is the heading of ends with the reason."""
RUNNING = re.compile(r"running (?:with session|in (?:the )?background with) ID:? ([\w-]{1,80})", re.IGNORECASE)
_TALLY = re.compile(
    r"(?:^|[^\w.])\d+ (?:tests? )?(?:pass|fail|error|warning|problem|issue)|\b(?:pass|fail|error)(?:ed|ing|ures?|s)?:? \d|"
    r"^All \w+ passed|^\[[\w/.#()-]{1,100}(?: [\w()-]{1,20})? [0-9a-f]{7,40}\] |^Found \d+ |"
    r"^\s*(?:[0-9a-f]{7,40}\.\.[0-9a-f]{7,40}|\* \[new branch\]) |^https?://\S+$",
    re.IGNORECASE,
)
"""In few words what a run came to: what passed and failed, what was committed, pushed and opened."""
_BAD_END = re.compile(r"abort|crash|error|fail|fault|kill|panic", re.IGNORECASE)
"""In a last line: it is quoted beside the tally of what ran before."""
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


def outcome_of(result: ToolResult | None, kind: str, *, masked: bool) -> tuple[bool, str]:
    """Return whether a call ended badly, and how in a line; only what executes fails by what it prints.

    That counts where there is no status, and where it is `masked`, another command's.

    Args:
        result: what the call returned, None for nothing yet.
        kind: of the action: "changed" and "ran" execute.
        masked: whether the status is another command's than the one that matters.
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
    """Return what a run came to and how it ended, else a short result on one line, of a longer one the last line.

    With `tallies` only what it came to is said, "" where nothing says that.

    What a tool says beside the result is no part of it.
    """
    begins = text.find(OUTPUT, 0, ENDS_CHARS)
    begin = begins + len(OUTPUT) if begins >= 0 else 0
    is_short = len(text) - begin <= 2 * ENDS_CHARS
    head, tail = text[begin : begin + ENDS_CHARS].rpartition("\n")[0], text[-ENDS_CHARS:]
    ends = text[begin:] if is_short else f"{head}\n{tail[tail.find(chr(10)) + 1 :]}"
    lines = [" ".join(s.split()) for s in ends.split("\n") if _SAYING.search(s) and not _STATUS.search(s)]
    told = [line for line in lines if _TALLY.search(line)]
    if told and not tallies and lines[-1] not in told and _BAD_END.search(lines[-1]):
        told.append(lines[-1][:ENDING_CHARS])
    while len("; ".join(told)) > ENDING_CHARS:
        told.pop(0)
    if told or tallies:
        return "; ".join(dict.fromkeys(told))
    if lines and is_short and TRACEBACK not in ends and len("; ".join(lines)) <= ENDING_CHARS:
        return "; ".join(lines)
    left = None if lines else RUNNING.search(text, 0, ENDS_CHARS)
    line = lines[-1] if lines else left[0] if left else ""
    return line if len(line) <= ENDING_CHARS else placeholders.GAP + line[1 - ENDING_CHARS :]
