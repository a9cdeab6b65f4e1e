"""Calls of the hidden tool in answers of OpenAI's Responses API.

An answer is a list of items, of which each call is one. It repeats the tools of its request, and so does each event that
brings the response itself.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from ctx_hooks.addons.retrieval.hidden_calls.answers import Answers, Fields, object_of
from ctx_hooks.conversation.model import ToolCall
from ctx_hooks.conversation.placeholders import RETRIEVE
from ctx_hooks.formats import RESPONSES
from ctx_hooks.formats.fields import mapping_or_empty, text_or_empty

CALL = "function_call"
REASONING = "reasoning"
WAITS_FOR_NOBODY = frozenset(
    {"message", REASONING, "web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call"}
)
"""Items that no client answers. Any other item goes to the client, even a call of an unknown kind."""
END = ("status", "incomplete_details", "error", "completed_at")
"""The fields of a response that say how it ended."""
OPENING = frozenset({"response.created", "response.in_progress", "response.queued"})
ITEM = frozenset({"response.output_item.added", "response.output_item.done"})
EVENT = "response."
ENDED = frozenset({"completed", "incomplete", "failed"})
"""How a stream ends: the last event is named after it."""


class _Responses(Answers):
    """Passes on items at once; items and events have consecutive numbers.

    The event that ends a response is withheld until it is known whether a further answer follows. Events that open a
    further answer are hidden.
    """

    format = RESPONSES
    no_calls: ClassVar[Fields] = {"tool_choice": "none"}
    cut_off = "incomplete"

    _shown_items = 0
    _last_number = -1
    _hides = False

    def begin(self) -> None:
        super().begin()
        self._items: dict[int | str, Fields] = {}
        self._keys: dict[str, int | str] = {}
        self._numbers: dict[int, int] = {}
        self._hides = self._hides or bool(self.before)

    def seen(self, event: Fields) -> Fields | None:
        kind = _kind(event)
        if kind in OPENING:
            return (
                None
                if self.before
                else self._numbered(_with_response(event, self.cleaned(mapping_or_empty(event.get("response")))))
            )
        if kind.removeprefix(EVENT) in ENDED:
            self.withheld = [event]
            return None
        key = self._key(event)
        item = mapping_or_empty(event.get("item")) if kind in ITEM else self._items.get(key)
        if key != "" and item is not None:
            self._items[key] = item
        if item is not None and self.is_hidden(item):
            self._hides = True
            return None
        if isinstance(key, str):
            return self._numbered(event)
        if key not in self._numbers:
            self._numbers[key] = self._shown_items
            self._shown_items += 1
        number = self._numbers[key]
        return self._numbered(event if number == key else {**event, "output_index": number})

    def _key(self, event: Fields) -> int | str:
        """Return the key of an event's item: its number, its id if the server gives no number, "" for no item."""
        index = event.get("output_index")
        item_id = str(event.get("item_id") or mapping_or_empty(event.get("item")).get("id") or "")
        if isinstance(index, int):
            self._keys[item_id] = index
            return index
        return self._keys.get(item_id, item_id) if item_id else ""

    def _numbered(self, event: Fields) -> Fields:
        """Return an event with the next number after the first hidden event; before it, with the provider's own."""
        given = event.get("sequence_number")
        if not isinstance(given, int):
            return event
        number = self._last_number + 1 if self._hides else given
        self._last_number = max(self._last_number, number)
        return event if number == given else {**event, "sequence_number": number}

    def answer(self) -> Fields:
        """Return the answer of the last event, with the streamed items that some servers leave out there."""
        end = self.withheld[0] if self.withheld else {}
        response, kind = mapping_or_empty(end.get("response")), _kind(end).removeprefix(EVENT)
        ended = response if response.get("status") == kind else {**response, "status": kind if end else ""}
        is_silent = bool(self._items) and not ended.get("output")
        return {**ended, "output": list(self._items.values())} if is_silent else ended

    def ending(self, event: Fields, whole: Fields) -> Fields:
        shown = whole if self._hides else self.cleaned(mapping_or_empty(event.get("response")))
        return self._numbered(_with_response(event, shown))

    @staticmethod
    def parts(answer: Fields) -> Sequence[Fields]:
        output = answer.get("output")
        return [item for item in output if isinstance(item, Mapping)] if isinstance(output, (list, tuple)) else []

    @staticmethod
    def call(part: Fields) -> ToolCall | None:
        kind = str(part.get("type"))
        if kind in WAITS_FOR_NOBODY:
            return None
        name = str(part.get("name")) if kind == CALL else kind
        return ToolCall(str(part.get("call_id") or ""), name, str(part.get("arguments") or ""))

    @staticmethod
    def reason(answer: Fields) -> str:
        status = text_or_empty(answer.get("status"))
        return status if status in ENDED else ""

    @staticmethod
    def sent_back(_: Fields, parts: Sequence[Fields]) -> Sequence[Fields]:
        """Return the items as a request has them, for a provider that keeps none.

        It accepts reasoning by its encrypted content, which the client may not have requested: "Item 'rs_...' not found.
        Items are not persisted when `store` is set to false." Without it the items go back without ids, since a call that is
        known by its id is refused "without its required 'reasoning' item".
        """
        kept = _followed([part for part in parts if part.get("type") != REASONING or part.get("encrypted_content")])
        is_complete = all(part.get("type") != REASONING or part.get("encrypted_content") for part in parts)
        unsent = () if is_complete else ("id",)
        return [{name: value for name, value in _readable(part).items() if name not in unsent} for part in kept]

    @staticmethod
    def cleaned(answer: Fields) -> Fields:
        """Return a response that does not say that its request offered the hidden tool."""
        found = mapping_or_empty(answer)
        tools = found.get("tools")
        if not isinstance(tools, Sequence):
            return found
        return {**found, "tools": [t for t in tools if not isinstance(t, Mapping) or t.get("name") != RETRIEVE]}

    @staticmethod
    def joined_fields(answers: Sequence[Fields], shown: Sequence[Fields], reason: str | None) -> Fields:
        end = {name: answers[-1][name] for name in END if name in answers[-1]}
        cut_off = {"status": reason, "incomplete_details": {"reason": "max_output_tokens"}}
        return {**(cut_off if reason not in (None, answers[-1].get("status")) else end), "output": _followed(shown)}


def _readable(part: Fields) -> Fields:
    """Return a hidden call with arguments that are JSON, which servers behind LiteLLM read."""
    is_hidden = part.get("type") == CALL and part.get("name") == RETRIEVE
    return {**part, "arguments": "{}"} if is_hidden and not object_of(str(part.get("arguments") or "")) else part


def _followed(items: Sequence[Fields]) -> list[Fields]:
    """Return items without reasoning at their end, which is refused back "without its required following item"."""
    ends = [i for i, item in enumerate(items) if item.get("type") != REASONING]
    return list(items[: ends[-1] + 1]) if ends else []


def _with_response(event: Fields, response: Fields) -> Fields:
    return event if response == mapping_or_empty(event.get("response")) else {**event, "response": response}


def _kind(event: Fields) -> str:
    """Return an event's type; LiteLLM's are members of an enum."""
    kind = event.get("type")
    return str(getattr(kind, "value", kind))


FORM = _Responses
