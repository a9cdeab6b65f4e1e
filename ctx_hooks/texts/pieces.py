"""Long texts in pieces, since each call of a regular expression holds the interpreter lock; their lines and their ends."""

import re
from collections.abc import Iterator

PIECE_CHARS = 32_768
"""The slowest pattern of this package takes 40 ns a character, 1.3 ms for a piece (measured on one-letter texts)."""
NEAR_FRACTION = 0.20
"""A cut is at a line's end if one is in this last part of the kept text (OpenClaw), else between two words."""

_BLANK = re.compile(r"\s")
_LINE_END = re.compile("\r\n|[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")  # as of `str.splitlines`
LONGEST_LINE_CHARS = 2_000
_WORDS = ("error", "exception", "traceback", "failed", "failure", "fatal", "panic", "undefined", "denied", "refused")
_CHINESE = ("错误", "失败", "异常")
_ERROR = re.compile(rf"\b(?:{'|'.join(_WORDS)}|assert\w{{0,32}})\b|{'|'.join(_CHINESE)}", re.IGNORECASE)


def spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield offsets of pieces of at most twice PIECE_CHARS, each ending after a blank if one is near."""
    start = 0
    while start < len(text):
        end = min(start + 2 * PIECE_CHARS, len(text))
        if end - start > PIECE_CHARS:
            blank = _BLANK.search(text, start + PIECE_CHARS, end)
            end = blank.end() if blank else end
        yield start, end
        start = end


def pieces(text: str) -> Iterator[str]:
    """Yield the pieces of `spans`."""
    return (text[start:end] for start, end in spans(text))


def lines(text: str) -> Iterator[str]:
    """Yield the lines of `text`, each with its end."""
    start = 0
    while start < len(text):
        found = _LINE_END.search(text, start + PIECE_CHARS)
        stop = found.end() if found else len(text)
        yield from text[start:stop].splitlines(keepends=True)
        start = stop


def head_end(text: str, chars: int) -> int:
    """Return where the first `chars` characters end: at a line's end if one is near, else at a blank."""
    near = int(chars * (1 - NEAR_FRACTION))
    ends = (text.rfind(mark, near, chars) for mark in "\n ")
    return next((end for end in ends if end > 0), min(chars, len(text)))


def tail_start(text: str, chars: int) -> int:
    """Return where the last `chars` characters begin: after a line's end if one is near, else after a blank."""
    start = max(0, len(text) - chars)
    near = start + int(chars * NEAR_FRACTION)
    return 1 + next((end for mark in "\n " if (end := text.find(mark, start, near)) >= 0), start - 1)


def utf8_bytes(text: str) -> int:
    """Return the size of a text in UTF-8; lone surrogates count three bytes each."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


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
