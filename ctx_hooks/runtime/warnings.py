"""Warnings of one bounded line without text of conversations; of each place only the first ones are logged."""

import logging
import os
import traceback
from collections import Counter
from functools import lru_cache

REMEMBERED = 1_000
MOST_TRACEBACKS = 10
"""Of one exception at one place; a fault in each request is fully visible in the first ones."""
LONGEST_CHARS = 300
"""A path, a value cut to 80 characters and the reason take about 200; a longer text would quote a caller too much."""
LONGEST_FIGURES_CHARS = 3_000
"""The limit for a line of figures with bounded names; a usual one has about 430."""
CUT = "..."

logger = logging.getLogger("ctx_hooks")
_times: Counter[tuple[object, ...]] = Counter()


def one_line(text: str, most_chars: int = LONGEST_CHARS) -> str:
    """Return `text` cut to `most_chars`, with unprintable characters escaped: a quoted line break starts no new log line."""
    line = text[: most_chars + 1]
    if not line.isprintable():
        line = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in line)
    return line if len(line) <= most_chars else line[: most_chars - len(CUT)] + CUT


def warn_once(text: str) -> None:
    """Log a warning, unless it is among the last REMEMBERED different ones."""
    _warn(one_line(text))


def forget_warnings() -> None:
    """Forget which warnings were logged."""
    _warn.cache_clear()
    _times.clear()


@lru_cache(maxsize=REMEMBERED)
def _warn(line: str) -> None:
    logger.warning("%s", line)


def _without_text(record: logging.LogRecord) -> bool:
    """Make a record one bounded line without its exception's text, which may quote a conversation."""
    error = record.exc_info[1] if record.exc_info else None
    if record.levelno >= logging.WARNING:
        place: tuple[object, ...] = (record.pathname, record.lineno)
        if error is not None:
            raised_at = [(frame.f_code, line) for frame, line in traceback.walk_tb(error.__traceback__)][-1:]
            place = (*place, record.getMessage(), type(error), *raised_at)
        _times[place] += 1
        if _times[place] > (REMEMBERED if error is None else MOST_TRACEBACKS):
            return False
    most_chars = LONGEST_FIGURES_CHARS if hasattr(record, "ctx_hooks") else LONGEST_CHARS
    record.msg, record.args = one_line(record.getMessage(), most_chars), ()
    if error is not None:
        kind = type(error)
        said = [os.strerror(error.errno)] if isinstance(error, OSError) and isinstance(error.errno, int) else []
        named = {"__module__": kind.__module__, "__qualname__": kind.__qualname__}
        bare: Exception = type(kind.__name__, (Exception,), named)(*said)
        record.exc_info = type(bare), bare, error.__traceback__
    return True


logger.addFilter(_without_text)
