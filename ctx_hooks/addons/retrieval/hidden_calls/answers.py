"""Hides calls of the hidden tool from the client, who sees the provider's answers as one."""

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any, ClassVar, NamedTuple, TypeAlias

from ctx_hooks.conversation.model import ToolCall
from ctx_hooks.conversation.placeholders import RETRIEVE
from ctx_hooks.formats import WIRE_FORMATS, Format
from ctx_hooks.formats.fields import mapping_or_empty, text_or_empty
from ctx_hooks.texts.json_text import parsed

Fields: TypeAlias = Mapping[str, Any]
"""The fields of an answer, of an event of its stream, or of a part: a call of chat, a block of Anthropic's messages,
an item of Responses."""
FINISHED = {"tool_calls": "stop", "tool_use": "end_turn"} | {name: name for name in ("stop", "end_turn", "completed")}
"""The end reason of a finished answer, and the reason without its calls. With any other the last call may be incomplete."""


class Turn(NamedTuple):
    """One answer of the provider as messages, with all calls; those of the hidden tool; and whether it `waits` for these.

    It waits if it is finished, calls no tool of the client, and each call has its own id.
    """

    messages: Sequence[Fields]
    hidden: tuple[ToolCall, ...]
    waits: bool


class Grown:
    """A part of an answer to whose fields a stream adds pieces of text."""

    def __init__(self, fields: Fields) -> None:
        self.fields = dict(fields)
        self._pieces = defaultdict[str, list[str]](list)

    def add(self, field: str, piece: Any) -> None:
        """Add a piece to a field, which it replaces if that has another type, such as `input: {}`."""
        if piece and isinstance(piece, str):
            self._pieces[field].append(piece)

    def whole(self) -> dict[str, Any]:
        """Return the fields with their pieces."""
        grown = {name: text_or_empty(self.fields.get(name)) + "".join(pieces) for name, pieces in self._pieces.items()}
        return {**self.fields, **grown}


class Answers(ABC):
    """The answers of one format to a request: whole ones, and as an object their streams as the client sees them, as one."""

    format: ClassVar[Format]
    parts_field: ClassVar[str]
    reason_field: ClassVar[str]

    @staticmethod
    def body(answer: Fields) -> Fields:
        """Return the fields of an answer that have its parts and its reason."""
        return answer

    @staticmethod
    @abstractmethod
    def sent_back(answer: Fields) -> Sequence[Fields]:
        """Return the messages that bring an answer back to the provider."""

    @staticmethod
    @abstractmethod
    def joined_fields(answers: Sequence[Fields], shown: Sequence[Fields], reason: str) -> Fields:
        """Return the fields, except the usage, in which the joined answer with these parts differs from the first."""

    @staticmethod
    def cleaned(answer: Fields) -> Fields:
        """Return an answer without the hidden tool among the request's tools."""
        return answer

    @classmethod
    def parts(cls, answer: Fields) -> Sequence[Fields]:
        """Return the parts of an answer."""
        return [part for part in cls.body(answer).get(cls.parts_field) or () if isinstance(part, Mapping)]

    @classmethod
    def turn_of(cls, answer: Fields) -> Turn:
        """Return a whole answer as a turn."""
        messages = cls.sent_back(answer)
        calls = [call for message in WIRE_FORMATS[cls.format].read(messages).messages for call in message.calls]
        hidden = tuple(call for call in calls if call.name == RETRIEVE)
        own_ids = {call.id for call in calls if call.id}
        is_finished = cls.body(answer).get(cls.reason_field) in FINISHED
        return Turn(messages, hidden, is_finished and 0 < len(hidden) == len(calls) == len(own_ids))

    @classmethod
    def joined(cls, answers: Sequence[Fields]) -> Fields:
        """Return the answers of a request as one, without hidden calls."""
        parts = [part for answer in answers for part in cls.parts(answer)]
        shown, first = [part for part in parts if not is_hidden(part)], cls.cleaned(answers[0])
        if len(answers) == 1 and len(shown) == len(parts):
            return first
        reason = text_or_empty(cls.body(answers[-1]).get(cls.reason_field))
        if not any(part.get("type") in ("function", "tool_use") for part in shown):
            reason = FINISHED.get(reason, reason)
        usages = [answer["usage"] for answer in answers if isinstance(answer.get("usage"), Mapping)]
        usage = {"usage": total(usages)} if usages else {}
        return {**first, **cls.joined_fields(answers, shown, reason), **usage}

    def __init__(self) -> None:
        self.before: list[Fields] = []
        self.places = count()  # of the parts that the client sees, over all answers
        self.begin()

    def begin(self) -> None:
        """Forget the newest answer: another one begins."""
        self.withheld: list[Fields] = []

    @abstractmethod
    def seen(self, event: Fields) -> Fields | None:
        """Return the client's view of an event, None if it is hidden or withheld."""

    @abstractmethod
    def answer(self) -> Fields:
        """Return the newest answer as a whole one."""

    @abstractmethod
    def ending(self, event: Fields, whole: Fields) -> Fields:
        """Return a withheld event as the end of all answers, whose joined form is `whole`."""

    def turn(self) -> Turn:
        """Return the provider's turn since the stream of its last answer began."""
        return self.turn_of(self.answer())

    def go_on(self) -> None:
        """Begin the stream of a further answer; the end of the last one is dropped."""
        self.before.append(self.answer())
        self.begin()

    def end(self) -> Sequence[Fields]:
        """Return the withheld end of the last answer, with the usage of all."""
        whole = self.joined([*self.before, self.answer()])
        return [self.ending(event, whole) for event in self.withheld]


def is_hidden(part: Fields) -> bool:
    """Whether a part of an answer calls the hidden tool."""
    return RETRIEVE in (part.get("name"), mapping_or_empty(part.get("function")).get("name"))


def results_of(fmt: Format, calls: Sequence[ToolCall], texts: Sequence[str]) -> Sequence[Fields]:
    """Return the messages that bring the results of calls; Anthropic's are blocks of one."""
    write = WIRE_FORMATS[fmt].tool_result
    messages = [write(call, text, is_error=False) for call, text in zip(calls, texts, strict=True)]
    results = [message.results[0].raw or message.raw for message in messages]
    is_blocks = any("tool_use_id" in result for result in results)
    return [{"role": "user", "content": results}] if is_blocks else results


def total(usages: Sequence[Fields]) -> dict[str, Any]:
    """Return the sum of usage records with their details; a value that is no number is the last record's.

    >>> total([{"prompt_tokens": 10, "details": {"cached": 1}}, {"prompt_tokens": 5, "details": None, "tier": "x"}])
    {'prompt_tokens': 15, 'details': {'cached': 1}, 'tier': 'x'}
    """
    summed: dict[str, Any] = {}
    for name, value in (field for usage in usages for field in usage.items() if field[1] is not None):
        before = summed.get(name)
        both_count = {type(before), type(value)} <= {int, float}
        summed[name] = before + value if both_count else value
        if isinstance(value, Mapping):
            summed[name] = total([mapping_or_empty(before), value])
    return summed


def object_of(arguments: Any) -> dict[str, Any]:
    """Return the arguments of a call as an object, empty if they are none: providers accept nothing else back."""
    return dict(mapping_or_empty(parsed(arguments) if isinstance(arguments, str) else arguments))
