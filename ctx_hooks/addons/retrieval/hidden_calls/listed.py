"""Calls of the hidden tool in answers that are lists of parts: Anthropic's blocks, and the items of OpenAI's Responses."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from ctx_hooks.addons.retrieval.hidden_calls.answers import Answers, Fields, Grown, object_of
from ctx_hooks.conversation.model import ToolCall
from ctx_hooks.conversation.placeholders import RETRIEVE
from ctx_hooks.formats import ANTHROPIC, RESPONSES
from ctx_hooks.formats.fields import compact_json, listed, mapping_or_empty

REASONING = "reasoning"
WAITS_FOR_NOBODY = frozenset(
    {"message", REASONING, "web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call"}
)
"""Items that no client answers. Any other item goes to the client, even a call of an unknown kind."""
END = ("status", "incomplete_details", "error", "completed_at")
"""The fields of a response that say how it ended."""
EVENT = "response."
"""Begins the types of a response's events; the last one is named after its status."""


class _Listed(Answers):
    """Passes on parts at once, with consecutive numbers.

    The events that end an answer are withheld until it is known whether a further answer follows, whose opening is hidden.
    """

    opening: ClassVar[frozenset[str]]
    endings: ClassVar[frozenset[str]]
    part_begins: ClassVar[str]
    part_field: ClassVar[str]
    """The field of an event that has a part."""
    number_field: ClassVar[str]
    """The field of an event that has its part's number."""
    grown_by: ClassVar[Mapping[str, tuple[str, str]]] = {}
    """The field of a part that each kind of delta adds to, and the delta's own field."""

    def begin(self) -> None:
        super().begin()
        self.opened: list[Fields] = []
        self.grown: dict[Any, Grown] = {}
        self._numbers: dict[Any, int] = {}

    def seen(self, event: Fields) -> Fields | None:
        kind = _kind(event)
        if kind in self.opening:
            self.opened.append(event)
            return None if self.before else event
        if kind in self.endings:
            self.withheld.append(event)
            return None
        part, number = mapping_or_empty(event.get(self.part_field)), event.get(self.number_field)
        key = number if isinstance(number, int) else event.get("item_id") or part.get("id")
        if part:
            self.grown[key] = Grown(part)
        grown, delta = self.grown.get(key, Grown({})), mapping_or_empty(event.get("delta"))
        if (adds := self.grown_by.get(str(delta.get("type")))) is not None:
            grown.add(adds[0], delta.get(adds[1]))
        if self.is_hidden(grown.fields):
            return None
        if number is None:
            return event
        if kind == self.part_begins or key not in self._numbers:
            self._numbers[key] = next(self.places)
        return event if self._numbers[key] == number else {**event, self.number_field: self._numbers[key]}


class _Messages(_Listed):
    """Answers of Anthropic's messages."""

    format = ANTHROPIC
    parts_field = "content"
    reason_field = "stop_reason"
    cut_off = "max_tokens"
    opening = frozenset({"message_start"})
    endings = frozenset({"message_delta", "message_stop"})
    part_begins = "content_block_start"
    part_field = "content_block"
    number_field = "index"
    grown_by: ClassVar[Mapping[str, tuple[str, str]]] = {
        "text_delta": ("text", "text"),
        "thinking_delta": ("thinking", "thinking"),
        "signature_delta": ("signature", "signature"),
        "input_json_delta": ("input", "partial_json"),
        "citations_delta": ("citations", "citation"),
    }

    def answer(self) -> Fields:
        """Return the newest answer; the usage of later events replaces the figures of earlier ones."""
        stated = [*(mapping_or_empty(event.get("message")) for event in self.opened), *self.withheld]
        figures = [figure for fields in stated for figure in mapping_or_empty(fields.get("usage")).items()]
        reasons = [mapping_or_empty(event.get("delta")).get("stop_reason") for event in self.withheld]
        return {
            "content": [block.whole() for block in self.grown.values()],
            "stop_reason": next(filter(None, reversed(reasons)), None),
            "usage": {name: value for name, value in figures if value is not None},
        }

    def ending(self, event: Fields, whole: Fields) -> Fields:
        # Its usage replaces the figures of `message_start` for clients. Anthropic: "The token counts shown in the usage
        # field of the message_delta event are cumulative."
        delta = event.get("delta")
        if not isinstance(delta, Mapping):
            return event
        ended = {"stop_reason": whole["stop_reason"]} if delta.get("stop_reason") else {}
        return {**event, "delta": {**delta, **ended}, **({"usage": whole["usage"]} if self.before else {})}

    @staticmethod
    def call(part: Fields) -> ToolCall | None:
        given = part.get("input")
        arguments = given if isinstance(given, str) else compact_json(given)
        is_call = part.get("type") == "tool_use"
        return ToolCall(str(part.get("id") or ""), str(part.get("name")), arguments) if is_call else None

    @staticmethod
    def sent_back(answer: Fields) -> Sequence[Fields]:
        """Return one message without empty texts: providers refuse these if they come back."""
        parts = _Messages.parts(answer)
        said = [part for part in parts if part.get("type") != "text" or str(part.get("text") or "").strip()]
        read = [{**part, "input": object_of(part["input"])} if isinstance(part.get("input"), str) else part for part in said]
        return ({"role": "assistant", "content": read},)

    @staticmethod
    def joined_fields(answers: Sequence[Fields], shown: Sequence[Fields], reason: str | None) -> Fields:
        sequence = {name: answers[-1][name] for name in ("stop_sequence",) if name in answers[-1]}
        return {"content": shown, "stop_reason": reason, **sequence}


