"""The lines of a text that name an error."""

import re
from collections.abc import Iterator

from ctx_hooks.texts.pieces import spans

LONGEST_LINE_CHARS = 2_000
"""Longer lines are cut to this length."""
_WORDS = (
    *("error", "exception", "traceback", "failed", "failure", "fatal", "panic", "assert", "undefined", "denied", "refused"),
    *("错误", "失败", "异常"),
)
_ERROR = re.compile(
    r"\b(?:error|exception|traceback|failed|failure|fatal|panic|assert\w{0,32}|undefined|denied|refused)\b|错误|失败|异常",
    re.IGNORECASE,
)


def error_lines(text: str) -> Iterator[str]:
    r"""Yield the lines that name an error, each once.

    >>> list(error_lines("ok\nError: no such file\nok"))
    ['Error: no such file']
    """
    end = 0
    for piece_start, piece_end in spans(text):
        if piece_end <= end or not _may_name_an_error(text[piece_start:piece_end]):
            continue
        while found := _ERROR.search(text, max(piece_start, end), piece_end):
            start = text.rfind("\n", end, found.start()) + 1 or end
            end = text.find("\n", found.end())
            end = end + 1 if end >= 0 else len(text)
            yield text[start : min(end, start + LONGEST_LINE_CHARS)].rstrip("\n")


def names_an_error(text: str) -> bool:
    """Whether one of the lines of `text` names an error."""
    return next(error_lines(text), None) is not None


def _may_name_an_error(piece: str) -> bool:
    """Whether the piece has one of the words: ten times faster than the pattern, and mostly false."""
    piece = piece.lower()
    return any(word in piece for word in _WORDS)
