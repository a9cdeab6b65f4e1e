"""Warnings of one bounded line, each logged once: a wrong setting would otherwise be logged with every request."""

from __future__ import annotations

import logging
from functools import lru_cache

REMEMBERED = 1_000
LONGEST_CHARS = 300
"""A path, a value cut to 80 characters and the reason take about 200; a longer text quotes a caller at length."""
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


class _OneLine(logging.Filter):
    """Make every message of this package one bounded line, since any may quote a caller; a traceback follows below it."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = one_line(record.getMessage()), ()
        return True


logger.addFilter(_OneLine())
