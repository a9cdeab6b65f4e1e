"""What of a summary that a model has written is used.

Whoever goes on from a summary believes what stands in it, so leaving too much out is the cheap error: of an entry that is
left out the extracts below the summary say what was done, of a summary that is rejected the deterministic form says all. A
wrong goal, or words that the user has not said, would mislead all that follows: they reject the whole.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from typing import Literal, TypeAlias

from ctx_hooks.addons.summaries.candidates import SummaryTask
from ctx_hooks.addons.summaries.file_states import FileStates, file_states
from ctx_hooks.addons.summaries.prompt import GOAL, INSTRUCTIONS, role_of
from ctx_hooks.addons.summaries.unknown_names import unknown_names
from ctx_hooks.conversation.model import Message
from ctx_hooks.policy.addon_settings import SummarySettings
from ctx_hooks.tokens.counter import Counter

Fault: TypeAlias = Literal["unknown_names", "contradicts_record"]
Reason: TypeAlias = Fault | Literal["empty", "too_long", "longer_than_original", "refusal", "misquoted", "no_goal"]

MOST_FAULTY_FRACTION = 0.5
"""A model that gets more of the entries wrong is not believed in the others."""

LONGEST_REFUSAL_CHARS = 1_000
"""Models refuse in a sentence or a few, in any language, and without the titles that they were told to write. A summary as
short as that and without a title is taken for a refusal, too."""
_TITLE = re.compile(r"(?:#{1,6} |\*\*)\S")
"""How a title begins: `## Goal`, as was asked, or `**Goal**`."""
_OPENING = re.compile(r"(#{1,6})(?!#).*|[*_]{1,3}(?=\S)[^*]+")
"""A title however a model writes it; of a line that begins in bold only what is bold."""
_CLOSING_LEVEL = re.compile(r"(#{1,6}) ")
_WHOLE_TITLE = re.compile(r"#{1,6} .*|(?:\*\*|__)[^*_]+(?:\*\*|__):?")
"""A line that is a title and nothing else."""
_INLINE = re.compile(r"[:\uff1a]\W*\w")
"""What a title has when the text of its section begins on its line."""
_UNDERLINE = re.compile(r"=+|-+")
"""What makes a title of the line above (Setext)."""
_WORDS_OF_USER = (re.compile("user", re.IGNORECASE), re.compile("words", re.IGNORECASE))
"""What the title of the user's own words has in it: models number it, or write "The user's own words"."""
_NO_LEVEL = 7
"""A title without `#` is below all others: the next one with them closes its section."""
_BULLET = re.compile(r"^(?:[-*\u2022>]|[0-9]{1,3}[.)])?\s*")
_POINT = re.compile(r"\s*(?:[-*\u2022]|[0-9]{1,3}[.)])\s")
_EMPHASIS = "*_ "
_QUOTATION_MARKS = "\"'\u00ab\u00bb\u2018\u2019\u201c\u201d\u201e\u300c\u300d\u300e\u300f"
"""Of English, French, German, Chinese and Japanese."""
_STOPS = ".\u3002"
"""What a model adds behind a quotation."""
_AROUND_QUOTATION = f"{_EMPHASIS}{_QUOTATION_MARKS}{_STOPS}-=`"
_BEHIND_TITLE = f"{_AROUND_QUOTATION}:\uff1a()"
_NOTHING = frozenset({"", "none", "n/a", "nothing", "\u65e0", "\u6ca1\u6709"})
"""What models write into a section that they were told to leave out."""


@dataclass(frozen=True, slots=True)
class Checked:
    """A summary that was checked.

    Attributes:
        text: what of it is used: what the model has written, without the entries that are left out; "" if it is rejected.
        reasons: one for each of these entries, or why it is rejected. `empty`; `too_long`: than the policy's `max_tokens`;
            `longer_than_original`: than what it stands for; `refusal`; `misquoted`: words of the user that the user has not
            said; `no_goal`: nothing stands under its title. Of entries, and of a summary whose goal or most entries have it:
            `unknown_names`: a path, figure or identifier that stands nowhere in the conversation; `contradicts_record`: a
            file was changed or deleted that was only read, or the reverse.
    """

    text: str
    reasons: tuple[Reason, ...]


def rejected(reason: Reason) -> Checked:
    """Return a summary that may not be used."""
    return Checked("", (reason,))


def checked(text: str, task: SummaryTask, settings: SummarySettings, counter: Counter) -> Checked:
    """Return what of a summary is used.

    Raises:
        CompressionTimeoutError: the deadline is over.
    """
    # JSON can carry a lone surrogate, no request can: it would stand in every one that holds the summary.
    text = text.encode("utf-8", "replace").decode().strip()
    if not text:
        return rejected("empty")
    tokens = counter.text(text)
    if tokens > settings.max_tokens:
        return rejected("too_long")
    if tokens >= counter.text(task.before) + counter.messages(task.messages, task.format):
        return rejected("longer_than_original")
    if len(text) <= LONGEST_REFUSAL_CHARS and not any(map(_TITLE.match, text.splitlines())):
        return rejected("refusal")
    own_words = (
        settings.prompt or INSTRUCTIONS,  # what it says of a section is often written behind the section's title
        *_quotations(task.before),
        *(m.text for m in task.messages if role_of(m) == "user"),
    )
    if _misquotes(text, own_words, counter):
        return rejected("misquoted")
    sources = chain((settings.prompt or INSTRUCTIONS, task.before), _said_in(task.messages, counter))
    return _without_faults(text, unknown_names(text, sources), file_states(task.messages, task.before))


