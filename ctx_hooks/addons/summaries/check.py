"""What of a summary that a model has written is used.

Whoever goes on from a summary believes it. So a wrong goal or invented words of the user reject it all, and a point with an
invented name is left out: the extract beside the summary says what was done.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, pairwise
from typing import NamedTuple, TypeAlias

from ctx_hooks.addons.summaries.stored import SummaryTask
from ctx_hooks.addons.summaries.writing import GOAL, INSTRUCTIONS, role_of
from ctx_hooks.conversation.model import Message
from ctx_hooks.policy.addon_settings import SummarySettings
from ctx_hooks.texts.identifiers import identifiers
from ctx_hooks.texts.pieces import pieces
from ctx_hooks.tokens.counter import Counter

MOST_FAULTY_FRACTION = 0.5
"""A model that gets more of its points wrong is not believed in the others."""
LONGEST_REFUSAL_CHARS = 1_000
"""Models refuse in a few sentences, in any language, and without the titles that the prompt asks for."""
_TITLE = re.compile(r"\s{0,3}(?:#{1,6} |(?:\*\*|__)[^*_]+(?:\*\*|__):?$)")
_POINT = re.compile(r"\s*(?:[-*\u2022]|[0-9]{1,3}[.)])\s")
_OPENING = re.compile(r"#{1,6}\s.*|[*_]{1,3}[^*]+")
"""What may be a title; of a line that begins in bold only what is bold."""
_CLOSING = re.compile(r"#{1,2} ")
_WORDS_OF_USER = (re.compile("user", re.IGNORECASE), re.compile("words", re.IGNORECASE))
"""Both are in the title of the user's own words: models number it, or write "The user's own words"."""
_BULLET = re.compile(r"^(?:[-*\u2022>]|[0-9]{1,3}[.)])?\s*")
_QUOTATION_MARKS = "\"'\u00ab\u00bb\u2018\u2019\u201c\u201d\u201e\u300c\u300d\u300e\u300f"
"""Of English, French, German, Chinese and Japanese."""
_AROUND_QUOTED = "*_ .\u3002"
_AROUND = f"{_AROUND_QUOTED}{_QUOTATION_MARKS}-=`:\uff1a()"
_NOTHING = frozenset({"", "none", "n/a", "nothing", "\u65e0", "\u6ca1\u6709"})
"""What models write into a section that they were asked to leave out."""
LEAST_DIGITS = 3
"""A smaller figure counts what the text lists, or numbers it: "two of 12 tests"."""
_WORD = re.compile(r"[a-z0-9]+")
_RUN = re.compile(r"[\w.,'\u00a0\u202f]+")
_FIGURE = re.compile(r"[0-9]+(?:[,_'\u00a0\u202f][0-9]{3})*(?:\.[0-9]+)?")
_THOUSANDS = re.compile(r"[,_'\u00a0\u202f]")
_ROUNDED = re.compile(r"([0-9]{1,9})([km])")
_ZEROS = {"k": "000", "m": "000000"}
_OF_NAMES = re.compile(r"[^A-Za-z/]|[a-z][A-Z]")
"""What tells a name from words that a slash joins, as in `input/output`: of these each has to stand somewhere."""
_Atom: TypeAlias = "str | tuple[str, str]"
"""A word or figure; or two words that are neighbours."""


class Checked(NamedTuple):
    """What is used of a summary, "" if it is rejected, and the reason for that, or for points that are left out.

    `misquoted`: it has words of the user that the user has not said; `unknown_names`: a path, figure or identifier that
    stands nowhere in the conversation.
    """

    text: str
    reason: str = ""


def checked(text: str, task: SummaryTask, settings: SummarySettings, counter: Counter) -> Checked:
    """Return what of a summary is used; raises CompressionTimeoutError if the deadline is over."""
    text = text.encode("utf-8", "replace").decode().strip()  # no request can carry a lone surrogate
    if not text:
        return Checked("", "empty")
    if counter.text(text) > settings.max_tokens:
        return Checked("", "too_long")
    if len(text) <= LONGEST_REFUSAL_CHARS and not any(map(_TITLE.match, text.splitlines())):
        return Checked("", "refusal")
    # Behind the section's title models write what the prompt says of it.
    asked = settings.prompt or INSTRUCTIONS
    of_user = (m.text for m in task.messages if role_of(m) == "user")
    if _misquotes(text, (asked, *_quotations(task.before), *of_user), counter):
        return Checked("", "misquoted")
    return _without(unknown_names(text, chain((asked, task.before), _said_in(task.messages, counter))), text)


