"""Warnings of one bounded line, each logged once: a wrong setting would otherwise be logged with every request.

No caller can make the log grow without bound: repeated failures at one place are logged more and more rarely.
"""

import logging
import os
from collections import Counter
from functools import lru_cache

REMEMBERED = 1_000
MOST_TRACEBACKS = 10
"""Tracebacks of one exception at one place; a fault in each request is fully visible in the first ones."""
LONGEST_CHARS = 300
"""A path, a value cut to 80 characters and the reason take about 200; a longer text would quote a caller too much."""
LONGEST_FIGURES_CHARS = 3_000
"""The limit for a line of figures with bounded names; a usual one has about 430."""
CUT = "..."

logger = logging.getLogger("ctx_hooks")
_times: Counter[tuple[object, ...]] = Counter()
"""How often each place has warned; places are lines of code, so there are few."""


def one_line(text: str, most_chars: int = LONGEST_CHARS) -> str:
    """Return `text` cut to `most_chars`, with unprintable characters escaped: a quoted line break starts no new log line."""
    if len(text) <= most_chars and text.isprintable():
        return text
    beginning = text[: most_chars + 1]
    line = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in beginning)
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


class _NoText(logging.Filter):
    """Make every message of this package one bounded line, since any may quote a caller, and remove exceptions' texts.

    Any exception may quote a conversation. One that is raised while a provider's error is handled has that error in its
    traceback. Its name and the lines of code in the traceback show where it comes from.

    Warnings of one place are logged REMEMBERED times, those with a traceback MOST_TRACEBACKS times, and then at each power
    of two: a caller that makes each request fail would fill the log. INFO has lines for each request, as configured.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        times, most = _counted(record)
        if times > most and times & (times - 1):
            return False
        most_chars = LONGEST_FIGURES_CHARS if hasattr(record, "ctx_hooks") else LONGEST_CHARS
        again = f" ({times:,} times so far)" if times > most else ""
        record.msg, record.args = one_line(record.getMessage(), most_chars) + again, ()
        if record.exc_info and record.exc_info[1] is not None:
            bare = _without_text(record.exc_info[1])
            record.exc_info = type(bare), bare, bare.__traceback__
        return True


def _counted(record: logging.LogRecord) -> tuple[int, int]:
    """Return how often a record's place has warned, including now, and how often it may."""
    if record.levelno < logging.WARNING:
        return 0, 0
    place: tuple[object, ...] = (record.pathname, record.lineno)
    error = record.exc_info[1] if record.exc_info else None
    if error is not None:
        frame = error.__traceback__
        while frame is not None and frame.tb_next is not None:
            frame = frame.tb_next
        raised_at = (frame.tb_frame.f_code, frame.tb_lineno) if frame is not None else ()
        place = (*place, record.getMessage(), type(error).__qualname__, *raised_at)
    _times[place] += 1
    return _times[place], REMEMBERED if error is None else MOST_TRACEBACKS


def _without_text(error: BaseException) -> Exception:
    """Return an exception with another's name and traceback; its text is the operating system's, or empty."""
    kind = type(error)
    named = {"__module__": kind.__module__, "__qualname__": kind.__qualname__}
    said = [os.strerror(error.errno)] if isinstance(error, OSError) and isinstance(error.errno, int) else []
    bare: Exception = type(kind.__name__, (Exception,), named)(*said)
    return bare.with_traceback(error.__traceback__)


logger.addFilter(_NoText())
