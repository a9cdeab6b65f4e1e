"""Stores removed texts in the archive, and returns them if a model asks for them."""

import asyncio
import logging
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from ctx_hooks.addons.retrieval import tool
from ctx_hooks.addons.retrieval.archive.archive import Archives
from ctx_hooks.addons.retrieval.tool import NO_ROOM, NOT_AVAILABLE, asked_of, page_of
from ctx_hooks.conversation.cut_texts import Handles, Retrievable
from ctx_hooks.engine import engine
from ctx_hooks.engine.decision import NotRetried
from ctx_hooks.engine.engine import Decided
from ctx_hooks.learning.attempts import Known
from ctx_hooks.litellm_compat.call import Call
from ctx_hooks.litellm_compat.errors import failing_open
from ctx_hooks.policy.addon_settings import ArchiveSettings
from ctx_hooks.request.request import Request
from ctx_hooks.request.target import Target
from ctx_hooks.runtime.deadline import COMPRESSION_SECONDS, Deadline, Timings
from ctx_hooks.runtime.worker import pool
from ctx_hooks.serving.recorder import names_of
from ctx_hooks.serving.running import Running
from ctx_hooks.store.shared_store import SharedStore
from ctx_hooks.telemetry.addon_events import RetrievalEvent, RetrievalSource
from ctx_hooks.telemetry.figures import CallNames
from ctx_hooks.telemetry.listeners import emit
from ctx_hooks.texts.pieces import utf8_bytes

NAME = "retrieval"
logger = logging.getLogger("ctx_hooks")

MOST_BEHIND_FRACTION = 0.05
"""The largest share of time for making texts again, even if many are too large or the store fails."""
BYTES_PER_BUDGET_TOKEN = 1.0
"""Limits all texts of one turn to about a quarter of the budget in English, half of it in Chinese. So the next request fits
in the window, whatever the model asks for, and its newest results stay complete."""
MOST_CALLS = 50
"""Answered calls of one turn, each in a thread for up to PAGE_SECONDS; a model can be made to write thousands."""
PAGE_SECONDS = 5.0
"""Ranking the lines of the longest text, 32 MB, takes less."""


class Offer(NamedTuple):
    """A request that offers the tool to its model, until the answer is complete.

    `most_bytes`: the limit for the texts that one turn of the model gets.
    """

    settings: ArchiveSettings
    tenant: bytes
    call: CallNames
    most_bytes: int


@dataclass
class KeptRequest:
    """A request that is kept so that its removed texts can be made again.

    Attributes:
        decided_by: request, target and knowledge of the first decision, by which the engine repeats it.
        timeout_seconds: the limit for repeating it.
        size_bytes: the estimated memory of its messages and the removed texts.
        texts: the removed texts, after they were made again.
    """

    decided_by: tuple[Request, Target, Known] = field(repr=False)
    timeout_seconds: float
    size_bytes: int
    texts: Mapping[str, str] | None = field(default=None, repr=False)


