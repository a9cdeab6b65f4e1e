"""The lines of a text that name an error."""

import re
from collections.abc import Iterator

from ctx_hooks.texts.pieces import spans

LONGEST_LINE_CHARS = 2_000
_WORDS = ("error", "exception", "traceback", "failed", "failure", "fatal", "panic", "undefined", "denied", "refused")
_CHINESE = ("错误", "失败", "异常")
_ERROR = re.compile(rf"\b(?:{'|'.join(_WORDS)}|assert\w{{0,32}})\b|{'|'.join(_CHINESE)}", re.IGNORECASE)


def error_lines(text: str) -> Iterator[str]:
    """Yield the lines that name an error, each once, and at most LONGEST_LINE_CHARS of it."""
    end = 0
    for piece_start, piece_end in spans(text):
        piece = text[piece_start:piece_end].lower()
        # This is ten times faster than the pattern.
        if piece_end <= end or not any(word in piece for word in (*_WORDS, "assert", *_CHINESE)):
            continue
        while found := _ERROR.search(text, max(piece_start, end), piece_end):
            start = text.rfind("\n", end, found.start()) + 1 or end
            end = text.find("\n", found.end())
            end = end + 1 if end >= 0 else len(text)
            yield text[start : min(end, start + LONGEST_LINE_CHARS)].rstrip("\n")


def names_an_error(text: str) -> bool:
    """Whether one of the lines of `text` names an error."""
    return next(error_lines(text), None) is not None
