"""Calls of a hidden tool in answers of OpenAI's Responses API, whole and streamed.

An answer is a list of items, of which each call is one. It repeats the tools of its request, and so does each event that
brings the response itself.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ctx_hooks.addons.retrieval.hidden_calls.turn import Turn, object_of, total
from ctx_hooks.conversation.model import Format, ToolCall
from ctx_hooks.formats.fields import mapping_or_empty

FORMAT: Format = "openai-responses"
REPEATS_TOOLS = True
NO_CALLS: Mapping[str, Any] = {"tool_choice": "none"}
CALL = "function_call"
REASONING = "reasoning"
WAITS_FOR_NOBODY = frozenset(
    {"message", REASONING, "web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call"}
)
"""Items that no client answers. Any other, a call of a kind that is not known here too, goes to the client."""
END = ("status", "incomplete_details", "error", "completed_at")
"""The fields of a response that tell how it ended."""
CUT_OFF: Mapping[str, Any] = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
OPENING = frozenset({"response.created", "response.in_progress", "response.queued"})
ITEM = frozenset({"response.output_item.added", "response.output_item.done"})
EVENT = "response."
COMPLETED = "completed"
ENDED = frozenset({COMPLETED, "incomplete", "failed"})
"""How a stream ends: the last event is named after it."""


def turn_of(answer: Mapping[str, Any], tool: str) -> Turn:
    """Return what a whole answer says."""
    return _turn(_items(answer), str(answer.get("status")), tool)


def joined(answers: Sequence[Mapping[str, Any]], tool: str, *, is_whole: bool = True) -> dict[str, Any]:
    """Return the answers of a request as one, without calls of `tool`; one that is not whole says that it is cut off."""
    items = [item for answer in answers for item in _items(answer)]
    shown = [item for item in items if not _is_hidden(item, tool)]
    end = {name: answers[-1][name] for name in END if name in answers[-1]} if is_whole else CUT_OFF
    changes: dict[str, Any] = {**end}
    if len(shown) < len(items) or len(answers) > 1:
        usages = [answer["usage"] for answer in answers if isinstance(answer.get("usage"), Mapping)]
        changes["output"] = _followed(shown)
        changes |= {"usage": total(usages)} if usages else {}
    return _without_tool({**answers[0], **changes}, tool)


class _ResponseStream:
    # Items go on as they come, numbered through, and so are the events. The event that ends a response is withheld until it
    # is known whether that is the end; those that open a further answer are hidden.

    def __init__(self, tool: str) -> None:
        self._tool = tool
        self._responses: list[Mapping[str, Any]] = []
        self._shown_items = 0
        self._last_number = -1
        self._hides = False
        self._begin()

    def _begin(self) -> None:
        self._items: dict[int | str, Mapping[str, Any]] = {}
        self._keys: dict[str, int | str] = {}
        self._numbers: dict[int, int] = {}
        self._end: Mapping[str, Any] | None = None

    def seen(self, event: Mapping[str, Any]) -> Mapping[str, Any] | None:
        kind = _kind(event)
        if kind in OPENING:
            response = mapping_or_empty(event.get("response"))
            shown = _without_tool(response, self._tool)
            return None if self._responses else self._numbered(event if shown == response else {**event, "response": shown})
        if kind.removeprefix(EVENT) in ENDED:
            self._end = event
            return None
        key = self._key(event)
        item = mapping_or_empty(event.get("item")) if kind in ITEM else self._items.get(key)
        if key != "" and item is not None:
            self._items[key] = item
        if _is_hidden(item, self._tool):
            self._hides = True
            return None
        if isinstance(key, str):
            return self._numbered(event)
        if key not in self._numbers:
            self._numbers[key] = self._shown_items
            self._shown_items += 1
        number = self._numbers[key]
        return self._numbered(event if number == key else {**event, "output_index": number})

    def _key(self, event: Mapping[str, Any]) -> int | str:
        """Return what names an event's item: its number, its id where a server gives no number, "" for no item."""
        index = event.get("output_index")
        item_id = str(event.get("item_id") or mapping_or_empty(event.get("item")).get("id") or "")
        if isinstance(index, int):
            self._keys[item_id] = index
            return index
        return self._keys.get(item_id, item_id) if item_id else ""

    def turn(self) -> Turn:
        return _turn(_items(self._response()), _kind(self._end or {}).removeprefix(EVENT), self._tool)

    def go_on(self) -> None:
        self._responses.append(self._response())
        self._hides = True
        self._begin()

    def end(self) -> Sequence[Mapping[str, Any]]:
        if self._end is None:
            return ()
        response = mapping_or_empty(self._end.get("response"))
        whole = joined([*self._responses, self._response()] if self._hides else [response], self._tool)
        return (self._numbered(self._end if whole == response else {**self._end, "response": whole}),)

    def _response(self) -> Mapping[str, Any]:
        """Return the last answer as its end states it; some servers leave out there what they have streamed."""
        response = mapping_or_empty((self._end or {}).get("response"))
        return response if response.get("output") else {**response, "output": list(self._items.values())}

    def _numbered(self, event: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return an event with the next number, from the first one on that is hidden; before it, the provider's own."""
        given = event.get("sequence_number")
        if not isinstance(given, int):
            return event
        number = self._last_number + 1 if self._hides else given
        self._last_number = max(self._last_number, number)
        return event if number == given else {**event, "sequence_number": number}


stream = _ResponseStream


def _turn(items: Sequence[Mapping[str, Any]], status: str, tool: str) -> Turn:
    hidden = [item for item in items if _is_hidden(item, tool)]
    waiting = [item for item in items if str(item.get("type")) not in WAITS_FOR_NOBODY]
    calls = tuple(ToolCall(str(item.get("call_id") or ""), tool, str(item.get("arguments") or "")) for item in hidden)
    ids = [str(item["call_id"]) for item in waiting if item.get("call_id")]
    is_whole = status == COMPLETED and all(call.id for call in calls) and len(set(ids)) == len(ids)
    sent = _sent_back(items, tool)
    shown = _followed([item for item in sent if not _is_hidden(item, tool)])
    return Turn(sent, shown, calls, len(hidden) < len(waiting), status if is_whole else None)


def _sent_back(items: Sequence[Mapping[str, Any]], tool: str) -> tuple[Mapping[str, Any], ...]:
    """Return the items as a request has them, for a provider that keeps none.

    It takes reasoning back by its encrypted content, which the client may not have asked for: "Item 'rs_...' not found.
    Items are not persisted when `store` is set to false." Without it the items go back without ids, since a call that is
    known by its id is refused "without its required 'reasoning' item".
    """
    kept = [_call_sent_back(item, tool) for item in items if item.get("type") != REASONING or item.get("encrypted_content")]
    if len(kept) == len(items):
        return tuple(kept)
    return tuple({name: value for name, value in item.items() if name != "id"} for item in kept)


def _call_sent_back(item: Mapping[str, Any], tool: str) -> Mapping[str, Any]:
    """Return an item with arguments that are JSON, which servers behind LiteLLM read."""
    if not _is_hidden(item, tool) or object_of(str(item.get("arguments") or "")):
        return item
    return {**item, "arguments": json.dumps({})}


def _followed(items: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return items without reasoning at their end, which is refused back "without its required following item"."""
    ends = [i for i, item in enumerate(items) if item.get("type") != REASONING]
    return list(items[: ends[-1] + 1]) if ends else []


def _without_tool(response: Mapping[str, Any], tool: str) -> dict[str, Any]:
    """Return a response that does not say that its request offered `tool`."""
    tools = response.get("tools")
    if not isinstance(tools, Sequence):
        return dict(response)
    return {**response, "tools": [t for t in tools if not isinstance(t, Mapping) or t.get("name") != tool]}


def _items(answer: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    output = answer.get("output")
    return [item for item in output if isinstance(item, Mapping)] if isinstance(output, (list, tuple)) else []


def _is_hidden(item: Any, tool: str) -> bool:
    return isinstance(item, Mapping) and item.get("type") == CALL and item.get("name") == tool


def _kind(event: Mapping[str, Any]) -> str:
    """Return an event's type; LiteLLM's are members of an enum."""
    kind = event.get("type")
    return str(getattr(kind, "value", kind))
