"""Find the limit and the input in an unknown wording, by the words beside them and by arithmetic."""

import re
from dataclasses import dataclass
from itertools import islice

from ctx_hooks.overflow.patterns.families import CONTEXT, SETTING
from ctx_hooks.overflow.patterns.wordings import NUMBER, number
from ctx_hooks.tokens.units import ProviderTokens

LEAST_WINDOW_TOKENS, MOST_WINDOW_TOKENS = 512, 100_000_000
"""Hardly any model has a smaller or larger window: other figures are error numbers, statuses, times and identifiers."""
LEAST_TOKENS = 64
"""A smaller figure is no limit of a prompt, whatever it is called."""
MOST_FIGURES = 12

_START, _END = r"(?<![a-z\d_.\-])", r"(?![a-z\d_]|-(?!token)|\.\d)"
_FIGURE = re.compile(rf"{_START}{NUMBER}{_END}")
_JOIN = r"(?: (?:of|is|only|size|length|tokens?|for this model is|holds|to|was|a)){0,3}[ :=(\[（]{0,3}"
_NAMED = re.compile(
    rf"(?:{SETTING}|{CONTEXT}|上下文(?:长度|窗口|長度)){_JOIN}"
    rf"(?P<after>{NUMBER}){_END}|{_START}(?P<before>{NUMBER})(?:[ -]tokens?)?[ -]context\b"
)
_CALLED = re.compile(
    rf"(?:limit|maximum|max|allowed|window|(?<!prompt )(?<!input )(?<!message )length|size|only|most|than|exceeds?|exceed|up to|<=?|≤|上限|限制|最大\w{{0,8}}长度|长度){_JOIN}"
    rf"(?P<after>{NUMBER}){_END}|{_START}(?P<before>{NUMBER})[ -]tokens? limit\b"
)
_OUTPUT_BEFORE = re.compile(
    r"(?:max_(?:new_|completion_|output_)?tokens|output|completion|generation)\W{0,4}(?:\w{1,9} ){0,2}\W{0,2}$"
)
_SMALL_BEFORE = re.compile(
    r"(?:\b(?:max(?:imum)?|limit|only|most|up to|than|exceeds?|allowed|supports?|window)|[<>]=|(?:(?<=\d)|(?<=\d )|(?<=tokens ))[<>])"
    r"(?: (?:of|is|are|was|allowed|tokens?|size|length|to)){0,2}[ :=(]{0,3}$"
)
_NAME_BEFORE = re.compile(
    r"(?:\b|_|request|trace)(?:id|pid|port|trace|task|job|code|(?:jan|feb|mar|apr|may|june?|july?|aug|sept?|oct|nov|dec)[a-z]{0,6}(?: \d\d?,)?)"
    r"[ :=#(]{0,3}$"
)
_EXCESS_BEFORE = re.compile(r"\bby(?: about)? $")
_EXCLUSIVE_BEFORE = re.compile(r"(?:(?:less|smaller|lower|fewer) than|below|under|(?<![=<])<)(?: tokens?)? ?[`'\"]?$")
_EXCLUSIVE_AFTER = re.compile(r"(?: tokens)?,? ?[(\[]?(?:exclusive|exclusively|excluded|not included)\b")
_RANGE_BEFORE = re.compile(r"[\[(] ?\d{1,7} ?(?:,|\.\.|-|to) ?$")
LEAST_LIMIT_BYTES = 16_384
"""No server that answers models' clients limits requests to less: a smaller figure is a status or a year."""
_BYTES = {"": 1, "k": 1_000, "m": 1_000_000, "g": 1_000_000_000}
_SIZE = re.compile(
    r"(?<![\w.-])((?:\d{1,3}(?:,\d{3}){1,4}|\d{1,12})(?:\.\d{1,3})?) ?(?:([kmg]?)i?b(?:ytes)?\b|bytes\b|(?![\w-]))"
)
_LABEL_CHARS = 40


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures that a text names."""

    limit_tokens: ProviderTokens | None = None
    input_tokens: ProviderTokens | None = None
    output_tokens: ProviderTokens | None = None


def figures_of(text: str) -> Figures:
    """Return the figures of an unknown wording.

    If two figures add up to a third, they are input and output. Otherwise, apart from outputs, the smaller of two is the
    limit. Of one or many, the limit is the figure of a setting or the context, or one with the label of a limit.
    """
    found = _numbers(text)
    excess = next((n for n, m in found if _before(_EXCESS_BEFORE, m, text)), None)
    found = [(n, m) for n, m in found if n != excess]
    places = {n: m.start() for n, m in found if n >= LEAST_WINDOW_TOKENS}
    if len(places) < 2 and "token" in text:  # noqa: PLR2004 - what was sent, and what may be sent
        places |= {n: m.start() for n, m in found if LEAST_TOKENS <= n < LEAST_WINDOW_TOKENS and _is_called_limit(m, text)}
    numbers = list(places)
    for whole in numbers:
        parts = next(
            ((a, rest) for a in numbers if a < whole and (rest := ProviderTokens(whole - a)) in places and a != rest), None
        )
        limits = [n for n in numbers if parts and n not in (whole, *parts)]
        if parts and limits:
            return Figures(limits[0], parts[0], parts[1])
    outputs = [n for n, m in found if n in places and _before(_OUTPUT_BEFORE, m, text)]
    inputs = [n for n in numbers if n not in outputs]
    named, called = (_limit(p.search(text), text) for p in (_NAMED, _CALLED))
    limit = next((n for n in (named, called) if n in places), None)
    if len(inputs) == 2 and (not outputs or limit not in inputs):  # noqa: PLR2004 - what was sent, and what may be sent
        limit = min(inputs)
    given = max((n for n in inputs if n != limit), default=None)
    if limit is not None and given is None and excess is not None:
        given = ProviderTokens(limit + excess)
    if limit is None or given is None:
        return Figures(limit)
    output = outputs[0] if outputs else None
    return Figures(limit, given if given + (output or 0) > limit else None, output)


def output_figures_of(text: str) -> Figures:
    """Return the figures of a wording that limits only the output: the smaller of two is the limit."""
    found = _numbers(text)
    found = [(n, m) for n, m in found if n >= LEAST_WINDOW_TOKENS or (n >= LEAST_TOKENS and _is_called_limit(m, text))]
    numbers = [(inclusive(n, m), n) for n, m in found]
    (limit, named), (_, output) = min(numbers, default=(None, None)), max(numbers, default=(None, None))
    return Figures(limit, output_tokens=output if output != named else None)


def inclusive(limit: ProviderTokens, match: re.Match[str], group: int | str = 0) -> ProviderTokens:
    """Return the largest allowed value under a limit at a match: one less if the limit itself is not allowed."""
    before, after = match.string[: match.start(group)][-_LABEL_CHARS:], match.string[match.end(group) :][:_LABEL_CHARS]
    excluded = _EXCLUSIVE_BEFORE.search(before) or _EXCLUSIVE_AFTER.match(after)
    is_open = _RANGE_BEFORE.search(before) and after.startswith(")")
    return ProviderTokens(limit - 1) if excluded or is_open else limit


def limit_bytes_of(text: str) -> int | None:
    """Return the smallest figure of a request's size that a text names; None if it names none."""
    found = (int(float(m[1].replace(",", "")) * _BYTES[m[2] or ""]) for m in islice(_SIZE.finditer(text), MOST_FIGURES))
    return min((n for n in found if n >= LEAST_LIMIT_BYTES), default=None)


def _numbers(text: str) -> list[tuple[ProviderTokens, re.Match[str]]]:
    """Return the first figures of a text, without numbers of requests, ports and years."""
    return [
        (n, m)
        for m in islice(_FIGURE.finditer(text), MOST_FIGURES)
        if (n := number(m[0])) and n <= MOST_WINDOW_TOKENS and not _before(_NAME_BEFORE, m, text)
    ]


def _is_called_limit(figure: re.Match[str], text: str) -> bool:
    return text[figure.end() :][:6].lstrip(" -") == "token" or _before(_SMALL_BEFORE, figure, text)


def _before(label: re.Pattern[str], figure: re.Match[str], text: str) -> bool:
    return bool(label.search(text[max(0, figure.start() - _LABEL_CHARS) : figure.start()]))


def _limit(match: re.Match[str] | None, text: str) -> ProviderTokens | None:
    """Return the figure found; a bare one in brackets only if it is as round as windows are: error numbers are there too."""
    if match is None:
        return None
    group = "after" if match["after"] else "before"
    limit = number(match[group])
    bare = text[match.start(group) - 1 : match.start(group)] == "(" and text[match.end(group) :][:1] == ")"
    return None if limit is None or (bare and limit % 256 and limit % 1000) else limit