def _without_faults(text: str, unknown: Sequence[str], states: FileStates) -> Checked:
    """Return a summary without the entries that have a fault; a title with one takes its section along."""
    sections = [section for section in _sections(text) if "".join(section).strip()]
    goal = next((s for s in sections if GOAL.casefold() in s[0].casefold()), sections[0])
    if not (_INLINE.search(goal[0]) or "".join(goal[1:]).strip()):
        return rejected("no_goal")
    kept: list[str] = []
    faults: list[Fault] = []
    for section in sections:
        found = [_fault(entry, unknown, states) for entry in section]
        faulty = [fault for fault in found if fault]
        if faulty and section is goal:
            return rejected(faulty[0])
        faults += faulty
        left = [entry for entry, fault in zip(section, found, strict=True) if not (fault or found[0])]
        kept += left if "".join(left[1:]).strip() or not faulty else []
    if len(faults) > MOST_FAULTY_FRACTION * sum(bool(entry.strip()) for section in sections for entry in section[1:]):
        return rejected(faults[0])
    return Checked("\n".join(kept).strip() if faults else text, tuple(faults))


def _fault(entry: str, unknown: Sequence[str], states: FileStates) -> Fault | None:
    if any(name in entry for name in unknown):
        return "unknown_names"
    return "contradicts_record" if states.contradict(entry) else None


def _sections(text: str) -> list[list[str]]:
    """Return the title of each section, "" for what stands before the first, and behind it the entries.

    An entry is a point of a list with all that is indented below it, or a paragraph.
    """
    sections, indent = [[[""]]], 0
    lines = text.splitlines()
    for before, line, following in zip(["", *lines], lines, [*lines[1:], ""], strict=False):
        blanks = len(line) - len(line.lstrip())
        is_point = _POINT.match(line) is not None
        is_first = len(sections[-1]) == 1
        if _WHOLE_TITLE.fullmatch(line.strip()) or (line and not is_point and _UNDERLINE.fullmatch(following)):
            sections.append([[line]])
        elif is_first and _UNDERLINE.fullmatch(line):
            sections[-1][0].append(line)
        elif is_first or (blanks <= indent and line and (is_point or not before.strip())):
            sections[-1].append([line])
            indent = blanks
        else:
            sections[-1][-1].append(line)
    return [["\n".join(entry) for entry in section] for section in sections]


def _said_in(messages: Sequence[Message], counter: Counter) -> Iterator[str]:
    for message in messages:
        counter.deadline.check()
        yield message.name or ""
        yield message.text
        for call in message.calls:
            yield from (call.name, call.arguments)
        for result in message.results:
            yield result.text


def _misquotes(text: str, own_words: Sequence[str], counter: Counter) -> bool:
    """Whether a line that the summary gives for the user's words is none of them, to the letter but for blanks."""
    said = [" ".join(words.split()) for words in own_words]
    for quotation in dict.fromkeys(_quotations(text)):
        counter.deadline.check()
        if not any(quotation in words for words in said):
            return True
    return False


def _quotations(text: str) -> Iterator[str]:
    """Yield what the summary gives for the user's words, without what stands around the words.

    That is each line of their section, which ends at a title of its level or above, written with `#`: a bold line and what
    stands behind the title are in it, too. And it is each line in quotation marks, whatever the title above it
    says: in another language nothing else shows whose words these are. A reader takes all that for the user's.
    """
    section_level = 0
    lines = [line.strip() for line in text.splitlines()]
    for line, following in zip_longest(lines, lines[1:], fillvalue=""):
        if (closing := _CLOSING_LEVEL.match(line)) and len(closing[1]) <= section_level:
            section_level = 0
        said = _BULLET.sub("", line, count=1)
        if section_level:
            quotation = said.strip(_AROUND_QUOTATION)
        elif section_level := _level_of_words(line, following):
            end = max(found.end() for word in _WORDS_OF_USER if (found := word.search(line)))
            quotation = line[end:].strip(_BEHIND_TITLE)
        elif _is_quoted(said):
            quotation = said.strip(_AROUND_QUOTATION)
        else:
            continue
        quotation = " ".join(quotation.split())
        if quotation.casefold() not in _NOTHING:
            yield quotation


def _level_of_words(line: str, following: str) -> int:
    """Return the level of the title of the user's words; 0 where a line is none."""
    opening = _OPENING.match(line)
    title = line if _UNDERLINE.fullmatch(following) else opening[0] if opening else ""
    if not all(word.search(title) for word in _WORDS_OF_USER):
        return 0
    return len(opening[1]) if opening and opening[1] else _NO_LEVEL


def _is_quoted(line: str) -> bool:
    bare = line.strip(_EMPHASIS + _STOPS)
    return len(bare) > 1 and bare[0] in _QUOTATION_MARKS and bare[-1] in _QUOTATION_MARKS
