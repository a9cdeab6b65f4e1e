"""Retrieval: it archives removed texts, and a model reads them by a tool whose calls no client sees."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from ctx_hooks.addons.retrieval import further_call, tool
from ctx_hooks.addons.retrieval.answering import BYTES_PER_BUDGET_TOKEN, Offer, Offers
from ctx_hooks.addons.retrieval.archive.archive import Archive
from ctx_hooks.addons.retrieval.tool_rounds import Rounds
from ctx_hooks.conversation.handles import Retrievable
from ctx_hooks.engine.decision import NotRetried
from ctx_hooks.engine.engine import Decided
from ctx_hooks.serving.addons import Addon, Core, Decide, Undecided
from ctx_hooks.serving.recorder import names_of


class Retrieval(Addon):
    """The archive and the tool."""

    def __init__(self, core: Core) -> None:
        self.archive = Archive(core.store)
        self.offers = Offers(core.running)
        self._ask = further_call.asking(core.fitted_before_choice)

    async def decided(self, undecided: Undecided, decide: Decide) -> Decided:
        """Give handles to the removed texts, archive them, and note whether the request offers the tool."""
        request, to = undecided.request, undecided.to
        can_offer = further_call.can_call_again()  # else no round could follow an answer
        settings = to.policy.archive_in_use if can_offer else to.policy.archive
        if settings is None or to.policy.mode != "enforce":
            return await decide(undecided)
        offered = tool.definition(request.format) if can_offer and tool.may_be_offered(request, to.policy) else None
        tenant = self.archive.tenant(*request.call.owner(settings.scope))
        store = partial(self.archive.store, asyncio.get_running_loop(), settings, tenant)
        retrievable = Retrievable(tenant, settings.retention_days, offered, store)
        decided = await decide(undecided._replace(to=replace(to, retrievable=retrievable)))
        if not tool.is_among_tools(request):  # a request that was fitted before the choice has the tool, and stays offered
            self.offers.forget(to.request_id)
        if decided.offers and to.request_id and not isinstance(decided.decision, NotRetried):
            most_bytes = int((decided.attempt.budget_tokens or to.window.tokens) * BYTES_PER_BUDGET_TOKEN)
            self.offers.note(to.request_id, Offer(settings, tenant, names_of(request.call, to), most_bytes))
        return decided

    async def shown(self, fields: Mapping[str, Any], answer: Any, *, streamed: bool) -> Any:
        """Return an answer without the calls of the tool; it goes on with the model's text after their results."""
        rounds = Rounds(self.archive, self.offers, self._ask, fields)
        return rounds.streamed(answer) if streamed else await rounds.whole(answer)
