"""The receivers of events: listeners of other packages, and the sinks of this one."""

import logging
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from typing import Any, TypeAlias, get_args, get_type_hints

from ctx_hooks.telemetry import events

logger = logging.getLogger("ctx_hooks")

Event: TypeAlias = (
    events.CompactionEvent
    | events.LimitEvent
    | events.DecisionEvent
    | events.OverflowEvent
    | events.RejectionEvent
    | events.AnswerEvent
    | events.FailureEvent
    | events.SummaryEvent
    | events.RetrievalEvent
    | events.ItemEvent
    | events.ArchiveEvent
    | events.StartEvent
    | events.FaultEvent
    | events.IgnoredEvent
)
EVENTS: Mapping[str, Any] = {n: e for e in get_args(Event) for n in get_args(get_type_hints(e)["name"])}
"""The class of each event by its name."""
Listener: TypeAlias = Callable[[Any], object]
"""Called with the event of the name it listens to."""
_listeners: dict[str, list[Listener]] = {name: [] for name in EVENTS}


def on(name: str, listener: Listener) -> Callable[[], None]:
    """Call `listener` with each event of that name, in its thread; return what ends it. Raises ValueError for no event."""
    event = "after_compaction" if name == "compaction" else name
    if event not in _listeners:
        raise ValueError(f"{name!r} is no event; there are {', '.join(_listeners)}")
    listeners = _listeners[event]
    listeners.append(listener)
    return lambda: listeners.remove(listener) if listener in listeners else None


def emit(event: Event) -> None:
    """Send an event to its listeners."""
    for listener in tuple(_listeners[event.name]):
        try:
            listener(event)
        except Exception as error:
            # A listener is somebody else's code and must not fail a request.
            logger.warning("a listener to %s failed", event.name, exc_info=error)


class Guard:
    """Runs a sink until it fails; then the sink is off, and one warning reports it."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.failed = False

    def run(self, record: Callable[..., object], *arguments: object) -> None:
        """Call `record` with the arguments, unless a call has failed before."""
        if self.failed:
            return
        try:
            record(*arguments)
        except Exception as error:
            # A sink must not fail a request, and after one failure it would fail for each of them.
            self.failed = True
            logger.warning("the %s sink failed and is switched off", self._name, exc_info=error)
            emit(events.FaultEvent("fault", time.time(), sink=self._name))


def attach(name: str, listeners: Mapping[str, Listener]) -> Callable[[], None]:
    """Send a sink events, each kind to its own listener, until one fails; return a function that ends it."""
    guard, ends = Guard(name), ExitStack()
    for event, listener in listeners.items():
        ends.callback(on(event, partial(guard.run, listener)))
    return ends.close
