"""Which requests offer the tool to their model, and the results of its calls."""

import logging
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from ctx_hooks.addons.retrieval.archive.archive import Archive
from ctx_hooks.addons.retrieval.tool import NO_ROOM, NOT_AVAILABLE, asked_of, page_of
from ctx_hooks.litellm_compat.errors import failing_open
from ctx_hooks.policy.addon_settings import ArchiveSettings
from ctx_hooks.runtime.deadline import Deadline
from ctx_hooks.runtime.worker import pool
from ctx_hooks.serving.running import Running
from ctx_hooks.telemetry.events import CallNames, RetrievalEvent
from ctx_hooks.telemetry.listeners import emit
from ctx_hooks.texts.pieces import utf8_bytes

NAME = "retrieval"
logger = logging.getLogger("ctx_hooks")

BYTES_PER_BUDGET_TOKEN = 1.0
"""Limits all texts of one turn to about a quarter of the budget in English, half of it in Chinese. So the next request fits
in the window, whatever the model asks for, and its newest results stay complete."""
MOST_CALLS = 50
"""Answered calls of one turn, each in a thread for up to PAGE_SECONDS; a model can be made to write thousands."""
PAGE_SECONDS = 5.0
"""Ranking the lines of the longest text takes less."""


class Offer(NamedTuple):
    """What a request that offers the tool may read; `most_bytes` is the limit for the texts of one turn."""

    settings: ArchiveSettings
    tenant: bytes
    call: CallNames
    most_bytes: int


class Offers:
    """The requests that offer the tool, until their answers are complete. Used on the event loop only."""

    def __init__(self, running: Running) -> None:
        self.running = running

    def note(self, request_id: str, offer: Offer) -> None:
        """Note what the model that answers a request may read."""
        state = self.running.open(request_id)
        state.notes[NAME] = offer
        state.awaited_by |= {NAME}

    def of(self, request_id: str) -> Offer | None:
        """Return what the model that answers a request may read, None if it does not know the tool."""
        offer = self.running.of(request_id).notes.get(NAME)
        return offer if isinstance(offer, Offer) else None

    def forget(self, request_id: str) -> None:
        """Drop a request that is answered."""
        state = self.running.of(request_id)
        state.notes.pop(NAME, None)
        state.awaited_by -= {NAME}
        self.running.hold(request_id, state)


async def answers_of(archive: Archive, offer: Offer, calls: Sequence[str]) -> list[str]:
    """Return the results of one turn's calls with these arguments, at most as much as the window has room for.

    An unknown, an expired and another tenant's handle take the same path to the same answer. Raises nothing.
    """
    left_bytes: float = offer.most_bytes
    texts: list[str] = []
    for n, arguments in enumerate(calls[:MOST_CALLS]):
        page = None
        try:
            page = await _page(archive, offer, arguments, left_bytes / (min(len(calls), MOST_CALLS) - n))
        except Exception as error:  # noqa: BLE001 - the model goes on without; the log names neither text nor owner
            logger.warning("ctx_hooks cannot retrieve a text: %s", type(error).__name__)
        with failing_open("tells of no retrieval"):
            event = RetrievalEvent("retrieval", time.time(), offer.call, "archive", len(page or ""))
            emit(replace(event, source="none") if page is None else event)
        texts.append(NOT_AVAILABLE if page is None else page)
        left_bytes -= utf8_bytes(texts[-1])
    return texts + [NO_ROOM] * (len(calls) - len(texts))


async def _page(archive: Archive, offer: Offer, arguments: str, most_bytes: float) -> str | None:
    asked = asked_of(arguments)
    text = await archive.get(offer.settings, offer.tenant, asked.handle) if asked.handle else None
    if text is None:
        return None
    return await pool.run(offer.tenant, lambda: page_of(text, asked, most_bytes), Deadline(PAGE_SECONDS))
