"""Calls of the hidden tool in answers that are lists of parts: Anthropic's blocks, and the items of OpenAI's Responses."""

from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any, ClassVar

from ctx_hooks.addons.retrieval.hidden_calls.answers import Answers, Fields, Grown, is_hidden, object_of
from ctx_hooks.formats import ANTHROPIC, RESPONSES
from ctx_hooks.formats.fields import compact_json, listed, mapping_or_empty

REASONING = "reasoning"
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

    def begin(self) -> None:
        super().begin()
        self.opened: list[Fields] = []
        self.grown: dict[Any, Grown] = {}
        self._numbers: dict[Any, int | None] = {}

    def seen(self, event: Fields) -> Fields | None:
        kind, number, part = _kind(event), event.get(self.number_field), event.get(self.part_field)
        if kind in self.opening:
            self.opened.append(event)
            return None if self.before else event
        if kind in self.endings:
            self.withheld.append(event)
            return None
        if isinstance(part, Mapping):
            self.grown[number] = Grown(part)
            if kind == self.part_begins:
                self._numbers[number] = None if is_hidden(part) else next(self.places)
        if number not in self._numbers:
            return event
        for name, piece in mapping_or_empty(event.get("delta")).items():
            self.grown[number].add("input" if name == "partial_json" else name, piece if name != "type" else None)
        shown_number = self._numbers[number]
        return None if shown_number is None else {**event, self.number_field: shown_number}


class _Messages(_Listed):
    """Answers of Anthropic's messages."""

    format = ANTHROPIC
    parts_field = "content"
    reason_field = "stop_reason"
    opening = frozenset({"message_start"})
    endings = frozenset({"message_delta", "message_stop"})
    part_begins = "content_block_start"
    part_field = "content_block"
    number_field = "index"

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
    def sent_back(answer: Fields) -> Sequence[Fields]:
        """Return one message without empty texts: providers refuse these if they come back."""
        parts = _Messages.parts(answer)
        said = [part for part in parts if part.get("type") != "text" or str(part.get("text") or "").strip()]
        return ({"role": "assistant", "content": [_readable(part, "input", object_of) for part in said]},)

    @staticmethod
    def joined_fields(answers: Sequence[Fields], shown: Sequence[Fields], reason: str) -> Fields:
        sequence = {name: answers[-1][name] for name in ("stop_sequence",) if name in answers[-1]}
        return {"content": shown, "stop_reason": reason or None, **sequence}


class _Responses(_Listed):
    """Answers of the Responses API, which repeat the tools of their request, as does each event with the response itself."""

    format = RESPONSES
    parts_field = "output"
    reason_field = "status"
    opening = frozenset({"response.created", "response.in_progress", "response.queued"})
    endings = frozenset({"response.completed", "response.incomplete", "response.failed"})
    part_begins = "response.output_item.added"
    part_field = "item"
    number_field = "output_index"

    def __init__(self) -> None:
        super().__init__()
        self._sequence = count()

    def seen(self, event: Fields) -> Fields | None:
        shown = super().seen(event)
        if shown is None:
            return None
        response = shown.get("response")
        cleaned = {"response": _Responses.cleaned(response)} if isinstance(response, Mapping) else {}
        return self._numbered({**shown, **cleaned})

    def _numbered(self, event: Fields) -> Fields:
        return {**event, "sequence_number": next(self._sequence)} if "sequence_number" in event else event

    def answer(self) -> Fields:
        """Return the answer of the last event with the streamed items, which some servers leave out there."""
        end = self.withheld[-1] if self.withheld else {}
        status = _kind(end).removeprefix(EVENT) if end else ""
        return {**mapping_or_empty(end.get("response")), "status": status, "output": [i.fields for i in self.grown.values()]}

    def ending(self, event: Fields, whole: Fields) -> Fields:
        return self._numbered({**event, "response": whole})

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
        items = [{name: value for name, value in part.items() if name not in unsent} for part in _followed(kept)]
        return [_readable(item, "arguments", lambda given: compact_json(object_of(given))) for item in items]

    @staticmethod
    def cleaned(answer: Fields) -> Fields:
        """Return a response that does not say that its request offered the hidden tool."""
        tools = listed(answer.get("tools"))
        kept = [tool for tool in tools if not is_hidden(mapping_or_empty(tool))]
        return answer if len(kept) == len(tools) else {**answer, "tools": kept}

    @staticmethod
    def joined_fields(answers: Sequence[Fields], shown: Sequence[Fields], reason: str) -> Fields:  # noqa: ARG004
        return {**{name: answers[-1][name] for name in END if name in answers[-1]}, "output": _followed(shown)}


def _readable(part: Fields, field: str, read: Callable[[Any], Any]) -> Fields:
    """Return a part with the arguments of its call, if it is one, as an object: servers fail if they are none."""
    return {**part, field: read(part[field])} if field in part else part


def _followed(items: Sequence[Fields]) -> list[Fields]:
    """Return items without reasoning at their end, which is refused back "without its required following item"."""
    ends = [i for i, item in enumerate(items) if item.get("type") != REASONING]
    return list(items[: ends[-1] + 1]) if ends else []


def _kind(event: Fields) -> str:
    """Return an event's type; LiteLLM's are members of an enum."""
    kind = event.get("type")
    return str(getattr(kind, "value", kind))


FORMS = (_Messages, _Responses)
