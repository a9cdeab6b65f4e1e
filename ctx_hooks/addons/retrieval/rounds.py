"""The rounds of the hidden tool: its calls are answered, and the provider continues, unseen by the client."""

import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

from ctx_hooks.addons.retrieval.answer_forms import ShownStream, like, plain
from ctx_hooks.addons.retrieval.archive.archive import Archive
from ctx_hooks.addons.retrieval.hidden_calls import FORMS
from ctx_hooks.addons.retrieval.hidden_calls.answers import Turn, results_of
from ctx_hooks.addons.retrieval.tool import LEAST_PAGE_BYTES, NO_ROOM, NOT_AVAILABLE, asked_of, page_of
from ctx_hooks.attempts.request import Request, format_of
from ctx_hooks.conversation.handles import is_handle
from ctx_hooks.flow.running import Running
from ctx_hooks.formats import ANTHROPIC, CHAT
from ctx_hooks.litellm_compat.call import request_id_of
from ctx_hooks.litellm_compat.errors import failing_open, overflow_of
from ctx_hooks.litellm_compat.stream_events import close
from ctx_hooks.policy.addon_settings import ArchiveSettings
from ctx_hooks.runtime.deadline import Deadline
from ctx_hooks.runtime.worker import pool
from ctx_hooks.telemetry.events import CallNames, RetrievalEvent
from ctx_hooks.telemetry.listeners import emit

NAME = "retrieval"
MOST_ROUNDS = 3
"""Further requests for one of the client's; the last one may call no tool, so that it ends with an answer."""
PAGE_SECONDS = 5.0
"""Ranking the lines of the longest text takes less."""
Ask: TypeAlias = Callable[[Mapping[str, Any], Mapping[str, Any]], Awaitable[tuple[dict[str, Any], Any]]]
"""Repeats a call with changes to the request's fields; returns the new call's fields, and its answer or stream."""
logger = logging.getLogger("ctx_hooks")


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
        """Note a request that offers the tool."""
        state = self.running.open(request_id)
        state.notes[NAME] = offer
        state.awaited_by |= {NAME}

    def of(self, request_id: str) -> Offer | None:
        """Return what the model that answers a request may read, None if the request does not offer the tool."""
        offer: Offer | None = self.running.of(request_id).notes.get(NAME)
        return offer

    def forget(self, request_id: str) -> None:
        """Drop a request that is answered."""
        state = self.running.of(request_id)
        state.notes.pop(NAME, None)
        state.awaited_by -= {NAME}
        self.running.hold(request_id, state)


class Rounds:
    """The rounds of one request of a client."""

    def __init__(self, archive: Archive, offers: Offers, ask: Ask, fields: Mapping[str, Any]) -> None:
        self._archive, self._offers, self._ask = archive, offers, ask
        self._fields = fields
        self._form = FORMS.get(format_of(fields), FORMS[CHAT])  # in any other format no model knows the tool
        self._request_ids = [request_id_of(fields)]
        self._left = MOST_ROUNDS
        self._messages: list[Mapping[str, Any]] = []

    async def whole(self, answer: Any) -> Any:
        """Return an answer as the client sees it, the same object if nothing is hidden; a further call may raise."""
        try:
            return answer if self._offers.of(self._request_ids[0]) is None else await self._joined(answer)
        finally:
            self._end()

    async def _joined(self, answer: Any) -> Any:
        answers, turn = [plain(answer)], None
        with failing_open("shows an answer as it came"):
            turn = self._form.turn_of(answers[0])
        if turn is None:
            return answer
        while (further := await self._further(turn, stream=False)) is not None:
            answers.append(plain(further))
            turn = self._form.turn_of(answers[-1])
        return like(answer, self._form.joined(answers))

    async def streamed(self, stream: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """Yield the chunks of a stream as the client sees them, all but the end of a round at once; may raise as `whole`."""
        shown: ShownStream | None = None
        try:
            async for chunk in stream:
                # Each time: the Router may change the deployment in mid-stream.
                if shown is None and self._offers.of(self._request_ids[0]) is not None:
                    shown = ShownStream(self._form())
                for seen in [chunk] if shown is None else shown.seen(chunk):
                    yield seen
            while shown is not None and (further := await self._further(shown.turn(), stream=True)) is not None:
                shown.go_on()
                try:
                    async for chunk in further:
                        for seen in shown.seen(chunk):
                            yield seen
                finally:  # the client may have left
                    await close(further)
            for chunk in [] if shown is None else shown.end():
                yield chunk
        finally:
            self._end()

    async def _further(self, turn: Turn | None, *, stream: bool) -> Any:
        """Return the answer, or stream, of the request that continues a turn; None if there is none.

        A turn that also calls the client's tools goes to the client, without the hidden calls: what the model needs of a
        text stands in its answer.

        If the request is too long, it is sent once more without the texts, as the last; None if that is too long too.
        """
        if turn is None or not turn.waits or not self._left:
            return None
        before = (*self._messages, *turn.messages)
        self._left -= 1
        request, offer = Request(format_of(self._fields), self._fields), self._offers.of(self._request_ids[0])
        no_texts = [NO_ROOM] * len(turn.hidden)
        arguments = [call.arguments for call in turn.hidden]
        found = no_texts if offer is None else await answers_of(self._archive, offer, arguments)
        for texts in (found, no_texts):
            self._messages = [*before, *results_of(self._form.format, turn.hidden, texts)]
            changes = {request.wire.messages_field: [*request.items, *self._messages], "stream": stream}
            if not self._left:
                changes["tool_choice"] = {"type": "none"} if self._form.format == ANTHROPIC else "none"
            try:
                called, answer = await self._ask(self._fields, changes)
            except Exception as error:
                if overflow_of(error) is None:
                    raise
                logger.warning("a further call was too long", exc_info=error)
                self._left = 0
                continue
            self._request_ids.append(request_id_of(called))
            return answer
        return None

    def _end(self) -> None:
        for request_id in self._request_ids:
            self._offers.forget(request_id)


async def answers_of(archive: Archive, offer: Offer, calls: Sequence[str]) -> list[str]:
    """Return the results of one turn's calls with these arguments: they share what the window has room for.

    An unknown, an expired and another tenant's handle take the same path to the same answer. Raises nothing.
    """
    share_bytes = offer.most_bytes / max(1, len(calls))
    if share_bytes < LEAST_PAGE_BYTES:
        return [NO_ROOM] * len(calls)
    texts: list[str] = []
    for arguments in calls:
        page = None
        try:
            page = await _page(archive, offer, arguments, share_bytes)
        except Exception as error:  # noqa: BLE001 - the model goes on without; the log names neither text nor owner
            logger.warning("ctx_hooks cannot retrieve a text: %s", type(error).__name__)
        with failing_open("tells of no retrieval"):
            source: Literal["archive", "none"] = "none" if page is None else "archive"
            emit(RetrievalEvent("retrieval", time.time(), offer.call, source, len(page or "")))
        texts.append(NOT_AVAILABLE if page is None else page)
    return texts


async def _page(archive: Archive, offer: Offer, arguments: str, most_bytes: float) -> str | None:
    asked = asked_of(arguments)
    text = await archive.get(offer.settings, offer.tenant, asked.handle) if is_handle(asked.handle) else None
    if text is None:
        return None
    return await pool.run(offer.tenant, lambda: page_of(text, asked, most_bytes), Deadline(PAGE_SECONDS))
