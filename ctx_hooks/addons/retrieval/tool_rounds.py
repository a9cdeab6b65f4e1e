"""The rounds of the hidden tool: its calls are answered, and the provider continues, unseen by the client."""

import logging
from collections.abc import AsyncIterator, Mapping
from typing import Any

from ctx_hooks.addons.retrieval.answer_forms import ShownStream, plain, with_changes
from ctx_hooks.addons.retrieval.archiving import Archiving
from ctx_hooks.addons.retrieval.further_call import Ask
from ctx_hooks.addons.retrieval.hidden_calls import FORMS
from ctx_hooks.addons.retrieval.hidden_calls.answers import Answers, Turn, messages_of, results_of, says_anything
from ctx_hooks.addons.retrieval.tool import NO_ROOM
from ctx_hooks.formats import CHAT
from ctx_hooks.litellm_compat.call import request_id_of
from ctx_hooks.litellm_compat.errors import failing_open, overflow_of
from ctx_hooks.litellm_compat.logged import price
from ctx_hooks.request.request import Request, format_of
from ctx_hooks.serving.running import RequestState, Running

MOST_ROUNDS = 3
"""Further requests for one of the client's; the last one may call no tool, so that it ends with an answer."""
COST_HEADER = "x-litellm-response-cost"
logger = logging.getLogger("ctx_hooks")


class Rounds:
    """The rounds of one request; `form` reads and writes the calls of its format."""

    def __init__(self, archiving: Archiving, ask: Ask, form: type[Answers], fields: Mapping[str, Any]) -> None:
        self.form = form
        self._archiving = archiving
        self._ask = ask
        self._fields = fields
        self._request_ids = [request_id_of(fields)]
        self._left = MOST_ROUNDS
        self._messages: list[Mapping[str, Any]] = []

    @property
    def is_known(self) -> bool:
        """Whether the model that answers the client's request knows of the tool."""
        return self._archiving.offer(self._request_ids[0]) is not None

    def goes_on(self, turn: Turn) -> bool:
        """Whether a turn is followed by a round.

        If it also calls tools of the client, it goes to the client without the hidden calls. The client's next request has
        no hidden part: what the model needs of a text stands in its answer, and it can retrieve the text again.
        """
        return turn.waits and self._left > 0

    async def further(self, turn: Turn, *, stream: bool) -> tuple[dict[str, Any], Any] | None:
        """Return the fields and the answer, or stream, of the request that continues a turn.

        If it is too long, it is sent once more without the texts, as the last; None if that is too long too.
        """
        before = (*self._messages, *turn.messages)
        self._left -= 1
        request = Request(format_of(self._fields), self._fields)
        for results in (await self._results(turn), results_of(self.form.format, turn.hidden, [NO_ROOM] * len(turn.hidden))):
            self._messages = [*before, *messages_of(results)]
            changes = {request.wire.messages_field: [*request.items, *self._messages], "stream": stream}
            try:
                called, answer = await self._ask(self._fields, {**changes, **({} if self._left else self.form.no_calls)})
            except Exception as error:
                if overflow_of(error) is None:
                    raise
                logger.warning("a further call was too long", exc_info=error)
                self._left = 0
                continue
            self._request_ids.append(request_id_of(called))
            return called, answer
        return None

    def end(self) -> None:
        """Keep nothing more for these requests."""
        for request_id in self._request_ids:
            self._archiving.forget(request_id)

    async def _results(self, turn: Turn) -> tuple[Mapping[str, Any], ...]:
        # A further request may have the tool from the one before, and be offered none itself.
        offered_id = next(filter(self._archiving.offer, reversed(self._request_ids)), self._request_ids[-1])
        texts = await self._archiving.answers(offered_id, [call.arguments for call in turn.hidden])
        return results_of(self.form.format, turn.hidden, texts)


class ToolRounds:
    """Answers the hidden tool for all requests."""

    def __init__(self, archiving: Archiving, ask: Ask, running: Running) -> None:
        self._archiving = archiving
        self._ask = ask
        self._running = running

    async def whole(self, fields: Mapping[str, Any], answer: Any) -> Any:
        """Return an answer as the client sees it; the same object if it has no hidden calls.

        If a further call fails, it is the earlier text, marked as cut off.

        Raises:
            Exception: a further call failed, and nothing was said before it.
        """
        rounds = self._begun(fields)
        try:
            return await self._joined(rounds, fields, answer) if rounds.is_known else answer
        finally:
            rounds.end()

    async def _joined(self, rounds: Rounds, fields: Mapping[str, Any], answer: Any) -> Any:
        answers: list[Mapping[str, Any]] = []
        turn = None
        with failing_open("shows an answer as it came"):
            answers.append(plain(answer))
            turn = rounds.form.turn_of(answers[0])
            if not turn.hidden:
                return with_changes(answer, answers[0], rounds.form.joined(answers))
        if turn is None or not turn.hidden:
            return answer
        state = self._state_of(fields)
        _add_cost(state, fields, answer)
        is_whole = True
        try:
            while rounds.goes_on(turn):
                asked = await rounds.further(turn, stream=False)
                if asked is None:
                    is_whole = False
                    break
                _add_cost(state, *asked)
                answers.append(plain(asked[1]))
                turn = rounds.form.turn_of(answers[-1])
        except Exception as error:
            is_whole = False
            said = rounds.form.turn_of(rounds.form.joined(answers))
            if not any(map(says_anything, said.messages)):
                raise
            logger.warning("a further call failed: the client gets what was said before it", exc_info=error)
        with failing_open("shows an answer as it came"):
            return with_changes(answer, answers[0], rounds.form.joined(answers, is_whole=is_whole))
        return answer

    async def streamed(self, fields: Mapping[str, Any], stream: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """Yield the chunks of a stream as the client sees them, each at once except the end of a round.

        Raises:
            Exception: a further call failed.
        """
        rounds = self._begun(fields)
        try:
            async for chunk in self._spliced(rounds, stream):
                yield chunk
        finally:
            rounds.end()

    async def _spliced(self, rounds: Rounds, stream: AsyncIterator[Any]) -> AsyncIterator[Any]:
        shown: ShownStream | None = None
        async for chunk in stream:
            if shown is None and rounds.is_known:  # each time: the Router may change the deployment in mid-stream
                shown = ShownStream(rounds.form())
            for seen in [chunk] if shown is None else shown.seen(chunk):
                yield seen
        if shown is None:
            return
        while (turn := shown.turn()) is not None and rounds.goes_on(turn):
            asked = await rounds.further(turn, stream=True)
            if asked is None:
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

    def _state_of(self, fields: Mapping[str, Any]) -> RequestState:
        return self._running.of(request_id_of(fields))

    def _begun(self, fields: Mapping[str, Any]) -> Rounds:
        form = FORMS.get(format_of(fields), FORMS[CHAT])  # in any other format no model knows the tool
        return Rounds(self._archiving, self._ask, form, fields)


def _add_cost(state: RequestState, fields: Mapping[str, Any], answer: Any) -> None:
    """Add the cost of a call to the header of the whole answer: LiteLLM's header has only the first call's."""
    with failing_open("leaves the cost of an answer to be calculated from what the client sees"):
        cost = price(fields, answer)
        if cost is not None:
            state.headers[COST_HEADER] = str(float(state.headers.get(COST_HEADER, 0.0)) + cost)


async def _close(stream: Any) -> None:
    """Close a stream that may be unfinished: the client has left, and nobody waits for more."""
    if hasattr(stream, "aclose"):
        await stream.aclose()
