"""One wording of an error: what it looks like, what it means, a verbatim sample and its source."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

Kind = Literal["input", "input_plus_output", "output_limit"]


@dataclass(frozen=True, slots=True)
class Pattern:
    """One wording. Groups: limit, input, more (further input), output, total (input and output), excess.

    `only` names the providers at which the text means an overflow, `statuses` the HTTP statuses; empty means any.
    `at_least`: the input figure is a lower bound. `family`: figures are found by arithmetic.
    """

    name: str
    kind: Kind
    regex: re.Pattern[str]
    sample: str
    source: str
    only: tuple[str, ...] = ()
    statuses: tuple[int, ...] = ()
    at_least: bool = False
    family: bool = False


NUMBER = r"\d[\d,_]{0,12}(?:\.\d{1,3})?k?"
_GROUPS = ("limit", "input", "more", "output", "total", "excess")


def _re(text: str) -> re.Pattern[str]:
    """Compile with `{limit}` and the like standing for a number in a group of that name, and a blank for any blanks."""
    for group in _GROUPS:
        text = text.replace("{" + group + "}", f"(?P<{group}>{NUMBER})")
    return re.compile(text, re.IGNORECASE)


def pattern(
    name: str,
    kind: Kind,
    text: str,
    sample: str,
    source: str,
    *,
    only: tuple[str, ...] = (),
    statuses: tuple[int, ...] = (),
    at_least: bool = False,
    family: bool = False,
) -> Pattern:
    """Return a pattern whose `text` is a regular expression with groups such as {limit} for the figures."""
    return Pattern(name, kind, _re(text), sample, source, only, statuses, at_least, family)