def _without(unknown: Sequence[str], text: str) -> Checked:
    """Return a summary without the points that have an unknown name; rejected if one is in its goal, or in a title."""
    kept, titles = [], [""]
    entries = _entries(text)
    for entry in entries:
        is_title = _TITLE.match(entry) is not None
        titles += [entry] if is_title else []
        is_goal = len(titles) <= 2 or GOAL.casefold() in titles[-1].casefold()  # noqa: PLR2004 - the first, in any language
        if not any(name in entry for name in unknown):
            kept.append(entry)
        elif is_title or is_goal:
            return Checked("", "unknown_names")
    left_out = len(entries) - len(kept)
    if left_out > MOST_FAULTY_FRACTION * (len(entries) - len(titles)):
        return Checked("", "unknown_names")
    return Checked("\n".join(kept).strip(), "unknown_names" if left_out else "")


def _entries(text: str) -> list[str]:
    """Return the titles, points and paragraphs of a text, in order."""
    entries, before = [], ""
    for line in text.splitlines():
        if not before.strip() or any(map(_TITLE.match, (before, line))) or _POINT.match(line):
            entries.append(line)
        else:
            entries[-1] += f"\n{line}"
        before = line
    return entries


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
    """Yield what a reader takes for the user's words: the lines of their section, and each line in quotation marks.

    In another language nothing but these marks shows whose words a line has.
    """
    is_of_user = False
    for line in map(str.strip, text.splitlines()):
        opening = _OPENING.match(line)
        found = [word.search(opening[0]) for word in _WORDS_OF_USER] if opening else []
        ends = [match.end() for match in found if match]
        quotation = _BULLET.sub("", line, count=1)
        if len(ends) == len(_WORDS_OF_USER):
            is_of_user = True
            quotation = line[max(ends) :]
        elif _CLOSING.match(line):
            is_of_user = False
        if is_of_user or _is_quoted(quotation):
            quotation = " ".join(quotation.strip(_AROUND).split())
            if quotation.casefold() not in _NOTHING:
                yield quotation


def _is_quoted(line: str) -> bool:
    bare = line.strip(_AROUND_QUOTED)
    return len(bare) > 1 and bare[0] in _QUOTATION_MARKS and bare[-1] in _QUOTATION_MARKS


def unknown_names(text: str, sources: Iterable[str]) -> list[str]:
    """Return the paths, identifiers and figures of `text` that stand in none of the sources, which are read once.

    A name stands there if each two neighbours of its words do, in any case: the end of a path is enough, and `max_tokens`
    is `--max-tokens`. A figure stands there in any spelling.

    >>> unknown_names("fixed src/app.py in 1,500 ms", ["app.py in src took 1500.0 ms"])
    ['src/app.py']
    """
    figures = [figure for figure in _figures(text) if sum(map(str.isdigit, figure)) >= LEAST_DIGITS]
    named = {name: _forms_of(name) for name in (*identifiers(text), *figures)}
    missing = {atom for forms in named.values() for form in forms for atom in form}
    for source in sources:
        for piece in pieces(source):
            if not missing:
                return []
            lowered = piece.lower()
            words = _WORD.findall(lowered)
            missing.difference_update(words, pairwise(words), map(_plain, _figures(piece)))
    return [name for name, forms in named.items() if not any(missing.isdisjoint(form) for form in forms)]


def _forms_of(name: str) -> list[Sequence[_Atom]]:
    """Return the ways in which a name may stand somewhere, each as what has to be found."""
    words = _WORD.findall(name.lower())
    forms: list[Sequence[_Atom]] = [words if len(words) == 1 else [*pairwise(words)]]
    if not _OF_NAMES.search(name):
        forms.append(words)
    if rounded := _ROUNDED.fullmatch(name.lower()):
        forms.append([rounded[1] + _ZEROS[rounded[2]]])
    if _FIGURE.fullmatch(name):
        forms.append([_plain(name)])
    return forms


def _figures(text: str) -> Iterator[str]:
    """Yield the figures that are no part of a name, as they are written."""
    for run in _RUN.findall(text):
        figure = run.strip(".,'_\u00a0\u202f")
        if _FIGURE.fullmatch(figure):
            yield figure


def _plain(figure: str) -> str:
    """Return a figure without separators of thousands and zeros behind its decimals."""
    whole, _, decimals = _THOUSANDS.sub("", figure).partition(".")
    return f"{whole}.{decimals.rstrip('0')}".rstrip(".")
