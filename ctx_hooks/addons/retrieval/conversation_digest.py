"""Digests of a conversation: of all texts up to each answer, the same whoever sends them again.

They ignore what clients change when they send a history again: cache markers, thinking, white space, ids of items, empty
fields, and the division of a content into blocks and messages. The same code reads messages of chat and of Anthropic and
items of Responses: a field that a format does not have is absent.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from hashlib import blake2b
from typing import Any, NamedTuple

from ctx_hooks.formats.fields import CACHE_MARKER, mapping_or_empty, text_or_empty

DIGEST_BYTES = 16
TEXTS = frozenset({"", "text", "input_text", "output_text"})
THINKING = frozenset({"thinking", "redacted_thinking"})
ASSISTANT = "assistant"
ITEM = "type"
"""A field that every item of a Responses provider has, and no message."""
REASONING = "reasoning"
REFERENCE = "item_reference"
MESSAGE = "message"
CALLS = frozenset({"tool_use", "function_call", "custom_tool_call"})
ENVELOPE = frozenset({"role", "content", "tool_calls", ITEM})
"""Fields of a message that are read separately, or say how it is sent."""
UNSAID = frozenset({CACHE_MARKER, "context", "id", "status"})
"""Fields without content: marks for the cache and for this package, and a Responses provider's notes on an item."""
BEFORE = ("system", "instructions", "prompt", "previous_response_id", "conversation")
"""The fields beside the messages with texts that precede them."""
BILLING_HEADER = "x-anthropic-billing-header:"
"""A block of the system text that Claude Code writes anew with each request, for Anthropic's accounting."""
PIECE_CHARS = 65_536
"""Some 0.5 ms."""
GIVEN_BY_CLIENT = ("_output", "_response")
"""Endings of the types of items by which clients answer; any other item without a role is the model's."""


class Heard(NamedTuple):
    """A conversation, as a client sends it.

    Attributes:
        digest: of all that was sent.
        role: who spoke last.
        anchors: the anchor of each message that is an answer, "" for any other.
    """

    digest: blake2b
    role: str
    anchors: Sequence[str]

    @property
    def is_open(self) -> bool:
        """Whether the last message, or item, is the assistant's, even if empty: the answer continues it."""
        return bool(self.anchors) and bool(self.anchors[-1])

    def anchor_of(self, answer: Iterable[Any]) -> str:
        """Return the anchor of an answer to it, from the answer's messages."""
        return heard(answer, self).digest.hexdigest()


def heard(messages: Iterable[Any], before: Heard | None = None) -> Heard:
    """Return a conversation's digests, which continue those of `before`."""
    digest, role = (blake2b(digest_size=DIGEST_BYTES), "") if before is None else (before.digest.copy(), before.role)
    anchors = []
    for message in messages:
        speaker = role_of(message)
        for piece in _said(message):
            if speaker != role:  # neighbours of one role speak as one
                digest.update(f"\0role\0{speaker}".encode("utf-8", "surrogatepass"))
                role = speaker
            digest.update(piece.encode("utf-8", "surrogatepass"))
        anchors.append(digest.hexdigest() if speaker == ASSISTANT else "")
    return Heard(digest, role, anchors)


def says_anything(message: Mapping[str, Any]) -> bool:
    """Whether a message has words, or calls a tool."""
    return any(True for _ in _said(message))


def sent_before(fields: Mapping[str, Any], asker: Sequence[str]) -> dict[str, Any]:
    """Return a message with the asker, the format and the fields that a request sends before its messages."""
    before = {name: fields.get(name) for name in BEFORE}
    if isinstance(before["system"], (list, tuple)):
        texts = [text_or_empty(mapping_or_empty(block).get("text")) for block in before["system"]]
        before["system"] = [
            b for b, text in zip(before["system"], texts, strict=True) if not text.startswith(BILLING_HEADER)
        ]
    return {"role": "asker", "asker": asker, **before}


def _said(message: Any) -> Iterator[str]:
    """Yield the content of a message: the words and calls of an answer, all fields of any other."""
    if not isinstance(message, Mapping) or message.get(ITEM) == REASONING:
        return
    kind, content, calls = text_or_empty(message.get(ITEM)), message.get("content"), message.get("tool_calls")
    for block in content if isinstance(content, (list, tuple)) else (content,):
        yield from _block(block)
    for call in (*(calls if isinstance(calls, (list, tuple)) else ()), message.get("function_call")):
        yield from _call(call)
    if kind in CALLS:
        yield from _call(message)
    elif role_of(message) != ASSISTANT or kind not in ("", MESSAGE):
        unsaid = UNSAID - {"id"} if kind == REFERENCE else UNSAID
        yield from _fields(message, ENVELOPE | unsaid)


def _block(block: Any) -> Iterator[str]:
    own = mapping_or_empty(block)
    kind, text = text_or_empty(own.get(ITEM)), own.get("text", block)
    if kind in CALLS:
        yield from _call(own)
    elif kind in TEXTS and isinstance(text, str):
        yield from _pieces(text)
    elif own and kind not in THINKING:
        yield from _fields(own, UNSAID)
    elif not own and block is not None:
        yield from _values(block)


def _call(call: Any) -> Iterator[str]:
    if not isinstance(call, Mapping):
        return
    named = next((v for v in map(call.get, ("function", "custom")) if isinstance(v, Mapping)), call)
    arguments = named.get("input") or named.get("arguments")
    yield from _values([call.get("call_id") or call.get("id"), named.get("name"), arguments if arguments != "{}" else None])


def _fields(value: Mapping[str, Any], unsaid: AbstractSet[str]) -> Iterator[str]:
    """Yield the fields of a message or block that have content, nothing if none has."""
    said = {name: inner for name, inner in value.items() if name not in unsaid and inner is not None}
    if said:
        yield from _values(said)


def _values(value: Any) -> Iterator[str]:
    """Yield a JSON value in pieces, its fields by name since encoders differ in order, without None values."""
    waiting = [value]
    while waiting:
        found = waiting.pop()
        if isinstance(found, str):
            yield "\0text\0"
            yield from _pieces(found)
        elif isinstance(found, Mapping):
            yield "\0object\0"
            for name in sorted(found, key=str, reverse=True):
                if found[name] is not None and name != CACHE_MARKER:
                    waiting += (found[name], str(name))
        elif isinstance(found, (list, tuple)):
            yield f"\0list {len(found)}\0"
            waiting += reversed(found)
        else:
            is_whole = isinstance(found, float) and found.is_integer()
            yield f"\0value {int(found) if is_whole else found}\0"


def _pieces(text: str) -> Iterator[str]:
    """Yield a text without white space, in pieces: no other thread runs while Python divides or joins one."""
    for start in range(0, len(text), PIECE_CHARS):
        words = "".join(text[start : start + PIECE_CHARS].split())
        if words:
            yield words


def role_of(message: Any) -> str:
    """Return the role of a message or item, "" for anything else."""
    role, kind = (text_or_empty(mapping_or_empty(message).get(name)) for name in ("role", ITEM))
    if role or not kind:
        return role
    return "tool" if kind.endswith(GIVEN_BY_CLIENT) else ASSISTANT
