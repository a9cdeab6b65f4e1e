"""Who is told of events: listeners of other packages, and the sinks of this one."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Literal, TypeAlias, get_args

from ctx_hooks.telemetry.archive_events import ArchiveEvent, RetrievalEvent
from ctx_hooks.telemetry.events import (
    AnswerEvent,
    CompactionEvent,
    CompressionTimeoutEvent,
    DecisionEvent,
    FailureEvent,
    LimitEvent,
    OverflowEvent,
    SummaryEvent,
    TruncationEvent,
)

logger = logging.getLogger("ctx_hooks")

EventName = Literal[
    "decision",
    "answer",
    "failure",
    "overflow",
    "before_compaction",
    "after_compaction",
    "silent_truncation",
    "limit_learned",
    "compression_timeout",
    "before_summary",
    "after_summary",
    "retrieval",
    "archive",
]
Event: TypeAlias = (
    CompactionEvent
    | TruncationEvent
    | LimitEvent
    | CompressionTimeoutEvent
    | DecisionEvent
    | OverflowEvent
    | AnswerEvent
    | FailureEvent
    | SummaryEvent
    | RetrievalEvent
    | ArchiveEvent
)
Listener: TypeAlias = Callable[[Any], object]
"""Called with the event of the name it listens to."""
_listeners: dict[EventName, list[Listener]] = {name: [] for name in get_args(EventName)}


def on(name: EventName | Literal["compaction"], listener: Listener) -> Callable[[], None]:
    """Call `listener` with each event of that name, in the thread where it happens; return a function that ends it.

    "compaction" is the short name of "after_compaction". In a proxy the thread is the event loop's for most events: all
    requests wait for a listener that waits, so what takes time belongs into a queue that a thread of the listener's own
    reads. What a listener raises is logged and harms no request.

    Raises:
        ValueError: there is no such event.
    """
    event: EventName = "after_compaction" if name == "compaction" else name
    if event not in _listeners:
        raise ValueError(f"{name!r} is no event; there are {', '.join(_listeners)}")
    listeners = _listeners[event]
    listeners.append(listener)
    return lambda: listeners.remove(listener) if listener in listeners else None


def emit(event: Event) -> None:
    """Tell the listeners."""
    for listener in tuple(_listeners[event.name]):
        try:
            listener(event)
        except Exception as error:
            # A listener is somebody else's code and may not cost a request.
            logger.warning("a listener to %s failed", event.name, exc_info=error)
