"""The rounds of the hidden tool: this module answers its calls, and the provider continues, unseen by the client.

If a turn waits for hidden calls only, a further request answers it: the client's messages, the provider's turn and the
results. If a turn also calls tools of the client, it goes to the client without the hidden calls. The client's next request
then gets their results beside its own, and the provider's own messages in place of the answer that the client has seen.

If a further call fails, a client without a stream gets the earlier text, marked as cut off. If there is none, it gets the
error of the further call, in LiteLLM's words for a first call. A client with a stream already has the earlier text, and gets
the error in the stream, as LiteLLM reports a stream that fails halfway. A call that is too long is made once more without
the texts. If that is too long too, it is no error: the earlier text is the answer.
"""

import logging
from collections.abc import AsyncIterator, Callable, Mapping
from functools import partial
from typing import Any, NamedTuple, TypeVar

from ctx_hooks.addons.retrieval import conversation_digest, hidden_turns
from ctx_hooks.addons.retrieval.answer_forms import ShownStream, plain, with_changes
from ctx_hooks.addons.retrieval.archiving import NAME, Archiving
from ctx_hooks.addons.retrieval.conversation_digest import Heard, says_anything
from ctx_hooks.addons.retrieval.further_call import Ask
from ctx_hooks.addons.retrieval.hidden_calls import FORMS
from ctx_hooks.addons.retrieval.hidden_calls.answers import AnswerForm, Turn, messages_of, results_of
from ctx_hooks.addons.retrieval.hidden_turns import HiddenTurn
from ctx_hooks.addons.retrieval.tool import NO_ROOM, can_hide_calls, is_among_tools
from ctx_hooks.litellm_compat.call import Call, request_id_of
from ctx_hooks.litellm_compat.deployments import checks_before_deployment
from ctx_hooks.litellm_compat.errors import failing_open, overflow_of
from ctx_hooks.litellm_compat.logged import price
from ctx_hooks.policy.addon_settings import ArchiveSettings
from ctx_hooks.request.request import Request, format_of
from ctx_hooks.runtime.deadline import Deadline
from ctx_hooks.runtime.worker import pool
from ctx_hooks.serving import reported_usage
from ctx_hooks.serving.running import RequestState, Running

MOST_ROUNDS = 3
"""Further requests for one of the client's; the last one may call no tool, so that it ends with an answer."""
MOST_ANSWERS = 256
"""Newest answers of a conversation whose hidden turns are looked up; compaction keeps little of older ones."""
COST_HEADER = "x-litellm-response-cost"
RESTORE_SECONDS = 10.0
"""For all of a conversation; 30 MB take about 1 s."""

logger = logging.getLogger("ctx_hooks")
T = TypeVar("T")


class View(NamedTuple):
    """A conversation as its client sent it, and the archive of its hidden turns.

    `shows_calls`: whether the model sees calls of the tool in it; it may then call the tool without an offer.
    """

    heard: Heard
    settings: ArchiveSettings
    shows_calls: bool = False


class Rounds:
    """The rounds of one request; `form` reads and writes the calls of its format."""

    def __init__(
        self, archiving: Archiving, ask: Ask, form: AnswerForm, fields: Mapping[str, Any], view: View | None
    ) -> None:
        self.form = form
        self._archiving = archiving
        self._ask = ask
        self._fields = fields
        self._view = view
        self._request_ids = [request_id_of(fields)]
        self._left = MOST_ROUNDS
        self._messages: list[Mapping[str, Any]] = []
        self._shown: list[Mapping[str, Any]] = []

    @property
    def is_known(self) -> bool:
        """Whether the model that answers the client's request knows of the tool."""
        return self._archiving.was_offered(self._request_ids[0]) or (self._view is not None and self._view.shows_calls)

    def goes_on(self, turn: Turn) -> bool:
        """Whether a turn is followed by a round."""
        return turn.waits and self._left > 0

    async def further(self, turn: Turn, *, stream: bool) -> tuple[dict[str, Any], Any] | None:
        """Return the fields and the answer, or stream, of the request that continues a turn.

        If it is too long, it is sent once more without the texts, as the last; None if that is too long too.
        """
        before = (*self._messages, *turn.messages)
        self._shown += turn.shown
        self._left -= 1
        request = Request(format_of(self._fields), self._fields)
        said = request.items
        if checks_before_deployment():
            said = await self._archiving.originals(self._request_ids[0], said)
        for results in (await self._results(turn), results_of(self.form.format, turn.hidden, [NO_ROOM] * len(turn.hidden))):
            self._messages = [*before, *messages_of(results)]
            changes = {request.wire.messages_field: [*said, *self._messages], "stream": stream}
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

    async def keep(self, turn: Turn | None) -> None:
        """Keep the hidden part of an answer, whose last turn this is, for the client's next request."""
        if turn is None or self._view is None or self._view.heard.is_open:
            return  # a continued prefill is not found again as an answer, or is found with the prefill
        with failing_open("does not keep what was retrieved"):
            results = await self._results(turn) if turn.is_whole and turn.has_other_calls else ()
            last = turn.messages if results else turn.shown
            shown = [*self._shown, *turn.shown]
            hides = bool(self._messages or results)
            if not (hides and any(map(says_anything, last)) and any(map(says_anything, shown))):
                return  # nothing to keep, nothing to put at its end, or nothing to find it by
            anchor = self._view.heard.anchor_of(shown)
            kept = HiddenTurn(anchor, [*self._messages, *last], results)
            call = Call(self._fields)
            await self._archiving.note(call, self._view.settings, anchor, hidden_turns.written(kept))

    def end(self) -> None:
        """Keep nothing more for these requests."""
        for request_id in self._request_ids:
            self._archiving.forget(request_id)

    async def _results(self, turn: Turn) -> tuple[Mapping[str, Any], ...]:
        # A further request may have the tool from the one before, and be offered none itself.
        offered_id = next(filter(self._archiving.was_offered, reversed(self._request_ids)), self._request_ids[-1])
        texts = await self._archiving.answers(offered_id, [call.arguments for call in turn.hidden])
        return results_of(self.form.format, turn.hidden, texts)


