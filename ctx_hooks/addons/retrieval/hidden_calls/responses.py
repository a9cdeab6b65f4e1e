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
from ctx_hooks.formats.fields import mapping_or_empty

CALL = "function_call"
REASONING = "reasoning"
WAITS_FOR_NOBODY = frozenset(
    {"message", REASONING, "web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call"}
)
"""Items that no client answers. Any other item goes to the client, even a call of an unknown kind."""
END = ("status", "incomplete_details", "error", "completed_at")
"""The fields of a response that say how it ended."""
OPENING = frozenset({"response.created", "response.in_progress", "response.queued"})
EVENT = "response."
ENDED = frozenset({"completed", "incomplete", "failed"})
"""How a stream ends: the last event is named after it."""


class _Responses(Answers):
    """Passes on items at once; items and events have consecutive numbers.

    The event that ends a response is withheld until it is known whether a further answer follows. Events that open a
    further answer are hidden.
    """

    format = RESPONSES
    parts_field = "output"
    reason_field = "status"
    no_calls: ClassVar[Fields] = {"tool_choice": "none"}
    cut_off = "incomplete"

    _last_number = -1
    _hides = False

    def begin(self) -> None:
        super().begin()
        self._items: dict[int | str, Fields] = {}
        self._numbers: dict[int | str, int] = {}
        self._hides = self._hides or bool(self.before)

    def seen(self, event: Fields) -> Fields | None:
        kind = _kind(event)
        if kind in OPENING:
            return None if self.before else self._numbered(event, **self._cleaned(event))
        if kind.removeprefix(EVENT) in ENDED:
            self.withheld = [event]
            return None
        item, index = mapping_or_empty(event.get("item")), event.get("output_index")
        key = index if isinstance(index, int) else str(event.get("item_id") or item.get("id") or "")
        if item:
            self._items[key] = item
        if self.is_hidden(self._items.get(key, {"type": "message"})):
            self._hides = True
            return None
        if index is None:
            return self._numbered(event)
        if key not in self._numbers:
            self._numbers[key] = next(self.places)
        return self._numbered(event, output_index=self._numbers[key])

    def _numbered(self, event: Fields, **changes: object) -> Fields:
        """Return a changed event with the next number after the first hidden event; before it, with the provider's own."""
        given = event.get("sequence_number")
        if isinstance(given, int):
            number = self._last_number + 1 if self._hides else given
            self._last_number = max(self._last_number, number)
            changes["sequence_number"] = number
        return event if all(event.get(name) == value for name, value in changes.items()) else {**event, **changes}

    def _cleaned(self, event: Fields) -> dict[str, Fields]:
        response = event.get("response")
        return {"response": self.cleaned(response)} if isinstance(response, Mapping) else {}

    def answer(self) -> Fields:
        """Return the answer of the last event, with the streamed items that some servers leave out there."""
        end = self.withheld[0] if self.withheld else {}
        response = mapping_or_empty(end.get("response"))
        output = response.get("output") or list(self._items.values())
        return {**response, "status": _kind(end).removeprefix(EVENT) if end else "", "output": output}

    def ending(self, event: Fields, whole: Fields) -> Fields:
        return self._numbered(event, **({"response": whole} if self._hides else self._cleaned(event)))

    @staticmethod
    def call(part: Fields) -> ToolCall | None:
        kind = str(part.get("type"))
        if kind in WAITS_FOR_NOBODY:
            return None
        name = str(part.get("name")) if kind == CALL else kind
        return ToolCall(str(part.get("call_id") or ""), name, str(part.get("arguments") or ""))

    @staticmethod
    def sent_back(answer: Fields) -> Sequence[Fields]:
        """Return the items as a request has them, for a provider that keeps none.

        It accepts reasoning by its encrypted content, which the client may not have requested: "Item 'rs_...' not found.
        Items are not persisted when `store` is set to false." Without it the items go back without ids, since a call that is
        known by its id is refused "without its required 'reasoning' item".
        """
        parts = _Responses.parts(answer)
        kept = [part for part in parts if part.get("type") != REASONING or part.get("encrypted_content")]
        unsent = () if len(kept) == len(parts) else ("id",)
        return [{name: value for name, value in _readable(part).items() if name not in unsent} for part in _followed(kept)]

    @staticmethod
    def cleaned(answer: Fields) -> Fields:
        """Return a response that does not say that its request offered the hidden tool."""
        tools = answer.get("tools")
        if not isinstance(tools, Sequence):
            return answer
        return {**answer, "tools": [t for t in tools if not isinstance(t, Mapping) or t.get("name") != RETRIEVE]}

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


def _kind(event: Fields) -> str:
    """Return an event's type; LiteLLM's are members of an enum."""
    kind = event.get("type")
    return str(getattr(kind, "value", kind))


FORM = _Responses
