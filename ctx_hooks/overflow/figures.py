"""Find the limit and the input in an unknown wording, by the words beside them and by arithmetic."""

import re
from itertools import islice
from typing import NamedTuple

from ctx_hooks.overflow.patterns.wordings import NUMBER, number
from ctx_hooks.tokens.units import ProviderTokens

LEAST_WINDOW_TOKENS, MOST_WINDOW_TOKENS = 512, 100_000_000
"""Hardly any model has a smaller or larger window: other figures are error numbers, statuses, times and identifiers."""
LEAST_LIMIT_BYTES = 16_384
"""No server that answers models' clients limits requests to less: a smaller figure is a status or a year."""
MOST_FIGURES = 12

_START, _END = r"(?<![a-z\d_.\-])", r"(?![a-z\d_]|-(?!token)|\.\d| \d\d:)"
_FIGURE = re.compile(rf"{_START}{NUMBER}{_END}")
_LIMIT = re.compile(
    r"(?:limit|maximum|max\w{0,20}|allowed|window|(?<!prompt )(?<!input )(?<!message )length|size|only|most|than|"
    r"exceeds?|exceed|up to|<=?|≤|上限|限制|最大\w{0,8}长度|长度)(?: (?:of|is|only|size|input|length|tokens?|for this model is|holds|to|was|a)){0,3}"
    rf"[ :=(\[（]{{0,3}}({NUMBER}){_END}|{_START}({NUMBER})(?:[ -]tokens?)?[ -](?:context|limit)\b"
)
_OUTPUT_BEFORE = re.compile(
    r"(?:max_(?:new_|completion_|output_)?tokens|output|completion|generation)\W{0,4}(?:\w{1,9} ){0,2}\W{0,2}$"
)
_NAME_BEFORE = re.compile(r"(?:\b|_|request|trace)(?:id|pid|port|trace|task|job|code)[ :=#(]{0,3}$")
_EXCESS_BEFORE = re.compile(r"\bby(?: about)? $")
_EXCLUSIVE_BEFORE = re.compile(r"(?:(?:less|smaller|lower|fewer) than|below|under|(?<![=<])<)(?: tokens?)? ?[`'\"]?$")
_EXCLUSIVE_AFTER = re.compile(r"(?: tokens)?,? ?[(\[]?(?:exclusive|exclusively|excluded|not included)\b")
_LABEL_CHARS = 40


class Figures(NamedTuple):
    """The figures that a text names."""

    limit_tokens: ProviderTokens | None = None
    input_tokens: ProviderTokens | None = None
    output_tokens: ProviderTokens | None = None


def figures_of(text: str) -> Figures:
    """Return the figures of an unknown wording.

    The limit is the smaller of two, or the smallest with the label of a limit if there are more or outputs too.
    """
    found = _numbers(text)
    excess = next((n for n, m in found if _before(_EXCESS_BEFORE, m, text)), None)
    numbers = dict.fromkeys(n for n, _ in found if n != excess)
    outputs = [n for n, m in found if n in numbers and _before(_OUTPUT_BEFORE, m, text)]
    inputs = [n for n in numbers if n not in outputs]
    limit = min((n for m in _LIMIT.finditer(text) if (n := _limit(m)) in inputs), default=None)
    if len(inputs) == 2 and (limit is None or not outputs):  # noqa: PLR2004 - what was sent, and what may be sent
        limit = min(inputs)
    above = None if limit is None or excess is None else ProviderTokens(limit + excess)
    given = max((n for n in inputs if n != limit), default=above)
    if limit is None or given is None:
        return Figures(limit)
    output = outputs[0] if outputs else None
    return Figures(limit, given if given + (output or 0) > limit else None, output)


def output_figures_of(text: str) -> Figures:
    """Return the figures of a wording that limits only the output: the smaller of two is the limit."""
    found = [(inclusive(n, m), n) for n, m in _numbers(text)]
    (limit, named), (_, output) = min(found, default=(None, None)), max(found, default=(None, None))
    return Figures(limit, output_tokens=output if output != named else None)


def limit_bytes_of(text: str) -> int | None:
    """Return the smallest figure of a request's size that a text names in bytes; None if it names none."""
    return min((n for n, _ in _numbers(text) if n >= LEAST_LIMIT_BYTES), default=None)


def inclusive(limit: ProviderTokens, match: re.Match[str], group: int | str = 0) -> ProviderTokens:
    """Return the largest allowed value under a limit at a match: one less if the limit itself is not allowed."""
    before, after = match.string[: match.start(group)][-_LABEL_CHARS:], match.string[match.end(group) :][:_LABEL_CHARS]
    return ProviderTokens(limit - 1) if _EXCLUSIVE_BEFORE.search(before) or _EXCLUSIVE_AFTER.match(after) else limit


def _numbers(text: str) -> list[tuple[ProviderTokens, re.Match[str]]]:
    """Return the first figures of a text, without numbers of requests, ports and years."""
    return [
        (n, m)
        for m in islice(_FIGURE.finditer(text), MOST_FIGURES)
        if LEAST_WINDOW_TOKENS <= (n := number(m[0]) or ProviderTokens(0)) <= MOST_WINDOW_TOKENS
        and not _before(_NAME_BEFORE, m, text)
    ]


def _before(label: re.Pattern[str], figure: re.Match[str], text: str) -> bool:
    return bool(label.search(text[max(0, figure.start() - _LABEL_CHARS) : figure.start()]))


def _limit(match: re.Match[str]) -> ProviderTokens | None:
    """Return the figure found; a bare one in brackets only if it is as round as windows are: error numbers are there too."""
    limit = number(match[1] or match[2])
    is_bare = match.string[match.start(1) - 1 : match.end(1) + 1] == f"({match[1]})"
    return None if limit is None or (is_bare and limit % 256 and limit % 1000) else limit
