"""The rounds of one request: what the model has asked of the hidden tool is answered, and the provider is asked again."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ctx_hooks import litellm_compat
from ctx_hooks.addons.retrieval import hidden_turns
from ctx_hooks.addons.retrieval.conversation_digest import said_in, says_anything
from ctx_hooks.addons.retrieval.hidden_calls.turn import results_of
from ctx_hooks.addons.retrieval.hidden_turns import HiddenTurn
from ctx_hooks.addons.retrieval.page import NO_ROOM
from ctx_hooks.litellm_compat.failing_open import failing_open
from ctx_hooks.request.request import Request, format_of

if TYPE_CHECKING:
    from ctx_hooks.addons.retrieval.archiving import Archiving
    from ctx_hooks.addons.retrieval.further_call import Ask
    from ctx_hooks.addons.retrieval.hidden_calls.turn import HiddenCalls, Turn
    from ctx_hooks.addons.retrieval.notes import View

MOST_ROUNDS = 3
"""Further requests for one of the client's; the last of them may call no tool, so that it ends with an answer."""

logger = logging.getLogger("ctx_hooks")


class Rounds:
    """The rounds of one request.

    Attributes:
        form: how its format has calls.
    """

    def __init__(
        self, archiving: Archiving, ask: Ask, form: HiddenCalls, fields: Mapping[str, Any], view: View | None
    ) -> None:
        self.form = form
        self._archiving = archiving
        self._ask = ask
        self._fields = fields
        self._view = view
        self._request_ids = [litellm_compat.Call(fields).request_id]
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
        """Return the fields and the answer, or stream, of the request that goes on behind a turn.

        One that is too long is sent once more without the texts, and is the last; None where that is too long as well.
        """
        before = (*self._messages, *turn.messages)
        self._shown += self.form.without(turn)
        self._left -= 1
        request = Request(format_of(self._fields), self._fields)
        said = request.items
        if litellm_compat.checks_before_deployment():
            said = await self._archiving.originals(self._request_ids[0], said)
        for results in (await self._results(turn), results_of(self.form.FORMAT, turn.hidden, [NO_ROOM] * len(turn.hidden))):
            self._messages = [*before, *self.form.messages_of(results)]
            changes = {request.wire.messages_field: [*said, *self._messages], "stream": stream}
            try:
                called, answer = await self._ask(self._fields, {**changes, **({} if self._left else self.form.NO_CALLS)})
            except Exception as error:
                if litellm_compat.overflow_of(error) is None:
                    raise
                logger.warning("a further call was too long", exc_info=error)
                self._left = 0
                continue
            self._request_ids.append(litellm_compat.Call(called).request_id)
            return called, answer
        return None

    async def keep(self, turn: Turn | None) -> None:
        """Keep what the client is not shown of its answer, whose last turn this is, for its next request."""
        if turn is None or self._view is None or self._view.is_open:
            return  # what goes on from the assistant's own is not found again as an answer, or found with that
        with failing_open("does not keep what was retrieved"):
            results = await self._results(turn) if turn.is_whole and turn.has_other_calls else ()
            last = turn.messages if results else self.form.without(turn)
            shown = [*self._shown, *self.form.without(turn)]
            hides = bool(self._messages or results)
            if not (hides and any(map(says_anything, last)) and any(map(says_anything, shown))):
                return  # nothing to keep, nothing to put at its end, or nothing to find it by
            anchor = said_in(shown, self._view.said).anchor
            kept = HiddenTurn(anchor, [*self._messages, *last], results)
            call = litellm_compat.Call(self._fields)
            await self._archiving.note(call, self._view.settings, anchor, hidden_turns.written(kept))

    def end(self) -> None:
        """Have nothing more kept for these requests."""
        for request_id in self._request_ids:
            self._archiving.forget(request_id)

    @property
    def _offered_id(self) -> str:
        """The id of the last request that the tool was offered to: a further one may have it from the one before."""
        return next(filter(self._archiving.was_offered, reversed(self._request_ids)), self._request_ids[-1])

    async def _results(self, turn: Turn) -> tuple[Mapping[str, Any], ...]:
        texts = await self._archiving.answers(self._offered_id, [call.arguments for call in turn.hidden])
        return results_of(self.form.FORMAT, turn.hidden, texts)
