"""What the provider said out of a client's sight, put back into the client's next request.

A client sends back the answer that it was shown, which lacks the calls of the hidden tool and their results. A record of the
conversation has the provider's own messages for it: with these in its place call ids and signatures are the provider's, its
prompt cache matches, and the model still knows what it learned.

An answer is found by its anchor, a digest of the conversation up to it. It is made of what clients send back as it was: who
said which words, and which calls were made and answered. Cache markers, thinking, white space, system messages, in which
clients write the time, and how a content is divided into blocks and messages are no part of it. Whoever changes more gets no
hidden turn back, and his history goes on as he sends it.

Chat's and Anthropic's messages and the items of Responses are read alike: a field that a format does not have is absent.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import reduce
from hashlib import blake2b
from itertools import accumulate, takewhile
from typing import Any

MOST_TURNS = 64
MOST_RECORD_BYTES = 1_000_000
"""The oldest turns of a record give way, by then mostly behind what compaction keeps. Three retrievals of 20,000 characters
each are 60 KB: the record has at least some sixteen of the largest turns."""
DIGEST_BYTES = 16
CACHE_MARKER = "cache_control"
UNMARKED = frozenset({"thinking", "redacted_thinking"})
"""Blocks that take no cache marker (Anthropic)."""
SYSTEM = frozenset({"system", "developer"})
ITEM = "type"
"""What every item has that a provider of Responses gives, and no message."""
REASONING = "reasoning"
GIVEN_BY_CLIENT = ("_output", "_response")
"""How the types of the items end by which clients answer; what else names no role is the model's."""


@dataclass(frozen=True, slots=True)
class HiddenTurn:
    """What stands for one answer that hides something.

    Attributes:
        anchor: of the answer as the client was shown it.
        messages: the provider's answers, and the results of hidden calls between them.
        results: the results of hidden calls of the last answer, which stand beside those of the client: chat's messages,
            blocks of a user message, or items.
    """

    anchor: str
    messages: Sequence[Mapping[str, Any]]
    results: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True, slots=True)
class Said:
    """What was said so far: a digest, and the role that spoke last."""

    digest: blake2b = field(default_factory=lambda: blake2b(digest_size=DIGEST_BYTES))
    role: str = ""

    @property
    def anchor(self) -> str:
        """The digest as text."""
        return self.digest.hexdigest()

    def then(self, message: Any) -> Said:
        """Return what was said with another message; neighbours of one role speak as one."""
        words, ids = _said(message)
        speaker = _role(message)
        if speaker in SYSTEM or not (words or ids):
            return self
        digest = self.digest.copy()
        if speaker != self.role:
            digest.update(b"\0role\0" + speaker.encode("utf-8", "replace"))
        digest.update(words.encode("utf-8", "surrogatepass"))
        for name in ids:
            digest.update(b"\0id\0" + name.encode("utf-8", "surrogatepass"))
        return Said(digest, speaker)


def says_anything(message: Mapping[str, Any]) -> bool:
    """Whether a message has words, or calls a tool."""
    return any(_said(message))


def said_in(messages: Sequence[Any]) -> Said:
    """Return what was said in all messages."""
    return reduce(Said.then, messages, Said())


def ends_with_assistant(messages: Sequence[Any]) -> bool:
    """Whether the last message, or item, is the assistant's, if it says nothing: an answer goes on from it."""
    return bool(messages) and _role(messages[-1]) == "assistant"


def conversation_key(messages: Sequence[Any]) -> str:
    """Return the key of a conversation's record: the anchor of what was said before the first answer."""
    return said_in(list(takewhile(lambda message: _role(message) != "assistant", messages))).anchor


def written(turns: Sequence[HiddenTurn]) -> str:
    """Return the text of a record, of the newest turns as far as there is room; one that is larger than that is left out."""
    texts: list[str] = []
    size_bytes = 0
    for turn in reversed(turns[-MOST_TURNS:]):
        text = json.dumps(asdict(turn), ensure_ascii=False, separators=(",", ":"))
        turn_bytes = len(text.encode("utf-8", "surrogatepass"))
        if size_bytes + turn_bytes <= MOST_RECORD_BYTES:
            size_bytes += turn_bytes
            texts.append(text)
    return f"[{','.join(reversed(texts))}]"


def read(text: str | None) -> tuple[HiddenTurn, ...]:
    """Return the turns of a record, none of one that is missing or broken."""
    try:
        listed = json.loads(text or "[]")
    except ValueError:
        return ()
    return tuple(_turn(entry) for entry in listed if _is_turn(entry)) if isinstance(listed, list) else ()


def with_turn(turns: Sequence[HiddenTurn], turn: HiddenTurn) -> tuple[HiddenTurn, ...]:
    """Return the turns with another one, which takes the place of one with the same anchor."""
    return (*(t for t in turns if t.anchor != turn.anchor), turn)


