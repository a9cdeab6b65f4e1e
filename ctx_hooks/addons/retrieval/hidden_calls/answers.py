"""Hides calls of the hidden tool from the client, who sees the provider's answers as one."""

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any, ClassVar, NamedTuple, TypeAlias

from ctx_hooks.conversation.model import ToolCall
from ctx_hooks.conversation.placeholders import RETRIEVE
from ctx_hooks.formats import WIRE_FORMATS, Format
from ctx_hooks.formats.fields import listed, mapping_or_empty, text_or_empty
from ctx_hooks.texts.json_text import parsed

Fields: TypeAlias = Mapping[str, Any]
"""The fields of an answer, of an event of its stream, or of a part: a call of chat, a block of Anthropic's messages,
an item of Responses."""
CUT_OFF = frozenset(
    {"length", "content_filter", "max_tokens", "refusal", "model_context_window_exceeded"}
    | {"incomplete", "failed", "cancelled", "in_progress", "queued", ""}
)
"""Reasons for which OpenAI and Anthropic stop before the model has finished: the last call may be incomplete."""
ENDS_WITHOUT_CALLS = {"tool_calls": "stop", "function_call": "stop", "tool_use": "end_turn"}
"""From the end reason of an answer with calls to the end reason without them."""


class Turn(NamedTuple):
    """One answer of the provider as messages, with all calls; those of the hidden tool; and whether it `waits` for these.

    It waits if it is finished, calls no tool of the client, and each call has its own id.
    """

    messages: Sequence[Fields]
    hidden: tuple[ToolCall, ...]
    waits: bool


class Grown:
    """A part of an answer to whose fields a stream adds pieces of text, or values of a list."""

    def __init__(self, fields: Fields) -> None:
        self.fields = dict(fields)
        self._pieces = defaultdict[str, list[Any]](list)

    def add(self, field: str, piece: Any) -> None:
        """Add a piece to a field."""
        if piece:
            self._pieces[field].append(piece)

    def whole(self) -> dict[str, Any]:
        """Return the fields with their pieces, which replace a value of another type such as `input: {}`."""
        whole = dict(self.fields)
        for field, pieces in self._pieces.items():
            is_text = isinstance(pieces[0], str)
            begun = whole.get(field)
            whole[field] = text_or_empty(begun) + "".join(pieces) if is_text else [*listed(begun), *pieces]
        return whole


class Answers(ABC):
    """The answers of one format to a request: whole ones, and as an object their streams as the client sees them, as one."""

    format: ClassVar[Format]
    parts_field: ClassVar[str]
    reason_field: ClassVar[str]
    cut_off: ClassVar[str]
    """The reason with which a cut-off answer ends."""

    @staticmethod
    def body(answer: Fields) -> Fields:
        """Return the fields of an answer that have its parts and its reason."""
        return answer

    @staticmethod
    @abstractmethod
    def call(part: Fields) -> ToolCall | None:
        """Return a part as a call that needs an answer, its arguments unchanged; None for any other part."""

    @staticmethod
    @abstractmethod
    def sent_back(answer: Fields) -> Sequence[Fields]:
        """Return the messages that bring an answer back to the provider."""

    @staticmethod
    @abstractmethod
    def joined_fields(answers: Sequence[Fields], shown: Sequence[Fields], reason: str | None) -> Fields:
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
        calls = [call for call in map(cls.call, cls.parts(answer)) if call is not None]
        hidden = tuple(call for call in calls if call.name == RETRIEVE)
        are_named = all(call.id for call in calls) and len({call.id for call in calls}) == len(calls)
        is_whole = text_or_empty(cls.body(answer).get(cls.reason_field)) not in CUT_OFF
        waits = bool(hidden) and len(hidden) == len(calls) and are_named and is_whole
        return Turn(cls.sent_back(answer), hidden, waits)

    @classmethod
    def joined(cls, answers: Sequence[Fields], *, is_whole: bool = True) -> Fields:
        """Return the answers of a request as one, without hidden calls; if it is not whole, its reason is `cut_off`."""
        parts = [part for answer in answers for part in cls.parts(answer)]
        shown, first = [part for part in parts if not cls.is_hidden(part)], cls.cleaned(answers[0])
        if len(answers) == 1 and is_whole and len(shown) == len(parts):
            return first
        usages = [answer["usage"] for answer in answers if isinstance(answer.get("usage"), Mapping)]
        usage = {"usage": total(usages)} if usages else {}
        reason = text_or_empty(cls.body(answers[-1]).get(cls.reason_field)) if is_whole else cls.cut_off
        ended = reason if any(map(cls.call, shown)) else ENDS_WITHOUT_CALLS.get(reason, reason)
        return {**first, **cls.joined_fields(answers, shown, ended or None), **usage}

    @classmethod
    def is_hidden(cls, part: Fields) -> bool:
        """Whether a part calls the hidden tool."""
        call = cls.call(part)
        return call is not None and call.name == RETRIEVE

    def __init__(self) -> None:
        self.before: list[Fields] = []
        self.places = count()  # of the parts that the client sees, over all answers
        self.begin()

    def begin(self) -> None:
        """Forget the newest answer: another one begins."""
        self.withheld: list[Fields] = []

    @abstractmethod
    def seen(self, event: Fields) -> Fields | None:
        """Return the client's view of an event: the same object, a changed one, or None if it is hidden or withheld."""

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


def object_of(arguments: str) -> dict[str, Any]:
    """Return the arguments of a call as an object, empty if they are none: providers accept nothing else back."""
    return dict(mapping_or_empty(parsed(arguments)))
