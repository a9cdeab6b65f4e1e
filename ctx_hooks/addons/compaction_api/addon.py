"""OpenAI's compaction contract for any deployment: a request for compaction is answered with a compaction item.

The client's own request becomes the request for a summary: it is fitted, retried and billed as any other, so the client
pays one call. Sources: https://platform.openai.com/docs/api-reference/responses/compact, and `compact_remote_v2.rs` of
Codex, which demands exactly one `compaction` item among the streamed ones.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

from ctx_hooks.addons.compaction_api import items as own
from ctx_hooks.addons.compaction_api import state
from ctx_hooks.addons.compaction_api.answer import (
    ENDED,
    CompactionStream,
    ending_of,
    kind_of,
    opening_of,
    plain,
    response_of,
    text_of,
)
from ctx_hooks.formats import RESPONSES
from ctx_hooks.formats.fields import mapping_or_empty
from ctx_hooks.litellm_compat.call import request_id_of
from ctx_hooks.litellm_compat.deployments import compacts_itself
from ctx_hooks.litellm_compat.errors import note_fault, refusal
from ctx_hooks.litellm_compat.stream_events import close
from ctx_hooks.policy.settings import Policy
from ctx_hooks.request.request import Request
from ctx_hooks.request.target import Target
from ctx_hooks.runtime.deadline import Deadline
from ctx_hooks.runtime.worker import pool
from ctx_hooks.serving.addons import Addon, Core
from ctx_hooks.serving.recorder import names_of
from ctx_hooks.telemetry.events import CallNames, ItemEvent
from ctx_hooks.telemetry.listeners import emit

NAME = "compaction_api"
ROUTE, ANSWERED_BY = "acompact_responses", "aresponses"
"""LiteLLM's names of the route for compaction, and of the one whose answer the item is made of."""
WHOLE, COMPACTED = "response", "response.compaction"
SUMMARY_SECONDS = 180.0
"""A model that takes longer is not waited for; Codex waits 300 seconds for an event."""
STATE_SECONDS = 20.0
ALIVE_SECONDS = 10.0
"""Balancers end a connection without a byte after 60 seconds."""
logger = logging.getLogger("ctx_hooks")


@dataclass(frozen=True, slots=True)
class Asked:
    """A request for compaction: what of it the state is made of, and the object that its answer is."""

    items: list[Any]
    tenant: str
    policy: Policy
    kind: str
    call: CallNames


class CompactionApi(Addon):
    """Opens the plugin's compaction items, and answers requests for one."""

    def __init__(self, core: Core) -> None:
        self._running = core.running

    async def begun(self, request: Request, to: Target) -> Request:
        """Return a request with opened items; one for compaction asks the model for a summary instead.

        Raises:
            HTTPException: an item that cannot be opened.
        """
        items = request.items
        if request.format != RESPONSES or not isinstance(items, list):
            return request
        if any(map(own.is_own, items)):
            try:
                items = await pool.run(to.tenant, partial(own.opened, items, to.tenant, own.secret()), Deadline())
            except own.ItemError as error:
                _tell(names_of(request.call, to), "refused", str(error))
                raise refusal(str(error)) from None
            _tell(names_of(request.call, to), "opened")
            request = replace(request, fields={**request.fields, "input": items})
        is_route = request.call.call_type == ROUTE
        is_triggered = bool(items) and mapping_or_empty(items[-1]).get("type") == own.TRIGGER
        if not (is_route or is_triggered) or to.policy.mode != "enforce" or compacts_itself(to.group):
            return request
        said = [item for item in items if mapping_or_empty(item).get("type") != own.TRIGGER]
        notes = self._running.open(request.call.request_id)
        notes.addons |= {NAME}
        notes.route = ANSWERED_BY if is_route else ""
        kind = COMPACTED if is_route else WHOLE
        notes.notes[NAME] = Asked(said, to.tenant, to.policy, kind, names_of(request.call, to))
        # Tools stay, for the cached prefix begins with them; nothing is stored, since the client keeps the item.
        changes = {"input": [*said, state.asking(to.policy.language)], "store": False}
        if request.fields.get("tools"):
            changes["tool_choice"] = "none"
        return replace(request, fields={**request.fields, **changes})

    async def called(self, fields: Mapping[str, Any], call: Awaitable[Any]) -> Any:
        """Return the answer to a request for compaction, any other call's answer unchanged."""
        asked = self._running.of(request_id_of(fields)).notes.get(NAME)
        if not isinstance(asked, Asked):
            return await call
        answer = None
        try:
            answer = await asyncio.wait_for(_awaited(call), SUMMARY_SECONDS)
        except Exception as error:  # noqa: BLE001 - a provider, a budget, a rate limit: the item has the record
            logger.warning("no model wrote a summary for a compaction item (%s): it has the record", type(error).__name__)
        if answer is None:
            self._running.end(request_id_of(fields))
        model = str(fields.get("model") or "")
        if fields.get("stream") and (answer is None or hasattr(answer, "__anext__")):
            return CompactionStream(self._events(answer, asked, model), answer)
        below = plain(answer)
        made = response_of(below, model, await self._item(asked, text_of(below)), asked.kind)
        return made if answer is None or asked.kind == COMPACTED else type(answer)(**made)

    async def _events(self, stream: Any, asked: Asked, model: str) -> AsyncIterator[Mapping[str, Any]]:
        """Yield the events of an answer; the text and the usage come from the stream below."""
        number = 0
        for event in opening_of(model):
            yield event
            number += 1
            alive = event
        reading = asyncio.create_task(_ended(stream))
        try:
            for _ in range(int(SUMMARY_SECONDS / ALIVE_SECONDS)):
                await asyncio.wait({reading}, timeout=ALIVE_SECONDS)
                if reading.done():
                    break
                yield {**alive, "sequence_number": number}
                number += 1
            below = reading.result() if reading.done() and not reading.exception() else {}
        finally:
            reading.cancel()
        made = response_of(below, model, await self._item(asked, text_of(below)), WHOLE)
        made["id"] = alive["response"]["id"]
        for event in ending_of(made, number):
            yield event

    async def _item(self, asked: Asked, text: str) -> dict[str, Any]:
        """Return the compaction item; a text that is no summary is left out."""
        summary = text if state.is_summary(text, asked.policy.language) else ""

        def made(items: list[Any]) -> dict[str, Any]:
            return own.sealed(items, asked.tenant, own.secret())

        def compacted() -> dict[str, Any]:
            return made(state.state_of(asked.items, summary, asked.policy))

        _tell(asked.call, "summarised" if summary else "extracted")
        try:
            return await pool.run(asked.tenant, compacted, Deadline(STATE_SECONDS))
        except Exception as error:  # noqa: BLE001 - a fault of ours must not end the session
            note_fault("puts the user's newest messages alone into a compaction item", error)
            return made(state.newest_words(asked.items, summary, asked.policy.language))


def _tell(call: CallNames, outcome: Literal["summarised", "extracted", "opened", "refused"], reason: str = "") -> None:
    emit(ItemEvent("compaction_item", time.time(), call, outcome, reason))


async def _awaited(call: Awaitable[Any]) -> Any:
    return await call


async def _ended(stream: Any) -> Mapping[str, Any]:
    """Read a stream to its end, and return its response; empty without one."""
    found: Mapping[str, Any] = {}
    if stream is None:
        return found
    try:
        async for event in stream:
            read = plain(event)
            if kind_of(read) in ENDED:
                found = mapping_or_empty(read.get("response"))
    finally:
        await close(stream)
    return found
