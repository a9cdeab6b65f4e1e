"""One wording of an error: its text and its meaning.

No pattern repeats a repetition, and gaps are bounded, so that time is linear in the text.
"""

import re
from dataclasses import dataclass, field
from typing import Literal

from ctx_hooks.tokens.units import ProviderTokens

Kind = Literal["input", "input_plus_output", "output_limit", "bytes"]


@dataclass(frozen=True, slots=True)
class Pattern:
    """One wording, by a regular expression for text on one line in lower case, as `texts.plain` makes it.

    Its figures are {limit}, {input}, {more} (further input), {output} and {total} (input and output). `only` names the
    providers at which the text means an overflow; empty means any. `at_least`: the input figure is a lower bound.
    """

    name: str
    text: str
    kind: Kind = "input"
    only: tuple[str, ...] = ()
    at_least: bool = False
    regex: re.Pattern[str] = field(init=False)

    def __post_init__(self) -> None:
        text = self.text
        for group in _GROUPS:
            text = text.replace("{" + group + "}", f"(?P<{group}>{NUMBER})")
        object.__setattr__(self, "regex", re.compile(text))


_GROUPED = r"\d{1,3}(?:[.,'’_ ]\d{3}){1,4}(?!\d)"
NUMBER = rf"(?:{_GROUPED}|\d{{1,12}})(?:[.,]\d{{1,3}}(?!\d))?(?:[km](?![a-z]))?(?!\d)"
_GROUPS = ("limit", "input", "more", "output", "total")
_SCALES = {"k": 1_000, "m": 1_000_000}
_IS_GROUPED = re.compile(_GROUPED)


def number(text: str | None) -> ProviderTokens | None:
    """Return the whole number that a text matched by NUMBER writes: "9351.0", "9,351", "9 351", "9.351" or "128k"."""
    if not text:
        return None
    scale = _SCALES.get(text[-1], 1)
    digits = text.rstrip("km")
    grouped = _IS_GROUPED.match(digits)
    if grouped:
        return ProviderTokens(int(re.sub(r"\D", "", grouped[0])) * scale)
    return ProviderTokens(int(float(digits.replace(",", ".")) * scale))
