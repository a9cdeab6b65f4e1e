"""Archives removed texts, and answers the calls of the retrieval tool."""

import asyncio
import logging
import math
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from ctx_hooks.addons.retrieval import tool
from ctx_hooks.addons.retrieval.archive.archive import Archive
from ctx_hooks.addons.retrieval.tool import NO_ROOM, NOT_AVAILABLE, asked_of, page_of
from ctx_hooks.conversation.handles import Retrievable
from ctx_hooks.engine.decision import NotRetried
from ctx_hooks.engine.engine import Decided
from ctx_hooks.litellm_compat.errors import failing_open
from ctx_hooks.policy.addon_settings import ArchiveSettings
from ctx_hooks.request.request import Request
from ctx_hooks.request.target import Target
from ctx_hooks.runtime.deadline import Deadline
from ctx_hooks.runtime.worker import pool
from ctx_hooks.serving.recorder import names_of
from ctx_hooks.serving.running import Running
from ctx_hooks.store.shared_store import SharedStore
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
    """A request that offers the tool to its model, until the answer is complete.

    `most_bytes`: the limit for the texts that one turn of the model gets.
    """

    settings: ArchiveSettings
    tenant: bytes
    call: CallNames
    most_bytes: int


class Archiving:
    """The archive, and the requests that offer the tool. Used on the event loop only."""

    def __init__(self, store: SharedStore, running: Running) -> None:
        self.archive = Archive(store)
        self._running = running

    def named(self, request: Request, to: Target) -> Target:
        """Return the target of a request with the handles of its removed texts, if the policy archives them."""
        settings = to.policy.archive_in_use
        with failing_open("cuts without an archive"):
            if settings is not None and to.policy.mode == "enforce":
                offered = tool.definition(request.format) if tool.may_be_offered(request, to.policy) else None
                tenant = self.archive.tenant(*request.call.owner(settings.scope))
                store = partial(self.archive.store, asyncio.get_running_loop(), settings, tenant)
                return replace(to, retrievable=Retrievable(tenant, settings.retention_days, offered, store))
        return to

    def decided(self, request: Request, to: Target, decided: Decided) -> None:
        """Note whether a request offers the tool.

        A request that was fitted before the Router chose its deployment has the tool at the second decision: it stays
        offered.
        """
        settings, found = to.policy.archive_in_use, to.retrievable
        if settings is None or to.policy.mode != "enforce":
            return
        if not tool.is_among_tools(request):
            self.forget(to.request_id)
        if found is not None and decided.offers and to.request_id and not isinstance(decided.decision, NotRetried):
            state = self._running.open(to.request_id)
            most_bytes = int((decided.attempt.budget_tokens or to.window.tokens) * BYTES_PER_BUDGET_TOKEN)
            state.notes[NAME] = Offer(settings, found.tenant, names_of(request.call, to), most_bytes)
            state.awaited_by |= {NAME}

    def offer(self, request_id: str) -> Offer | None:
        """Return the offer of the tool to the model that answers a request."""
        offer = self._running.of(request_id).notes.get(NAME)
        return offer if isinstance(offer, Offer) else None

    def forget(self, request_id: str) -> None:
        """Drop a request that is answered."""
        state = self._running.of(request_id)
        state.notes.pop(NAME, None)
        state.awaited_by -= {NAME}
        self._running.hold(request_id, state)

    async def answers(self, request_id: str, calls: Sequence[str]) -> list[str]:
        """Return the results of one turn's calls, at most as much as the window has room for. Raises nothing."""
        offer = self.offer(request_id)
        left_bytes = offer.most_bytes if offer is not None else 0
        texts: list[str] = []
        for n, arguments in enumerate(calls[:MOST_CALLS]):
            texts.append(await self.answer(request_id, arguments, left_bytes / (min(len(calls), MOST_CALLS) - n)))
            left_bytes -= utf8_bytes(texts[-1])
        return texts + [NO_ROOM] * (len(calls) - len(texts))

    async def answer(self, request_id: str, arguments: str, most_bytes: float = math.inf) -> str:
        """Return the result of a call of the tool, at most `most_bytes` of it.

        An unknown, an expired and another tenant's handle take the same path to the same answer. Raises nothing.
        """
        offer, page = self.offer(request_id), None
        try:
            page = await self._page(offer, arguments, most_bytes)
        except Exception as error:  # noqa: BLE001 - the model goes on without; the log names neither text nor owner
            logger.warning("ctx_hooks cannot retrieve a text: %s", type(error).__name__)
        with failing_open("tells of no retrieval"):
            call = CallNames(request_id) if offer is None else offer.call
            event = RetrievalEvent("retrieval", time.time(), call, "archive", len(page or ""))
            emit(replace(event, source="none") if page is None else event)
        return NOT_AVAILABLE if page is None else page

    async def _page(self, offer: Offer | None, arguments: str, most_bytes: float) -> str | None:
        asked = asked_of(arguments)
        if offer is None or not asked.handle:
            return None
        text = await self.archive.get(offer.settings, offer.tenant, asked.handle)
        if text is None:
            return None
        return await pool.run(offer.tenant, lambda: page_of(text, asked, most_bytes), Deadline(PAGE_SECONDS))
