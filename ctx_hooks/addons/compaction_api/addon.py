"""OpenAI's compaction contract for any deployment: a request for compaction is answered with a compaction item.

The client's own request becomes the request for a summary: it is fitted, retried and billed as any other, so the client
pays one call. Sources: https://platform.openai.com/docs/api-reference/responses/compact, and `compact_remote_v2.rs` of
Codex, which demands exactly one `compaction` item among the streamed ones.
"""

import asyncio
import logging
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from ctx_hooks.addons.compaction_api import items as own
from ctx_hooks.attempts.request import Request
from ctx_hooks.attempts.target import Target
from ctx_hooks.compaction.plain_cut import plain_cut
from ctx_hooks.flow.addons import Addon, Core
from ctx_hooks.flow.recorder import names_of
from ctx_hooks.formats import RESPONSES
from ctx_hooks.formats.fields import listed, mapping_or_empty, text_or_empty
from ctx_hooks.litellm_compat.call import request_id_of
from ctx_hooks.litellm_compat.deployments import compacts_itself
from ctx_hooks.litellm_compat.errors import note_fault, refusal
from ctx_hooks.litellm_compat.logged import notes_on
from ctx_hooks.litellm_compat.registry import NOTES
from ctx_hooks.litellm_compat.stream_events import close
from ctx_hooks.policy.settings import Policy
from ctx_hooks.runtime.deadline import Deadline
from ctx_hooks.runtime.worker import pool
from ctx_hooks.telemetry.events import CallNames, ItemEvent
from ctx_hooks.telemetry.listeners import emit

NAME = "compaction_api"
ROUTE, ANSWERED_BY = "acompact_responses", "aresponses"
"""LiteLLM's names of the route for compaction, and of the one whose answer the item is made of."""
WHOLE, COMPACTED = "response", "response.compaction"
CREATED, IN_PROGRESS = "response.created", "response.in_progress"
SUMMARY_SECONDS = 180.0
"""A model that takes longer is not waited for; Codex waits 300 seconds for an event."""
STATE_SECONDS = 20.0
PLAIN_BYTES = 20_000
"""Of the newest messages, if nothing can be compacted."""
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
            request = request.with_fields({**request.fields, "input": items})
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
        changes = {"input": [*said, own.user_message(own.ASK)], "store": False}
        if request.fields.get("tools"):
            changes["tool_choice"] = "none"
        return request.with_fields({**request.fields, **changes})

    async def called(self, fields: Mapping[str, Any], call: Awaitable[Any]) -> Any:
        """Return the answer to a request for compaction, any other call's answer unchanged."""
        asked = self._running.of(request_id_of(fields)).notes.get(NAME)
        if not isinstance(asked, Asked):
            return await call
        answer = None
        try:
            answer = await asyncio.wait_for(call, SUMMARY_SECONDS)
        except Exception as error:  # noqa: BLE001 - a provider, a budget, a rate limit: the item has the record
            logger.warning("no model wrote a summary for a compaction item (%s): it has the record", type(error).__name__)
        if answer is None:
            self._running.end(request_id_of(fields))
        model = str(fields.get("model") or "")
        if fields.get("stream") and (answer is None or hasattr(answer, "__anext__")):
            return CompactionStream(self._events(answer, asked, model), answer)
        made = await self._response(asked, _plain(answer), model)
        return made if answer is None or asked.kind == COMPACTED else type(answer)(**made)

    async def _events(self, stream: Any, asked: Asked, model: str) -> AsyncIterator[Mapping[str, Any]]:
        """Yield the events of an answer; the text and the usage come from the stream below."""
        begun = {**_new(model), "object": WHOLE, "status": "in_progress", "output": []}
        yield {"type": CREATED, "response": begun}
        reading = asyncio.create_task(_ended(stream))
        try:
            for _ in range(int(SUMMARY_SECONDS / ALIVE_SECONDS)):
                yield {"type": IN_PROGRESS, "response": begun}
                await asyncio.wait({reading}, timeout=ALIVE_SECONDS)
                if reading.done():
                    break
            below = reading.result() if reading.done() and not reading.exception() else {}
        finally:
            reading.cancel()
        made = {**await self._response(asked, below, model), "id": begun["id"]}
        (item,) = made["output"]
        for kind in ("response.output_item.added", "response.output_item.done"):
            yield {"type": kind, "output_index": 0, "item": item}
        yield {"type": "response.completed", "response": made}

    async def _response(self, asked: Asked, below: Mapping[str, Any], model: str) -> dict[str, Any]:
        """Return the response whose only output is a compaction item, with the usage of the model's, if any."""
        kept = {name: value for name, value in below.items() if name not in ("error", "incomplete_details", "tools")}
        output = [await self._item(asked, _text_of(below))]
        return {**_new(model), **kept, "object": asked.kind, "status": "completed", "output": output}

    async def _item(self, asked: Asked, text: str) -> dict[str, Any]:
        """Return the compaction item; a text that is no summary is left out."""

        def made() -> dict[str, Any]:
            return own.sealed(own.state_of(asked.items, text, asked.policy), asked.tenant, own.secret())

        _tell(asked.call, "summarised" if own.is_summary(text) else "extracted")
        try:
            return await pool.run(asked.tenant, made, Deadline(STATE_SECONDS))
        except Exception as error:  # noqa: BLE001 - a fault of ours must not end the session
            note_fault("puts only the newest messages into a compaction item", error)
            return own.sealed(own.bounded(plain_cut(asked.items, PLAIN_BYTES)), asked.tenant, own.secret())


class Event(BaseModel):
    """An event of a streamed response: LiteLLM writes models as JSON."""

    model_config = ConfigDict(extra="allow")

    type: str


class CompactionStream:
    """A stream of events in place of LiteLLM's, whose notes for headers it keeps."""

    def __init__(self, events: AsyncIterator[Mapping[str, Any]], original: Any) -> None:
        self._events = events
        self._numbers = count()
        setattr(self, NOTES.last, notes_on(original))

    def __aiter__(self) -> "CompactionStream":
        return self

    async def __anext__(self) -> Event:
        return Event(**await anext(self._events), sequence_number=next(self._numbers))

    async def aclose(self) -> None:
        """Close the stream below, if the client has left."""
        await close(self._events)


def _tell(call: CallNames, outcome: Literal["summarised", "extracted", "opened", "refused"], reason: str = "") -> None:
    emit(ItemEvent("compaction_item", time.time(), call, outcome, reason))


def _new(model: str) -> dict[str, Any]:
    return {"id": f"resp_{uuid.uuid4().hex}", "created_at": int(time.time()), "model": model}


def _plain(answer: Any) -> Mapping[str, Any]:
    return answer.model_dump(mode="json", exclude_none=True) if isinstance(answer, BaseModel) else mapping_or_empty(answer)


def _text_of(response: Mapping[str, Any]) -> str:
    """Return the text of a completed response, "" if it was cut off."""
    if response.get("status") not in (None, "completed"):
        return ""
    messages = [item for item in map(mapping_or_empty, listed(response.get("output"))) if item.get("type") == "message"]
    parts = [mapping_or_empty(part) for message in messages for part in listed(message.get("content"))]
    return "".join(text_or_empty(part.get("text")) for part in parts)


async def _ended(stream: Any) -> Mapping[str, Any]:
    """Read a stream to its end, and return its response as the last event has it; empty without one."""
    found: Mapping[str, Any] = {}
    if stream is None:
        return found
    try:
        async for event in stream:
            found = mapping_or_empty(_plain(event).get("response")) or found
    finally:
        await close(stream)
    return found
