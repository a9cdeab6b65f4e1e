"""Warnings of one bounded line, each logged once: a wrong setting would otherwise be logged with every request."""

from __future__ import annotations

import logging
import os
from functools import lru_cache

REMEMBERED = 1_000
LONGEST_CHARS = 300
"""A path, a value cut to 80 characters and the reason take about 200; a longer text quotes a caller at length."""
LONGEST_FIGURES_CHARS = 3_000
"""Of a line of figures with bounded names; a usual one has about 430."""
CUT = "..."

logger = logging.getLogger("ctx_hooks")


def one_line(text: str, most_chars: int = LONGEST_CHARS) -> str:
    """Return `text` cut to `most_chars`, with unprintable characters escaped: a quoted line break starts no new log line."""
    if len(text) <= most_chars and text.isprintable():
        return text
    beginning = text[: most_chars + 1]
    line = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in beginning)
    return line if len(line) <= most_chars else line[: most_chars - len(CUT)] + CUT


def warn_once(text: str) -> None:
    """Log a warning unless it is one of the last REMEMBERED different ones."""
    _warn(one_line(text))


def forget_warnings() -> None:
    """Forget which warnings were logged."""
    _warn.cache_clear()


@lru_cache(maxsize=REMEMBERED)
def _warn(line: str) -> None:
    logger.warning("%s", line)


class _NoText(logging.Filter):
    """Make every message of this package one bounded line, since any may quote a caller, and take the text of exceptions.

    Anyone's exception may quote a conversation, and one that is raised while a provider's error is handled has that error
    in its traceback. Its name and the lines of code that it passed say where it comes from.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        most_chars = LONGEST_FIGURES_CHARS if hasattr(record, "ctx_hooks") else LONGEST_CHARS
        record.msg, record.args = one_line(record.getMessage(), most_chars), ()
        if record.exc_info and record.exc_info[1] is not None:
            bare = _without_text(record.exc_info[1])
            record.exc_info = type(bare), bare, bare.__traceback__
        return True


def _without_text(error: BaseException) -> Exception:
    """Return an exception with the name and the traceback of another; its text is the operating system's, or none."""
    kind = type(error)
    named = {"__module__": kind.__module__, "__qualname__": kind.__qualname__}
    said = [os.strerror(error.errno)] if isinstance(error, OSError) and isinstance(error.errno, int) else []
    bare: Exception = type(kind.__name__, (Exception,), named)(*said)
    return bare.with_traceback(error.__traceback__)


logger.addFilter(_NoText())
