"""The rounds of the hidden tool: its calls are answered, and the provider continues, unseen by the client."""

import logging
from collections.abc import AsyncIterator, Mapping
from typing import Any

from ctx_hooks.addons.retrieval.answer_forms import ShownStream, plain, with_fields
from ctx_hooks.addons.retrieval.answering import Offers, answers_of
from ctx_hooks.addons.retrieval.archive.archive import Archive
from ctx_hooks.addons.retrieval.further_call import Ask
from ctx_hooks.addons.retrieval.hidden_calls import FORMS
from ctx_hooks.addons.retrieval.hidden_calls.answers import Turn, results_of
from ctx_hooks.addons.retrieval.tool import NO_ROOM
from ctx_hooks.formats import CHAT, WIRE_FORMATS
from ctx_hooks.litellm_compat.call import request_id_of
from ctx_hooks.litellm_compat.errors import failing_open, overflow_of
from ctx_hooks.litellm_compat.logged import price
from ctx_hooks.request.request import Request, format_of

MOST_ROUNDS = 3
"""Further requests for one of the client's; the last one may call no tool, so that it ends with an answer."""
COST_HEADER = "x-litellm-response-cost"
logger = logging.getLogger("ctx_hooks")


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
        """Return an answer as the client sees it; the same object if it has no hidden calls.

        If a further call fails, it is the earlier text, marked as cut off.

        Raises:
            Exception: a further call failed, and nothing was said before it.
        """
        try:
            return answer if self._offers.of(self._request_ids[0]) is None else await self._joined(answer)
        finally:
            self._end()

    async def _joined(self, answer: Any) -> Any:
        answers, turn = [plain(answer)], None
        with failing_open("shows an answer as it came"):
            turn = self._form.turn_of(answers[0])
            if not turn.hidden:
                return with_fields(answer, self._form.joined(answers))
        if turn is None or not turn.hidden:
            return answer
        self._add_cost(self._fields, answer)
        is_whole = True
        try:
            while is_whole and self._goes_on(turn):
                if (asked := await self._further(turn, stream=False)) is None:
                    is_whole = False
                else:
                    self._add_cost(*asked)
                    answers.append(plain(asked[1]))
                    turn = self._form.turn_of(answers[-1])
        except Exception as error:
            is_whole = False
            said = WIRE_FORMATS[self._form.format].read(self._form.sent_back(self._form.joined(answers)))
            if not any(message.text.strip() or message.calls for message in said.messages):
                raise
            logger.warning("a further call failed: the client gets what was said before it", exc_info=error)
        with failing_open("shows an answer as it came"):
            return with_fields(answer, self._form.joined(answers, is_whole=is_whole))
        return answer

    async def streamed(self, stream: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """Yield the chunks of a stream as the client sees them, each at once except the end of a round.

        Raises:
            Exception: a further call failed.
        """
        try:
            async for chunk in self._spliced(stream):
                yield chunk
        finally:
            self._end()

    async def _spliced(self, stream: AsyncIterator[Any]) -> AsyncIterator[Any]:
        shown: ShownStream | None = None
        async for chunk in stream:
            # Each time: the Router may change the deployment in mid-stream.
            if shown is None and self._offers.of(self._request_ids[0]) is not None:
                shown = ShownStream(self._form())
            for seen in [chunk] if shown is None else shown.seen(chunk):
                yield seen
        if shown is None:
            return
        while (turn := shown.turn()) is not None and self._goes_on(turn):
            if (asked := await self._further(turn, stream=True)) is None:
                break
            _, further = asked
            shown.go_on()
            try:
                async for chunk in further:
                    for seen in shown.seen(chunk):
                        yield seen
            finally:
                await _close(further)
        for chunk in shown.end():
            yield chunk

    def _goes_on(self, turn: Turn) -> bool:
        """Whether a turn is followed by a round.

        If it also calls tools of the client, it goes to the client without the hidden calls. The client's next request has
        no hidden part: what the model needs of a text stands in its answer, and it can retrieve the text again.
        """
        return turn.waits and self._left > 0

    async def _further(self, turn: Turn, *, stream: bool) -> tuple[dict[str, Any], Any] | None:
        """Return the fields and the answer, or stream, of the request that continues a turn.

        If it is too long, it is sent once more without the texts, as the last; None if that is too long too.
        """
        before = (*self._messages, *turn.messages)
        self._left -= 1
        request, offer = Request(format_of(self._fields), self._fields), self._offers.of(self._request_ids[0])
        no_texts = [NO_ROOM] * len(turn.hidden)
        arguments = [call.arguments for call in turn.hidden]
        found = no_texts if offer is None else await answers_of(self._archive, offer, arguments)
        for texts in (found, no_texts):
            self._messages = [*before, *results_of(self._form.format, turn.hidden, texts)]
            changes = {request.wire.messages_field: [*request.items, *self._messages], "stream": stream}
            try:
                called, answer = await self._ask(self._fields, {**changes, **({} if self._left else self._form.no_calls)})
            except Exception as error:
                if overflow_of(error) is None:
                    raise
                logger.warning("a further call was too long", exc_info=error)
                self._left = 0
                continue
            self._request_ids.append(request_id_of(called))
            return called, answer
        return None

    def _add_cost(self, fields: Mapping[str, Any], answer: Any) -> None:
        """Add the cost of a call to the header of the whole answer: LiteLLM's header has only the first call's."""
        with failing_open("leaves the cost of an answer to be calculated from what the client sees"):
            headers, cost = self._offers.running.of(self._request_ids[0]).headers, price(fields, answer)
            if cost is not None:
                headers[COST_HEADER] = str(float(headers.get(COST_HEADER, 0.0)) + cost)

    def _end(self) -> None:
        for request_id in self._request_ids:
            self._offers.forget(request_id)


async def _close(stream: Any) -> None:
    """Close a stream that may be unfinished: the client has left, and nobody waits for more."""
    if hasattr(stream, "aclose"):
        await stream.aclose()
