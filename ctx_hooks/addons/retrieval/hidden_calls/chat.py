"""Calls of the hidden tool in answers of OpenAI's chat completions: an answer is one message with a list of calls."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from ctx_hooks.addons.retrieval.hidden_calls.answers import Answers, Fields, Grown, is_hidden, object_of
from ctx_hooks.formats import CHAT
from ctx_hooks.formats.fields import compact_json, mapping_or_empty

BETWEEN = "\n\n"
"""Separates the texts of two answers: a chat message has one text."""
HEAD = ("id", "created", "model", "system_fingerprint")
"""The common fields of all chunks of a stream, by which clients join them."""
TEXTS = ("content", "reasoning_content")
SENT_BACK = ("reasoning_content", "thinking_blocks")
"""Fields of LiteLLM's chat messages beside text and calls, which it accepts back."""


class _Call(NamedTuple):
    """A call in a stream, and its number among the calls that the client sees, None if it is hidden."""

    fields: Fields
    function: Grown
    number: int | None


class _Chat(Answers):
    """Passes on text and thinking at once.

    The chunk with the end reason, and all chunks after it, such as usage, are withheld until it is known whether a further
    answer follows.
    """

    format = CHAT
    parts_field = "tool_calls"
    reason_field = "finish_reason"

    _head: Fields | None = None
    _has_text = False

    def begin(self) -> None:
        super().begin()
        self._message = Grown({})
        self._thinking: list[Grown] = []
        self._calls: list[_Call] = []
        self._newest: dict[Any, _Call] = {}
        self._reason: str | None = None
        self._usage: Fields | None = None
        self._between = BETWEEN if self._has_text else ""

    def seen(self, event: Fields) -> Fields | None:
        choice = _choice(event)
        if self._head is None:
            self._head = {name: event[name] for name in HEAD if name in event}
        if not choice and not event.get("usage"):
            return event  # an error, or what a server adds
        chunk = {**event, **self._head} if self.before else event
        self._usage = chunk.get("usage") or self._usage
        self._reason = choice.get("finish_reason") or self._reason
        delta = choice.get("delta") or {}
        shown = self._shown(delta)
        is_empty = shown != delta and not any(shown.values())
        if self._reason is None and not chunk.get("usage"):
            return None if is_empty else _with_delta(chunk, shown)
        self.withheld.append(_with_delta(chunk, {}) if choice else chunk)
        said = _with_delta(chunk, shown, finish_reason=None) if any(shown.values()) else {}
        return {name: value for name, value in said.items() if name != "usage"} or None

    def _shown(self, delta: Fields) -> dict[str, Any]:
        """Note a delta and return the client's view of it."""
        for name in TEXTS:
            self._message.add(name, delta.get(name))
        for piece in delta.get("thinking_blocks") or ():
            self._note_thinking(piece)
        shown = dict(delta)
        if calls := delta.get("tool_calls"):
            shown["tool_calls"] = [piece for piece in map(self._noted, calls) if piece is not None] or None
        if delta.get("content"):
            shown["content"] = self._between + delta["content"]
            self._between, self._has_text = "", True
        if self.before and delta.get("role"):
            shown["role"] = None
        return shown

    def _note_thinking(self, piece: Fields) -> None:
        """Note a piece of thinking, which continues the block before unless a signature has closed that block."""
        last = self._thinking[-1].fields if self._thinking else {}
        if not (last.get("type") == "thinking" == piece.get("type")) or last.get("signature"):
            self._thinking.append(Grown({}))
        self._thinking[-1].fields |= {name: value for name, value in piece.items() if value and name != "thinking"}
        self._thinking[-1].add("thinking", piece.get("thinking"))

    def _noted(self, piece: Fields) -> Fields | None:
        """Note a piece of a call and return the client's view, numbered among its own calls; None if it is hidden."""
        index, function = piece.get("index"), piece.get("function") or {}
        call = self._newest.get(index)
        if call is None or (piece.get("id") and piece["id"] != call.fields.get("id")):
            number = None if is_hidden(piece) else next(self.places)
            call = _Call(_without_none(piece), Grown(_without_none({**function, "arguments": ""})), number)
            self._newest[index] = call
            self._calls.append(call)
        call.function.add("arguments", function.get("arguments"))
        return None if call.number is None else {**piece, "index": call.number}

    def answer(self) -> Fields:
        thinking = [block.whole() for block in self._thinking]
        calls = [{**call.fields, "function": call.function.whole()} for call in self._calls]
        message = {**self._message.whole(), "thinking_blocks": thinking, "tool_calls": calls}
        return {"choices": [{"message": message, "finish_reason": self._reason}], "usage": self._usage}

    def ending(self, event: Fields, whole: Fields) -> Fields:
        changed = {**event, "usage": whole.get("usage")} if event.get("usage") and self.before else event
        ended = _choice(changed).get("finish_reason")
        return changed if ended is None else _with_delta(changed, {}, finish_reason=_choice(whole)["finish_reason"])

    @staticmethod
    def body(answer: Fields) -> Fields:
        return {**_message(answer), "finish_reason": _choice(answer).get("finish_reason")}

    @staticmethod
    def sent_back(answer: Fields) -> Sequence[Fields]:
        message = _message(answer)
        calls = [_call_sent_back(call) for call in message.get("tool_calls") or ()]
        said = {name: message[name] for name in SENT_BACK if message.get(name)} | ({"tool_calls": calls} if calls else {})
        return ({"role": "assistant", "content": message.get("content") or (None if calls else ""), **said},)

    @staticmethod
    def joined_fields(answers: Sequence[Fields], shown: Sequence[Fields], reason: str) -> Fields:
        messages = list(map(_message, answers))
        message = {name: value for name, value in messages[-1].items() if name != "tool_calls"}
        text, thoughts = (BETWEEN.join(m[name] for m in messages if m.get(name)) for name in TEXTS)
        blocks = [block for m in messages for block in m.get("thinking_blocks") or ()]
        said = {"tool_calls": shown, "reasoning_content": thoughts, "thinking_blocks": blocks}
        message |= {"content": text or (None if shown else ""), **{name: value for name, value in said.items() if value}}
        return {"choices": [{**_choice(answers[-1]), "message": message, "finish_reason": reason or None}]}


def _call_sent_back(call: Fields) -> dict[str, Any]:
    """Return a call in a message's form: servers behind LiteLLM read its arguments, and fail if they are not JSON."""
    function = mapping_or_empty(call.get("function"))
    read = {**function, "arguments": compact_json(object_of(function.get("arguments") or ""))}
    return {"type": "function", **_without_none(call), "function": read}


def _without_none(fields: Fields) -> dict[str, Any]:
    """Return the fields of a call without its number in a stream, and without absent values."""
    return {name: value for name, value in fields.items() if name != "index" and value is not None}


def _with_delta(chunk: Fields, delta: Fields, **changes: Any) -> dict[str, Any]:
    return {**chunk, "choices": [{**_choice(chunk), "delta": delta, **changes}, *chunk["choices"][1:]]}


def _choice(answer: Fields) -> Fields:
    """Return the first choice: the tool is not offered to a client that wants several."""
    choices = answer.get("choices")
    return choices[0] if choices else {}


def _message(answer: Fields) -> Fields:
    return _choice(answer).get("message") or {}


FORM = _Chat