def spliced(messages: Sequence[Any], turns: Sequence[HiddenTurn]) -> Sequence[Any]:
    """Return the messages with the provider's own in place of each answer that hides something.

    What is in place already is found no more: its hidden calls are said, and so its anchor is another.

    Args:
        messages: as the client sends them; they are not changed.
        turns: the record of the conversation.

    Returns:
        A new list; the very messages where no anchor is among them.
    """
    known = {turn.anchor: turn for turn in turns}
    found = [known.get(anchor) for anchor in _anchors(messages)] if known else []
    if not any(found):
        return messages
    whole: list[Any] = []
    results: Sequence[Mapping[str, Any]] = ()
    run = 0
    for i, (message, turn) in enumerate(zip(messages, found, strict=True)):
        whole += _with_results(message, results)
        results = ()
        run = run + 1 if _role(message) == "assistant" else 0
        if turn is not None and _is_answer(turn, run, messages[i + 1 : i + 2]):
            whole[-run:] = _marked(turn.messages, message)
            results = turn.results
    return [*whole, *_with_results(None, results)]


def _is_answer(turn: HiddenTurn, run: int, following: Sequence[Any]) -> bool:
    """Whether an assistant's last `run` messages are the answer that a turn stands for, and not half of it.

    Of Responses it is all items up to what the assistant does not say; of the others one message.
    """
    if ITEM in turn.messages[0]:
        return not any(_role(message) == "assistant" for message in following)
    return run == 1


def _anchors(messages: Sequence[Any]) -> list[str]:
    """Return for each message the anchor that an answer has there, "" for what is no answer."""
    said = accumulate(messages, Said.then, initial=Said())
    next(said)
    return [after.anchor if _role(m) == "assistant" else "" for m, after in zip(messages, said, strict=True)]


def _with_results(message: Any, results: Sequence[Mapping[str, Any]]) -> list[Any]:
    """Return the message behind an answer with the results of the answer's hidden calls before what it says itself."""
    own = [] if message is None else [message]
    if not results:
        return own
    if _role(results[0]) == "tool":
        return [*results, *own]
    if _role(message) != "user":
        return [{"role": "user", "content": list(results)}, *own]
    content = message.get("content")
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else list(content or ())
    return [{**message, "content": [*results, *blocks]}]


def _marked(messages: Sequence[Mapping[str, Any]], shown: Mapping[str, Any]) -> list[Any]:
    """Return the provider's messages with the client's cache marker of the message that they stand for, on their last."""
    content = shown.get("content")
    blocks = [b for b in content if isinstance(b, Mapping)] if isinstance(content, (list, tuple)) else []
    markers = [b[CACHE_MARKER] for b in blocks if b.get(CACHE_MARKER)]
    last = dict(messages[-1])
    if shown.get(CACHE_MARKER):
        last[CACHE_MARKER] = shown[CACHE_MARKER]
    if markers and last.get("content"):
        said = last["content"]
        own = [{"type": "text", "text": said}] if isinstance(said, str) else list(said)
        at = max((i for i, b in enumerate(own) if b.get("type") not in UNMARKED), default=None)
        if at is not None:
            own[at] = {**own[at], CACHE_MARKER: markers[-1]}
            last["content"] = own
    return [*messages[:-1], last]


def _said(message: Any) -> tuple[str, tuple[str, ...]]:
    """Return the words of a message without white space, and the ids of its calls and results.

    The words of results are left out: clients clear old ones, and the id says which it is.
    """
    if not isinstance(message, Mapping) or message.get(ITEM) == REASONING:
        return "", ()
    content, calls = message.get("content"), message.get("tool_calls")
    blocks = content if isinstance(content, (list, tuple)) else ()
    listed = [*blocks, *(calls if isinstance(calls, (list, tuple)) else ())]
    ids = [_text(i.get("id")) or _text(i.get("tool_use_id")) for i in listed if isinstance(i, Mapping)]
    result, item = _text(message.get("tool_call_id")), _text(message.get("call_id"))
    texts = [content] if isinstance(content, str) else [b.get("text") for b in blocks if isinstance(b, Mapping)]
    text = "" if result else "".join("".join(map(_text, texts)).split())
    return text, tuple(name for name in (*ids, result, item) if name)


def _role(message: Any) -> str:
    if not isinstance(message, Mapping):
        return ""
    role, kind = _text(message.get("role")), _text(message.get(ITEM))
    if role or not kind:
        return role
    return "tool" if kind.endswith(GIVEN_BY_CLIENT) else "assistant"


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _is_turn(entry: Any) -> bool:
    """Whether an entry of a record is one: whoever has the store can write to it."""
    if (
        not isinstance(entry, dict)
        or entry.keys() != {"anchor", "messages", "results"}
        or not isinstance(entry["anchor"], str)
    ):
        return False
    lists = (entry["messages"], entry["results"])
    return bool(entry["messages"]) and all(isinstance(x, list) and all(isinstance(m, dict) for m in x) for x in lists)


def _turn(entry: Mapping[str, Any]) -> HiddenTurn:
    return HiddenTurn(**entry)
