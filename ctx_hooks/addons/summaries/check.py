"""Whether a summary that a model has written may be used.

Each error on the side of rejecting is cheap: the deterministic form serves. One on the other side is not: whoever goes on
from the summary believes what stands in it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import chain, zip_longest
from typing import TYPE_CHECKING, Literal, TypeAlias

from ctx_hooks.addons.summaries.prompt import INSTRUCTIONS, role_of
from ctx_hooks.addons.summaries.unknown_names import unknown_names

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ctx_hooks.addons.summaries.candidates import SummaryTask
    from ctx_hooks.conversation.model import Message
    from ctx_hooks.policy.addon_settings import SummarySettings
    from ctx_hooks.tokens.counter import Counter

Reason: TypeAlias = Literal["empty", "too_long", "longer_than_original", "refusal", "unknown_names", "misquoted"]

LONGEST_REFUSAL_CHARS = 1_000
"""Models refuse in a sentence or a few, in any language, and without the titles that they were told to write. A summary as
short as that and without a title is taken for a refusal, too."""
_TITLE = re.compile(r"(?:#{1,6} |\*\*)\S")
"""How a title begins: `## Goal`, as was asked, or `**Goal**`."""
_OPENING = re.compile(r"(#{1,6})(?!#).*|[*_]{1,3}(?=\S)[^*]+")
"""A title however a model writes it; of a line that begins in bold only what is bold."""
_CLOSING_LEVEL = re.compile(r"(#{1,6}) ")
_UNDERLINE = re.compile(r"=+|-+")
"""What makes a title of the line above (Setext)."""
_WORDS_OF_USER = (re.compile("user", re.IGNORECASE), re.compile("words", re.IGNORECASE))
"""What the title of the user's own words has in it: models number it, or write "The user's own words"."""
_NO_LEVEL = 7
"""A title without `#` is below all others: the next one with them closes its section."""
_BULLET = re.compile(r"(?:[-*\u2022>]|[0-9]{1,3}[.)])?\s*")
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
class Rejected:
    """A summary that may not be used, and why.

    Attributes:
        reason: `empty`; `too_long`: than the policy's `max_tokens`; `longer_than_original`: than what it stands for;
            `refusal`; `unknown_names`: a path, figure or identifier that stands nowhere in the conversation;
            `misquoted`: words of the user that the user has not said.
    """

    reason: Reason


def checked(text: str, task: SummaryTask, settings: SummarySettings, counter: Counter) -> str | Rejected:
    """Return the summary as it is used, or why it is not.

    Raises:
        CompressionTimeoutError: the deadline is over.
    """
    # JSON can carry a lone surrogate, no request can: it would stand in every one that holds the summary.
    text = text.encode("utf-8", "replace").decode().strip()
    if not text:
        return Rejected("empty")
    tokens = counter.text(text)
    if tokens > settings.max_tokens:
        return Rejected("too_long")
    if tokens >= counter.text(task.before) + counter.messages(task.messages, task.format):
        return Rejected("longer_than_original")
    if len(text) <= LONGEST_REFUSAL_CHARS and not any(map(_TITLE.match, text.splitlines())):
        return Rejected("refusal")
    if unknown_names(text, chain((settings.prompt or INSTRUCTIONS, task.before), _said_in(task.messages, counter))):
        return Rejected("unknown_names")
    own_words = (
        settings.prompt or INSTRUCTIONS,  # what it says of a section is often written behind the section's title
        *_quotations(task.before),
        *(m.text for m in task.messages if role_of(m) == "user"),
    )
    if _misquotes(text, own_words, counter):
        return Rejected("misquoted")
    return text


def _said_in(messages: Sequence[Message], counter: Counter) -> Iterator[str]:
    """Yield every text that names may be taken from."""
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
        said = line[_begin_of(line) :]
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
    """Whether a line is in quotation marks from its beginning to its end."""
    bare = line.strip(_EMPHASIS + _STOPS)
    return len(bare) > 1 and bare[0] in _QUOTATION_MARKS and bare[-1] in _QUOTATION_MARKS


def _begin_of(line: str) -> int:
    """Return where the text of a list's line begins."""
    bullet = _BULLET.match(line)
    return bullet.end() if bullet else 0
