"""The input of a compaction: unread messages, and the stats of each (the message index), cached by its content."""

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from itertools import dropwhile, takewhile
from sys import getsizeof
from typing import Any, NamedTuple

import orjson

from ctx_hooks.conversation.conversation import Conversation
from ctx_hooks.conversation.model import (
    Message,
    Role,
    ToolCall,
    ToolResult,
    is_question,
    is_request,
    replaces_history,
    stays,
)
from ctx_hooks.errors import MalformedConversationError
from ctx_hooks.formats import MessageReader
from ctx_hooks.runtime.content_cache import DIGEST_BYTES, ContentCache, digest_of_bytes
from ctx_hooks.texts.json_text import parsed
from ctx_hooks.tokens.counter import Counter
from ctx_hooks.tokens.units import LocalTokens

CALL_DIGEST_BYTES = 8
"""Calls are compared only within one conversation."""


class MessageStats(NamedTuple):
    """The facts about one message that need no second reading; none is text.

    Attributes:
        digest: the digest of its JSON, 16 bytes.
        is_request: whether it is in a user's own words.
        result_chars: the length of its longest tool result.
        stays: whether no compaction removes it.
        guessed_tokens: its tokens that are a guess (`Counter.guessed`), which may be far fewer provider tokens.
        other_tokens: its tokens of other scripts, figures and base64, without their weight.
        beside_tokens: tokens of the parts behind its tool results, which the next request may lack.
        calls: the digest of each of its tool calls.
    """

    digest: bytes
    tokens: LocalTokens
    role: Role
    is_request: bool
    result_chars: int = 0
    stays: bool = False
    guessed_tokens: LocalTokens = LocalTokens(0)
    is_question: bool = False
    other_tokens: LocalTokens = LocalTokens(0)
    beside_tokens: LocalTokens = LocalTokens(0)
    replaces_history: bool = False
    calls: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class History:
    """A conversation, the stats of its messages, and the size and digest of its preamble.

    Attributes:
        index: the stats of each message. Later messages are not part of the history.
        continues: whether the provider stores earlier messages.
        other_tokens: its tokens of other scripts, figures and base64, without their weight.
    """

    messages: MessageReader
    index: tuple[MessageStats, ...]
    preamble_tokens: LocalTokens
    preamble_digest: bytes
    continues: bool = False
    other_tokens: LocalTokens = LocalTokens(0)

    def conversation(self, counter: Counter, start: int = 0, end: int | None = None) -> Conversation:
        """Return the messages from `start` to `end`; `counter` gets their sizes from the index instead of counting."""
        conversation = self.messages.conversation(start, len(self.index) if end is None else end)
        for message, stats in zip(conversation.messages, self.index[start:], strict=False):
            counter.know(message, stats.tokens)
        return conversation

    @property
    def tokens(self) -> LocalTokens:
        """The tokens of the whole request."""
        return LocalTokens(self.preamble_tokens + sum(m.tokens for m in self.index))

    @property
    def seen_tokens(self) -> LocalTokens:
        """The tokens of the request before this one of the same conversation, 0 for the first."""
        *_, before, _ = (0, *request_points(self.index))
        return LocalTokens(self.preamble_tokens + sum(m.tokens for m in self.index[:before]) if before else 0)

    @property
    def fixed_tokens(self) -> LocalTokens:
        """The tokens before the conversation, which no compaction reduces."""
        fixed = takewhile(lambda m: m.role == "system", self.index)
        return LocalTokens(self.preamble_tokens + sum(m.tokens for m in fixed))


def history_of(
    messages: MessageReader, index: tuple[MessageStats, ...], counter: Counter, *, continues: bool = False
) -> History:
    """Return the history of the messages that `index` lists, behind the preamble that the reader has."""
    preamble_tokens = LocalTokens(sum(counter.text(text) for text in messages.preamble))
    others = counter.others((), messages.preamble) + sum(m.other_tokens for m in index)
    return History(messages, index, preamble_tokens, digest_of(messages.preamble), continues, LocalTokens(others))


_stats: ContentCache[MessageStats] = ContentCache()


def message_stats(messages: MessageReader, counter: Counter) -> tuple[MessageStats, ...]:
    """Return the stats of each message; raises MalformedConversationError."""
    return tuple([_stats_of(messages, i, counter) for i in range(len(messages.items))])


