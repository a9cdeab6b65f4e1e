"""What of a summary that a model has written is used.

Whoever goes on from a summary believes it. So a wrong goal or invented words of the user reject it all, and a line with an
invented name is left out: the extract beside the summary says what was done.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from ctx_hooks.addons.summaries.stored import SummaryTask
from ctx_hooks.addons.summaries.writing import GOAL, INSTRUCTIONS, role_of
from ctx_hooks.conversation.model import Message
from ctx_hooks.policy.addon_settings import SummarySettings
from ctx_hooks.texts.identifiers import identifiers
from ctx_hooks.tokens.counter import Counter

MOST_FAULTY_FRACTION = 0.5
"""A model that gets more of its lines wrong is not believed in the others."""
_TITLE = re.compile(r"^\s*(?:#|\*\*)", re.MULTILINE)
_TITLE_OF_USER = re.compile(r"\s*(?:#|\*\*).*\buser.s words(.*)", re.IGNORECASE)
"""Models number it, and write behind it what the prompt says of it."""
_BULLET = re.compile(r"^\s*(?:[-*\u2022>]|[0-9]{1,3}[.)])?\s*")
_QUOTATION_MARKS = "\"'\u00ab\u00bb\u2018\u2019\u201c\u201d\u201e\u300c\u300d"
"""Of the user's words: the prompt asks for backticks in other quotations."""
_AROUND_QUOTED = "*_ .\u3002"
_AROUND = f"{_AROUND_QUOTED}{_QUOTATION_MARKS}-`:\uff1a()"
_NOTHING = ("", "none")
"""What models write into a section that they were asked to leave out."""
_FIGURE = re.compile(r"(?<![\w.])[0-9][0-9.,]+[0-9]")
"""A shorter figure counts what the summary lists, or numbers it: "two of 12 tests"."""


class Checked(NamedTuple):
    """What is used of a summary, "" if it is rejected, and the reason for that, or for lines that are left out.

    `untitled`: it has no section, so it is a refusal, or none of what the prompt asks for; `misquoted`: it has words of the
    user that the user has not said; `unknown_names`: a path, figure or identifier that stands nowhere in the conversation.
    """

    text: str
    reason: str = ""


def checked(text: str, task: SummaryTask, settings: SummarySettings, counter: Counter) -> Checked:
    """Return what of a summary is used; raises CompressionTimeoutError if the deadline is over."""
    text = text.encode("utf-8", "replace").decode().strip()  # no request can carry a lone surrogate
    if counter.text(text) > settings.max_tokens:
        return Checked("", "too_long")
    if not _TITLE.search(text):
        return Checked("", "untitled")
    own_words = (settings.prompt or INSTRUCTIONS, task.before)
    of_user = (message.text for message in task.messages if role_of(message) == "user")
    if _misquotes(text, (*own_words, *of_user), counter):
        return Checked("", "misquoted")
    return _without(unknown_names(text, chain(own_words, _said_in(task.messages, counter))), text)


def unknown_names(text: str, sources: Iterable[str]) -> list[str]:
    """Return the paths, identifiers and figures of `text` that stand in none of the sources, which are read once.

    >>> unknown_names("fixed src/app.py in 1,500 ms", ["/srv/src/App.py took 1500 ms"])
    ['1,500']
    """
    missing = list(dict.fromkeys((*identifiers(text), *_FIGURE.findall(text))))
    for source in sources:
        said = source.casefold()
        missing = [name for name in missing if name.casefold() not in said]
    return missing


def _without(unknown: Sequence[str], text: str) -> Checked:
    """Return a summary without the lines that have an unknown name; rejected if one is in its goal, or in a title."""
    lines, kept, titles = text.splitlines(), [], [""]
    for line in lines:
        is_title = _TITLE.match(line) is not None
        titles += [line] if is_title else []
        is_goal = len(titles) <= 2 or GOAL in titles[-1]  # noqa: PLR2004 - the first, whatever it is called
        if not any(name in line for name in unknown):
            kept.append(line)
        elif is_title or is_goal:
            return Checked("", "unknown_names")
    left_out = len(lines) - len(kept)
    points = [line for line in lines if line.strip() and not _TITLE.match(line)]
    if left_out > MOST_FAULTY_FRACTION * len(points):
        return Checked("", "unknown_names")
    return Checked("\n".join(kept).strip(), "unknown_names" if left_out else "")


def _said_in(messages: Sequence[Message], counter: Counter) -> Iterator[str]:
    for message in messages:
        counter.deadline.check()
        yield from (message.name or "", message.text)
        for call in message.calls:
            yield from (call.name, call.arguments)
        yield from (result.text for result in message.results)


def _misquotes(text: str, own_words: Sequence[str], counter: Counter) -> bool:
    """Whether a line that the summary gives for the user's words is none of them, but for blanks."""
    said = [" ".join(words.split()) for words in own_words]

    def is_said(quotation: str) -> bool:
        counter.deadline.check()
        return any(quotation in words for words in said)

    return not all(map(is_said, dict.fromkeys(_quotations(text))))


def _quotations(text: str) -> Iterator[str]:
    """Yield what a reader takes for the user's words: the lines of their section, and each line in quotation marks."""
    is_of_user = False
    for line in text.splitlines():
        quotation = _BULLET.sub("", line, count=1)
        if title := _TITLE_OF_USER.match(line):
            is_of_user = True
            quotation = title[1]
        elif line.startswith(("# ", "## ")):
            is_of_user = False
        bare = quotation.strip(_AROUND_QUOTED)
        is_quoted = len(bare) > 1 and bare[0] in _QUOTATION_MARKS and bare[-1] in _QUOTATION_MARKS
        if is_of_user or is_quoted:
            words = " ".join(quotation.strip(_AROUND).split())
            if words.casefold() not in _NOTHING:
                yield words