class ToolRounds:
    """Answers the hidden tool for all requests."""

    def __init__(self, archiving: Archiving, ask: Ask, running: Running) -> None:
        self._archiving = archiving
        self._ask = ask
        self._running = running

    async def restored(self, fields: Mapping[str, Any], settings: ArchiveSettings) -> Mapping[str, Any]:
        """Return the fields of a request with the provider's own messages for answers with hidden calls."""
        with failing_open("sends a conversation without what was retrieved for it"):
            request = Request(format_of(fields), fields)
            form, messages = FORMS.get(request.format), request.items
            if form is None or not isinstance(messages, (list, tuple)) or not can_hide_calls(request):
                return fields
            if not request.fields.get("tools") or is_among_tools(request):
                # "Requests which include `tool_use` or `tool_result` blocks must define tools" (Anthropic). And calls of a
                # client's own tool of the same name are not taken for hidden ones.
                return fields
            before = conversation_digest.sent_before(fields, (request.format, *request.call.askers))
            away = partial(self._away, request.call.tenant)
            heard = await away(lambda: conversation_digest.heard(messages, conversation_digest.heard([before])))
            anchors = await away(lambda: list(filter(None, reversed(heard.anchors)))[:MOST_ANSWERS])
            kept = await self._archiving.noted(request.call, settings, anchors) if anchors else {}
            splice = partial(hidden_turns.spliced, messages, heard.anchors)
            turns = map(hidden_turns.read, kept.values())
            whole = await away(lambda: splice([turn for turn in turns if turn is not None])) if kept else messages
            is_spliced = whole is not messages
            view = View(heard._replace(anchors=heard.anchors[-1:]), settings, shows_calls=is_spliced)
            state = self._running.open(request.call.request_id)
            state.notes.setdefault(NAME, {})["view"] = view
            return {**fields, request.wire.messages_field: whole} if is_spliced else fields
        return fields

    async def whole(self, fields: Mapping[str, Any], answer: Any) -> Any:
        """Return an answer as the client sees it; the same object if it has no hidden calls.

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
                answers.append(plain(reported_usage.whole(self._state_of(asked[0]), *asked)))
                turn = rounds.form.turn_of(answers[-1])
            else:
                await rounds.keep(turn)
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
                shown = ShownStream(rounds.form.begun())
            for seen in [chunk] if shown is None else shown.seen(chunk):
                yield seen
        if shown is None:
            return
        while (turn := shown.turn()) is not None and rounds.goes_on(turn):
            asked = await rounds.further(turn, stream=True)
            if asked is None:
                break
            called, further = asked
            shown.go_on()
            try:
                async for chunk in reported_usage.streamed(self._state_of(called), further):
                    for seen in shown.seen(chunk):
                        yield seen
            finally:
                await _close(further)
        else:
            await rounds.keep(turn)
        for chunk in shown.end():
            yield chunk

    def _state_of(self, fields: Mapping[str, Any]) -> RequestState:
        return self._running.of(request_id_of(fields))

    def _begun(self, fields: Mapping[str, Any]) -> Rounds:
        view = self._state_of(fields).notes.get(NAME, {}).get("view")
        form = FORMS.get(format_of(fields), FORMS["openai-chat"])  # in any other format no model knows the tool
        return Rounds(self._archiving, self._ask, form, fields, view)

    async def _away(self, tenant: str, work: Callable[[], T]) -> T:
        """Run work that grows with the conversation in a thread."""
        return await pool.run(tenant, work, Deadline(RESTORE_SECONDS))


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