class Archiving:
    """Stores removed texts, and answers the calls of the retrieval tool. Used on the event loop only.

    A client sends its whole history with each request. If the archive has lost a text, or only another worker has it, the
    request that names the text is compacted again.

    Attributes:
        archives: the stores of the texts.
        storing: the task that makes texts again behind requests; None before the first one.
    """

    def __init__(self, store: SharedStore, running: Running) -> None:
        self.archives = Archives(store)
        self._running = running
        self.storing: asyncio.Task[None] | None = None
        self._store_behind_at = 0.0

    def named(self, request: Request, to: Target) -> Target:
        """Return the target of a request with the handles of its removed texts, if the policy archives them."""
        with failing_open("cuts without an archive"):
            settings = to.policy.archive_in_use
            if settings is not None and to.policy.mode == "enforce":
                offered = tool.definition(request.format) if tool.may_be_offered(request, to.policy) else None
                handles = Handles(self._tenant_of(request.call, settings))
                return replace(to, retrievable=Retrievable(handles, settings.retention_days, offered))
        return to

    def decided(self, request: Request, to: Target, decided: Decided) -> None:
        """Store the texts that a decision removes, and keep the request if it offers the tool.

        A request that was fitted before the Router chose its deployment has the tool at the second decision: it stays
        offered.
        """
        settings = to.policy.archive_in_use
        if settings is None or to.policy.mode != "enforce":
            return
        if not tool.is_among_tools(request):
            self.forget(to.request_id)
        with failing_open("archives nothing of a request"):
            if not decided.cut or isinstance(decided.decision, NotRetried):
                return
            tenant = self._tenant_of(request.call, settings)
            kept = KeptRequest((request, to, decided.attempt.known), COMPRESSION_SECONDS, 2 * decided.received_bytes)
            if not self.archives.put(settings, tenant, decided.cut):
                self._store_behind(settings, tenant, kept)
            if decided.offers and to.request_id:
                state = self._running.open(to.request_id)
                most_bytes = int((decided.attempt.budget_tokens or to.window.tokens) * BYTES_PER_BUDGET_TOKEN)
                offer = Offer(settings, tenant, names_of(request.call, to), most_bytes)
                before = state.held.get(NAME) if tool.is_among_tools(request) else None
                state.notes.setdefault(NAME, {})["offer"] = offer
                state.held[NAME] = before or kept
                state.awaited_by |= {NAME}
                self._running.hold(to.request_id, state)

    def was_offered(self, request_id: str) -> bool:
        """Whether the model that answers a request is offered the tool."""
        return self._kept(request_id)[0] is not None

    async def answers(self, request_id: str, calls: Sequence[str]) -> list[str]:
        """Return the results of one turn's calls, at most as much as the window has room for. Raises nothing."""
        offer, _ = self._kept(request_id)
        left_bytes = offer.most_bytes if offer is not None else 0
        texts: list[str] = []
        for n, arguments in enumerate(calls[:MOST_CALLS]):
            texts.append(await self.answer(request_id, arguments, left_bytes / (min(len(calls), MOST_CALLS) - n)))
            left_bytes -= utf8_bytes(texts[-1])
        return texts + [NO_ROOM] * (len(calls) - len(texts))

    async def originals(self, request_id: str, items: Sequence[Any]) -> Sequence[Any]:
        """Return the messages that a request had before it was fitted to `items`.

        Return `items` if those are unknown, or if another hook has changed `items` since.
        """
        _, kept = self._kept(request_id)
        with failing_open("fits a further call from what was fitted before"):
            if kept is not None:
                request, to, _ = kept.decided_by
                deadline = Deadline(kept.timeout_seconds)
                sent = await pool.run(to.tenant, lambda: engine.decide(*kept.decided_by, deadline, Timings()), deadline)
                fitted = {**request.fields, **sent.decision.changes}
                if await pool.run(to.tenant, lambda: replace(request, fields=fitted).items == items, deadline):
                    found: Sequence[Any] = request.items
                    return found
        return items

    async def answer(self, request_id: str, arguments: str, most_bytes: float = math.inf) -> str:
        """Return the result of a call of the tool, at most `most_bytes` of it.

        An unknown, an expired and another tenant's handle take the same path to the same answer. Raises nothing.
        """
        start = time.monotonic()
        offer, kept = self._kept(request_id)
        source, page = await self._page(offer, kept, arguments, most_bytes)
        with failing_open("tells of no retrieval"):
            call = CallNames(request_id) if offer is None else offer.call
            chars = 0 if source == "none" else len(page)
            emit(RetrievalEvent("retrieval", time.time(), call, source, chars, (time.monotonic() - start) * 1e3))
        return page

    def forget(self, request_id: str) -> None:
        """Drop a request that is answered."""
        state = self._running.of(request_id)
        state.notes.get(NAME, {}).pop("offer", None)
        state.held.pop(NAME, None)
        state.awaited_by -= {NAME}
        self._running.hold(request_id, state)

    def _kept(self, request_id: str) -> tuple[Offer | None, KeptRequest | None]:
        state = self._running.of(request_id)
        kept = state.held.get(NAME)
        return state.notes.get(NAME, {}).get("offer"), kept if isinstance(kept, KeptRequest) else None

    async def _page(
        self, offer: Offer | None, kept: KeptRequest | None, arguments: str, most_bytes: float
    ) -> tuple[RetrievalSource, str]:
        asked = asked_of(arguments)
        if offer is None or not asked.handle:
            return "none", NOT_AVAILABLE
        source: RetrievalSource = "archive"
        try:
            text = await self.archives.get(offer.settings, offer.tenant, asked.handle)
            if text is None and kept is not None:
                source, text = "request", (await self._made_again(offer.settings, offer.tenant, kept)).get(asked.handle)
            if text is not None:
                return source, await pool.run(offer.tenant, lambda: page_of(text, asked, most_bytes), Deadline(PAGE_SECONDS))
        except Exception as error:  # noqa: BLE001 - the model goes on without; the log names neither text nor owner
            logger.warning("ctx_hooks cannot retrieve a text: %s", type(error).__name__)
        return "none", NOT_AVAILABLE

    async def _made_again(self, settings: ArchiveSettings, tenant: bytes, kept: KeptRequest) -> Mapping[str, str]:
        if kept.texts is None:
            deadline = Deadline(kept.timeout_seconds)
            kept.texts = await pool.run(tenant, lambda: engine.cut_again(*kept.decided_by, deadline), deadline)
            self.archives.put(settings, tenant, kept.texts)
        return kept.texts

    def _store_behind(self, settings: ArchiveSettings, tenant: bytes, kept: KeptRequest) -> None:
        """Store, behind a request, texts that it refers to and an earlier request has removed.

        The earlier caller may have left, or the store may have failed. It handles one request at a time. If a conversation
        has to wait, its later requests come here too.
        """
        if time.monotonic() < self._store_behind_at:
            return
        self._store_behind_at = math.inf

        async def store() -> None:
            start = time.monotonic()
            try:
                with failing_open("archives nothing of a request"):
                    await self._made_again(settings, tenant, kept)
            finally:
                self._store_behind_at = start + (time.monotonic() - start) / MOST_BEHIND_FRACTION

        self.storing = asyncio.get_running_loop().create_task(store())

    def _tenant_of(self, call: Call, settings: ArchiveSettings) -> bytes:
        return self.archives.tenant(*call.owner(settings.scope))
