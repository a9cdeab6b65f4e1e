"""How a sink is attached: it hears events, and is switched off with one warning when it fails."""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING

from ctx_hooks.telemetry.listeners import on

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ctx_hooks.telemetry.listeners import EventName, Listener

logger = logging.getLogger("ctx_hooks")


class Guard:
    """Does what a sink does with events until that fails; then the sink is off, and one warning says so."""

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
            # What records requests may cost none, and a sink that has failed once would fail for each of them.
            self.failed = True
            logger.warning("the %s sink failed and is switched off", self._name, exc_info=error)


def attach(name: str, listeners: Mapping[EventName, Listener]) -> Callable[[], None]:
    """Let a sink hear events, each by a listener of its own, until one of them fails; return a function that ends it.

    Args:
        name: the sink's name, for the warning.
        listeners: what the sink does with each event that it wants.
    """
    guard = Guard(name)
    ends = [on(event, partial(guard.run, listener)) for event, listener in listeners.items()]

    def end() -> None:
        for end_one in ends:
            end_one()

    return end
