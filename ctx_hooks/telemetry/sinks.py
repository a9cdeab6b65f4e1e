"""How a sink is attached: it hears events, and is switched off with one warning when it fails."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from ctx_hooks.telemetry.listeners import on

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ctx_hooks.telemetry.events import Event, EventName
    from ctx_hooks.telemetry.listeners import Listener

logger = logging.getLogger("ctx_hooks")


def attach(name: str, listeners: Mapping[EventName, Listener]) -> Callable[[], None]:
    """Let a sink hear events, each by a listener of its own, until one of them fails; return a function that ends it.

    Args:
        name: the sink's name, for the warning.
        listeners: what the sink does with each event that it wants.
    """
    ends: list[Callable[[], None]] = []

    def end() -> None:
        while ends:
            ends.pop()()

    def guarded(listener: Listener) -> Listener:
        def hear(event: Event) -> None:
            try:
                listener(event)
            except Exception as error:
                # What records requests may cost none, and a sink that has failed once would fail for each of them.
                logger.warning("the %s sink failed and is switched off", name, exc_info=error)
                end()

        return hear

    ends += [on(event, guarded(listener)) for event, listener in listeners.items()]
    return end