class _Responses(_Listed):
    """Answers of the Responses API, which repeat the tools of their request, as does each event with the response itself."""

    format = RESPONSES
    parts_field = "output"
    reason_field = "status"
    cut_off = "incomplete"
    opening = frozenset({"response.created", "response.in_progress", "response.queued"})
    endings = frozenset({"response.completed", "response.incomplete", "response.failed"})
    part_begins = "response.output_item.added"
    part_field = "item"
    number_field = "output_index"

    _next_number: int | None = None

    def seen(self, event: Fields) -> Fields | None:
        shown = super().seen(event)
        if shown is None:
            return None
        response = mapping_or_empty(shown.get("response"))
        cleaned = self.cleaned(response)
        return self._numbered(shown if cleaned is response else {**shown, "response": cleaned})

    def _numbered(self, event: Fields) -> Fields:
        """Return an event with the number after that of the last one; the first has the provider's."""
        given = event.get("sequence_number")
        if not isinstance(given, int):
            return event
        number = given if self._next_number is None else self._next_number
        self._next_number = number + 1
        return event if number == given else {**event, "sequence_number": number}

    def answer(self) -> Fields:
        """Return the answer of the last event, with the streamed items that some servers leave out there."""
        end = self.withheld[-1] if self.withheld else {}
        response = mapping_or_empty(end.get("response"))
        output = response.get("output") or [item.fields for item in self.grown.values()]
        return {**response, "status": _kind(end).removeprefix(EVENT) if end else "", "output": output}

    def ending(self, event: Fields, whole: Fields) -> Fields:
        return self._numbered({**event, "response": whole})

    @staticmethod
    def call(part: Fields) -> ToolCall | None:
        kind = str(part.get("type"))
        if kind in WAITS_FOR_NOBODY:
            return None
        name = str(part.get("name")) if kind == "function_call" else kind
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
        tools = listed(answer.get("tools"))
        kept = [tool for tool in tools if mapping_or_empty(tool).get("name") != RETRIEVE]
        return answer if len(kept) == len(tools) else {**answer, "tools": kept}

    @staticmethod
    def joined_fields(answers: Sequence[Fields], shown: Sequence[Fields], reason: str | None) -> Fields:
        end = {name: answers[-1][name] for name in END if name in answers[-1]}
        cut_off = {"status": reason, "incomplete_details": {"reason": "max_output_tokens"}}
        return {**(cut_off if reason not in (None, answers[-1].get("status")) else end), "output": _followed(shown)}


def _readable(item: Fields) -> Fields:
    """Return a call with arguments that are JSON, which servers behind LiteLLM read."""
    is_unreadable = "arguments" in item and not object_of(str(item["arguments"] or ""))
    return {**item, "arguments": "{}"} if is_unreadable else item


def _followed(items: Sequence[Fields]) -> list[Fields]:
    """Return items without reasoning at their end, which is refused back "without its required following item"."""
    ends = [i for i, item in enumerate(items) if item.get("type") != REASONING]
    return list(items[: ends[-1] + 1]) if ends else []


def _kind(event: Fields) -> str:
    """Return an event's type; LiteLLM's are members of an enum."""
    kind = event.get("type")
    return str(getattr(kind, "value", kind))


FORMS = (_Messages, _Responses)
