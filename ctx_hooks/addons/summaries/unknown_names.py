"""Which names and figures of a text stand nowhere in the texts that it was written from."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import TypeAlias

from ctx_hooks.texts.identifiers import identifiers
from ctx_hooks.texts.pieces import pieces

LEAST_DIGITS = 3
"""A smaller figure counts what the text lists, or numbers it: "two of 12 tests"."""
MOST_FIGURE_CHARS = 40
"""More characters are no figure that anyone writes."""
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


def unknown_names(text: str, sources: Iterable[str]) -> list[str]:
    """Return the paths, identifiers and figures of `text` that stand in none of the sources, which are read once.

    A name stands there if each two neighbours of its words do, side by side, whatever is between them and in whatever case:
    the end of a path is enough, and `max_tokens` is `--max-tokens`. A figure stands there however its thousands are written
    and however many zeros end its decimals.

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
        if len(figure) <= MOST_FIGURE_CHARS and _FIGURE.fullmatch(figure):
            yield figure


def _plain(figure: str) -> str:
    """Return a figure without separators of thousands and zeros behind its decimals."""
    whole, _, decimals = _THOUSANDS.sub("", figure).partition(".")
    return f"{whole}.{decimals.rstrip('0')}".rstrip(".")
