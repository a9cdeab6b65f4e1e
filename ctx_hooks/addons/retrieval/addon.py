"""Retrieval: it archives removed texts, and a model reads them by a tool whose calls no client sees."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any
from uuid import uuid4

from ctx_hooks.addons.retrieval import tool
from ctx_hooks.addons.retrieval.archive.archive import Archive
from ctx_hooks.addons.retrieval.rounds import Offer, Offers, Rounds
from ctx_hooks.attempts.request import Request, format_of
from ctx_hooks.conversation.handles import Retrievable
from ctx_hooks.flow.addons import Addon, Core, Decide, Undecided
from ctx_hooks.flow.decision import Decided, NotRetried
from ctx_hooks.flow.recorder import names_of
from ctx_hooks.litellm_compat.call import REQUEST_KEY, Call, with_request_id
from ctx_hooks.litellm_compat.logged import LOGGED, SAVINGS, Figures
from ctx_hooks.litellm_compat.registry import CLIENTS_MODEL, FURTHER_CALL, RULES, SETUP, installed, proxy_router

BYTES_PER_BUDGET_TOKEN = 1.0
"""Limits all texts of one turn to about a quarter of the budget in English, half of it in Chinese. So the next request fits
in the window, whatever the model asks for, and its newest results stay complete."""
OF_THE_FIRST = frozenset({"litellm_logging_obj", "litellm_call_id", "deployment", CLIENTS_MODEL})
"""A logging object logs once, and `parallel_request_limiter_v3` gives a place back when the call with the id is logged that
took it; the proxy adds the other two behind the call. The rest of the fields the Router takes again."""
RESERVATION = "user_api_key_budget_reservation"
"""A further call with it would settle what the first call has reserved. It is in the metadata, and in the `UserAPIKeyAuth`
there; LiteLLM's `internal_call_metadata.py` leaves it out of its own internal calls."""
FIRST_WHOLE = (1, 106)
"""LiteLLM before 1.106 repeats thinking if it translates a stream from another API: it is refused back ("`thinking`
blocks cannot be modified"). It also gives two items of the Responses API one number."""


class Retrieval(Addon):
    """The archive and the tool."""

    def __init__(self, core: Core) -> None:
        self.archive = Archive(core.store)
        self.offers = Offers(core.running)
        self._fitted_before_choice = core.fitted_before_choice

    async def decided(self, undecided: Undecided, decide: Decide) -> Decided:
        """Give handles to the removed texts, archive them, and note whether the request offers the tool."""
        request, to = undecided.request, undecided.to
        can_offer = can_call_again()  # else no round could follow an answer
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

    async def _ask(self, fields: Mapping[str, Any], changes: Mapping[str, Any]) -> tuple[dict[str, Any], Any]:
        """Call the proxy's Router again for a prepared request; its retries stay unchanged."""
        data = with_request_id(further_fields(fields, changes))
        request = Request(format_of(data), data)
        data, route = await self._fitted_before_choice(request), request.wire.call_types[-1]
        logging, called = SETUP.find()(  # as the proxy does: the Router's filters of deployments read the kind of call
            original_function=route,
            rules_obj=RULES.find()(),
            start_time=datetime.now(),  # noqa: DTZ005 - LiteLLM subtracts it from its own, which have no zone
            **data,
        )
        logged = {"litellm_logging_obj": logging}
        return {**data, **logged}, await getattr(proxy_router(), route)(**{**called, **logged})


def can_call_again() -> bool:
    """Whether this LiteLLM has what a further call needs, and translates its answers without loss."""
    return installed() >= FIRST_WHOLE and not any(name.fault for name in FURTHER_CALL)


def further_fields(fields: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a further call: the first call's with changes, without those that belong only to the first."""
    first = Call(fields)
    # A copy, since Router and proxy write to the metadata in place; the account stays.
    metadata = {name: value for name, value in first.metadata.items() if name != RESERVATION}
    if getattr(first.auth, "budget_reservation", None) is not None:
        metadata["user_api_key_auth"] = first.auth.model_copy(update={"budget_reservation": None})
    if isinstance(metadata.get(SAVINGS), Figures):
        del metadata[SAVINGS]
    logged = metadata.get(LOGGED)
    if isinstance(logged, Mapping) and isinstance(logged.get(REQUEST_KEY), Figures):
        metadata[LOGGED] = {name: value for name, value in logged.items() if name != REQUEST_KEY}
    own = {name: value for name, value in fields.items() if name not in OF_THE_FIRST}
    name = "litellm_metadata" if fields.get("litellm_metadata") is first.metadata else "metadata"
    return {**own, **changes, name: metadata, "litellm_call_id": str(uuid4())}
