"""Calls of the hidden tool in answers of Anthropic's messages: an answer is a list of blocks, of which each call is one."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from ctx_hooks.addons.retrieval.hidden_calls.answers import Answers, Fields, Grown, object_of
from ctx_hooks.conversation.model import ToolCall
from ctx_hooks.formats import ANTHROPIC
from ctx_hooks.formats.fields import compact_json, mapping_or_empty

CALL = "tool_use"
"""The type of a call, and why an answer that has one ends."""
GROWN_BY = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("signature", "signature"),
    "input_json_delta": ("input", "partial_json"),
}
"""The field of a block that each kind of delta adds to, and the delta's own field."""
CITATION = "citations_delta"


class _Messages(Answers):
    """Passes on blocks of text and thinking at once, with consecutive numbers.

    `message_delta` and `message_stop` are withheld until it is known whether a further answer follows; its `message_start`
    is hidden.
    """

    format = ANTHROPIC
    parts_field = "content"
    reason_field = "stop_reason"
    no_calls: ClassVar[Fields] = {"tool_choice": {"type": "none"}}
    cut_off = "max_tokens"

    def begin(self) -> None:
        super().begin()
        self._blocks: dict[Any, Grown] = {}
        self._numbers: dict[Any, int | None] = {}
        self._reason: str | None = None
        self._usage: dict[str, Any] = {}

    def seen(self, event: Fields) -> Fields | None:
        kind, index, delta = event.get("type"), event.get("index"), event.get("delta") or {}
        if kind == "message_start":
            self._note_usage((event.get("message") or {}).get("usage"))
            return None if self.before else event
        if kind in ("message_delta", "message_stop"):
            self._note_usage(event.get("usage"))
            self._reason = delta.get("stop_reason") or self._reason
            self.withheld.append(event)
            return None
        if kind == "content_block_start":
            block = event.get("content_block") or {}
            self._blocks[index] = Grown(block)
            self._numbers[index] = None if self.is_hidden(block) else next(self.places)
        elif kind == "content_block_delta":
            self._grow(self._blocks.setdefault(index, Grown({})), delta)
        elif kind != "content_block_stop":
            return event
        number = self._numbers.get(index)
        return None if number is None else event if number == index else {**event, "index": number}

    def _note_usage(self, usage: Any) -> None:
        """Note the usage of an event: later events replace the figures of earlier ones."""
        self._usage |= {name: value for name, value in mapping_or_empty(usage).items() if value is not None}

    @staticmethod
    def _grow(block: Grown, delta: Fields) -> None:
        kind = delta.get("type")
        if kind == CITATION:
            block.fields["citations"] = [*(block.fields.get("citations") or ()), delta.get("citation")]
        elif kind in GROWN_BY:
            field, own = GROWN_BY[kind]
            block.add(field, delta.get(own))

    def answer(self) -> Fields:
        blocks = [block.whole() for block in self._blocks.values()]
        return {"content": blocks, "stop_reason": self._reason, "usage": self._usage}

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
        is_call = part.get("type") == CALL
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


FORM = _Messages