def call_digest(call: ToolCall) -> bytes:
    """Return 8 bytes, equal for calls of one tool with equal arguments in any order and layout."""
    value, arguments = parsed(call.arguments), call.arguments.encode("utf-8", "replace")
    if value is not None:
        with suppress(TypeError):  # lone surrogates
            arguments = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    return digest_of_bytes(call.name.encode("utf-8", "replace") + b"\0" + arguments)[:CALL_DIGEST_BYTES]


def request_points(index: Sequence[MessageStats]) -> tuple[int, ...]:
    """Return the lengths at which the client must have sent a request: before each answer, and now."""
    answers = (i for i in range(1, len(index)) if index[i].role == "assistant" and index[i - 1].role != "assistant")
    return (*answers, len(index))


def settled_length(index: Sequence[MessageStats], length: int) -> int:
    """Return how many of a request's `length` messages the next one begins with: all but a reminder behind tool results."""
    while length > 1 and index[length - 1].is_request and index[length - 2].role not in ("assistant", "system"):
        length -= 1
    return length


def without_beside(message: Message) -> Message:
    """Return a message without the parts behind its tool results, where clients put their reminders, too."""
    last = max((i for i, part in enumerate(message.parts) if isinstance(part, ToolResult)), default=len(message.parts))
    return message.with_parts(message.parts[: last + 1])


def is_first_request(index: Sequence[MessageStats]) -> bool:
    """Whether no assistant has answered yet, but for a prefilled answer at the very end."""
    before_prefill = dropwhile(lambda stats: stats.role == "assistant", reversed(index))
    return all(stats.role != "assistant" for stats in before_prefill)


def newest_turns(index: Sequence[MessageStats], max_turns: int | None) -> Sequence[int]:
    """Return the indices of the newest user turns (each starts with the user's words), of system text and summaries."""
    starts = [i for i, stats in enumerate(index) if stats.is_request]
    if max_turns is None or len(starts) <= max_turns:
        return range(len(index))
    first = starts[-max_turns]
    return [i for i, s in enumerate(index) if i >= first or s.role == "system" or s.replaces_history]


def from_newest_summary(index: Sequence[MessageStats]) -> Sequence[int]:
    """Return the indices from the provider's newest summary on, and of system text before it; all if there is none."""
    start = max((i for i, stats in enumerate(index) if stats.replaces_history), default=0)
    return [i for i, stats in enumerate(index) if i >= start or stats.role == "system"]


def chain(start: bytes, index: Sequence[MessageStats]) -> tuple[bytes, ...]:
    """Return the digest of each prefix of the index by length; length 0 has the digest of `start`."""
    running = sha256()
    digests = []
    for digest in (start, *(stats.digest for stats in index)):
        running.update(digest)
        digests.append(running.digest()[:DIGEST_BYTES])
    return tuple(digests)


def digest_behind(start: bytes, index: Sequence[MessageStats]) -> bytes:
    """Return the last digest of `chain` in a tenth of the time."""
    return digest_of_bytes(start + b"".join([stats.digest for stats in index]))


def digest_of(value: Any) -> bytes:
    """Return the 16-byte digest of a JSON value; raises MalformedConversationError if it is nested too deeply."""
    try:
        text = orjson.dumps(value)
    except TypeError:  # lone surrogates, huge integers and foreign objects, which the standard library accepts
        try:
            text = json.dumps(value, default=str).encode()
        except (RecursionError, ValueError):
            raise MalformedConversationError("a message is nested too deeply to be read") from None
    return digest_of_bytes(text)


def _stats_of(messages: MessageReader, i: int, counter: Counter) -> MessageStats:
    digest, fmt = digest_of(messages.items[i]), messages.format

    def read() -> MessageStats:
        counter.deadline.check()
        message = messages.message(i)
        tokens = counter.message(message, fmt)
        return MessageStats(
            digest,
            tokens,
            message.role,
            is_request(message),
            max((len(r.text) for r in message.results), default=0),
            stays(message),
            counter.guessed(message, fmt),
            is_question(message),
            counter.others((message,)),
            LocalTokens(tokens - counter.message(without_beside(message), fmt)),
            replaces_history(message),
            tuple(map(call_digest, message.calls)),
        )

    return _stats.get((fmt, counter.vocabulary, counter.other_weight, digest), read, getsizeof)
