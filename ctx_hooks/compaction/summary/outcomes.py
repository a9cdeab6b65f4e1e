"""How a call ended, by what it returned: whether it failed and why, else what a run came to."""

import re
from itertools import chain, islice, takewhile, zip_longest

from ctx_hooks.conversation import placeholders
from ctx_hooks.conversation.model import ToolResult
from ctx_hooks.texts.error_lines import error_lines

ENDS_CHARS = 400
"""Tools say at the beginning or the end of what they return how it went."""
STATUS_PLACE_CHARS = 10
"""A status that begins a result so early is of all of it ("Process exited with code 1"); elsewhere it counts at the end."""
OUTCOME_CHARS = 200
"""What is quoted of why a call failed: the names of a few tests, and what the first of them says."""
MOST_TESTS, TEST_CHARS = 3, 80
TEST_OUTPUT_CHARS = 4_000
"""Behind the name of a failing test so much is looked at for what it says."""
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
_LOCATED = re.compile(r"^[ \t]{0,40}(?:\[[\w:.-]{1,40}\] )?[\w./@-]{1,200}\.\w{1,8}(?::\d+:|\(\d+[,)]).*\S", re.MULTILINE)
"""What compilers, linters and failing tests say of a line of a file; some runners put the name of a task before it."""
_FAILING_TEST = re.compile(
    r"^[ \t]{0,16}(?:--- FAIL: |FAILED (?=\S{0,400}[./:])|\(fail\) |not ok \d{1,6} (?:- )?|(?:FAIL|ERROR): (?=test)|"
    r"[✗✖×✕●] {1,2}|FAIL {1,2}(?=\S{0,400}[./])|test (?=\S{1,200} \.\.\. FAILED))(?P<name>\S.{0,200})",
    re.MULTILINE,
)
"""The test that fails, as Go, pytest, Bun, TAP, unittest, Vitest, Jest and Cargo name it."""
_BEHIND_NAME = re.compile(r"(?: [\[(]?[\d.,]{1,12} ?m?s[\])]?| \.\.\. FAILED)$")
_SAYS = re.compile(
    r"^[ \t]{0,16}(?:E {1,7})?[\w.]{0,80}(?:[Ee]rror|Exception)\b[^:\n]{0,20}:|\bexpect\(|^\s{0,16}→ |panicked at "
)
"""Why a test fails, as pytest, Bun, Jest, Vitest and Cargo say it."""
_COMPLAINT = re.compile(
    r"\b(?:expected|want|should|got|fail\w*|error|must|unexpected|cannot|could not|not)\b", re.IGNORECASE
)
_SOURCE = re.compile(r"[ \t>+-]{0,12}\d{1,7} ?[|│]|[+-]\s")
"""How the lines of a source or a difference begin, which may name an error of the program's own."""
_INDENTED = re.compile(r"[ \t]")
_MISSING = re.compile(r"^\w*make(?:\[\d+\])?: \*\*\* (?!\[).+", re.MULTILINE)
"""Make says what it lacks, and behind it, in brackets, only which target failed."""


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
    """Return a failing test with what it says, and others, else the first line that says where or why something failed."""
    first = _FAILING_TEST.search(text)
    if first is not None:
        found = islice(_FAILING_TEST.finditer(text, first.start()), 2 * MOST_TESTS)
        name, *others = dict.fromkeys(_BEHIND_NAME.sub("", test["name"]).strip()[:TEST_CHARS] for test in found)
        said = _said_beside(text, first)
        return "; ".join([f"{name}: {said}" if said else name, *others[: MOST_TESTS - 1]])
    located = _LOCATED.search(text) or _MISSING.search(text)
    line = located[0] if located else next(filter(_explains, error_lines(text)), "")
    return _with_next(text, text.find(line), line)


def _said_beside(text: str, test: re.Match[str]) -> str:
    """Return why a test fails, said nearest to its name: Bun says it before the name, most runners behind it.

    Go puts all that a test has written below its name, or above it with `-v`: the last complaint counts.
    """
    start = max(0, test.start() - TEST_OUTPUT_CHARS)
    before = text[start : test.start()].split("\n")[:-1]
    behind = text[test.end() : test.end() + TEST_OUTPUT_CHARS].split("\n")[1:]
    own = [*takewhile(_INDENTED.match, behind)][::-1] or takewhile(_INDENTED.match, reversed(before))
    written = [line for line in own if _LOCATED.match(line)]
    reasons = [*filter(_COMPLAINT.search, written), *written][:1]
    beside = chain(*zip_longest(reversed(before), behind, fillvalue=""))
    line = next(chain(reasons, (line for line in beside if _LOCATED.match(line) or _SAYS.search(line))), "")
    return _with_next(text, text.find(line, start), line)


def _explains(line: str) -> bool:
    """Whether a line that names an error is neither a status, nor a heading of others, nor part of a source."""
    return not (_STATUS.search(line) or TRACEBACK in line or _SOURCE.match(line))


def _with_next(text: str, start: int, line: str) -> str:
    """Return a line of `text`, with the next one if it is only a heading."""
    if not line.rstrip().endswith(":"):
        return line.strip()
    behind = start + len(line)
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
