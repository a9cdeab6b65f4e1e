"""The stats of each message, cached by its content, so that a known conversation is not read again.

Stats have figures, never text: the size of a message and who speaks. Most requests need no more.
"""

import json
from collections.abc import Iterable, Sequence
from hashlib import sha256
from itertools import starmap
from sys import getsizeof
from typing import Any, NamedTuple, TypeAlias

import orjson

from ctx_hooks.conversation.model import Message, Role, ToolCall, ToolResult, is_question, is_request
from ctx_hooks.conversation.protection import replaces_history, stays
from ctx_hooks.errors import MalformedConversationError
from ctx_hooks.formats.reader import MessageReader
from ctx_hooks.runtime.content_cache import AT_ONCE_CHARS, DIGEST_BYTES, ContentCache, digest, digest_of_bytes
from ctx_hooks.texts.json_text import parsed
from ctx_hooks.tokens.counter import Counter
from ctx_hooks.tokens.units import LocalTokens

BLOCK_MESSAGES = 32
"""One digest identifies a block of so many messages. That takes a third of the time of one digest a message. After a history
has grown, only its last block is looked up message by message."""
SMALL_SLICE_CHARS = 64
"""If a large value is digested in slices, texts up to this length are written unchanged: a digest is no shorter."""
CALL_DIGEST_BYTES = 8
"""Short, since calls are compared only within one conversation."""
SORTED = orjson.OPT_SORT_KEYS
FIGURES_BYTES = 96
"""Memory of the three numbers of tokens in the stats."""


class MessageStats(NamedTuple):
    """The facts about one message that need no second reading.

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


_Block: TypeAlias = tuple[tuple[Any, ...], ...]
_figures: ContentCache[tuple[Any, ...]] = ContentCache()
_blocks: ContentCache[_Block] = ContentCache()


def message_stats(messages: MessageReader, counter: Counter) -> tuple[MessageStats, ...]:
    """Return the stats of each message; raises MalformedConversationError as reading the conversation would.

    It looks up messages in blocks. Of an unknown block, such as the last, it reads only the unknown messages.
    """
    found: list[MessageStats] = []
    for start in range(0, len(messages.items), BLOCK_MESSAGES):
        found += _stats_from(messages, start, counter)
    return tuple(found)


def call_digest(call: ToolCall) -> bytes:
    """Return 8 bytes, equal for calls of one tool with equal arguments in any order and layout."""
    value = parsed(call.arguments)
    try:
        arguments = call.arguments.encode("utf-8", "replace") if value is None else orjson.dumps(value, option=SORTED)
    except TypeError:  # lone surrogates; or nested too deeply
        arguments = call.arguments.encode("utf-8", "replace")
    return digest_of_bytes(call.name.encode("utf-8", "replace") + b"\0" + arguments)[:CALL_DIGEST_BYTES]


def request_points(index: Sequence[MessageStats]) -> tuple[int, ...]:
    """Return the lengths at which the client must have sent a request: before each answer, and now."""
    answers = (i for i in range(1, len(index)) if index[i].role == "assistant" and index[i - 1].role != "assistant")
    return (*answers, len(index))


def settled_length(index: Sequence[MessageStats], length: int) -> int:
    """Return how many of a request's `length` messages the next request certainly begins with.

    Some clients end every request with a reminder: a user's message behind tool results or another such message. The next
    request lacks it or has it at its own end. Nothing shows whether a message will stay.
    """
    while length > 1 and index[length - 1].is_request and index[length - 2].role not in ("assistant", "system"):
        length -= 1
    return length


def without_beside(message: Message) -> Message:
    """Return a message without the parts behind its tool results: clients put their reminders there, too."""
    last = max((i for i, part in enumerate(message.parts) if isinstance(part, ToolResult)), default=len(message.parts))
    return message.with_parts(message.parts[: last + 1])


def is_first_request(index: Sequence[MessageStats]) -> bool:
    """Whether no assistant has answered yet: nothing shows that turns will follow that need room.

    Assistant messages at the very end do not count: they are a prefilled answer.
    """
    roles = [stats.role for stats in index]
    while roles and roles[-1] == "assistant":
        roles.pop()
    return "assistant" not in roles


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
    running = sha256(start)
    digests = [running.digest()[:DIGEST_BYTES]]
    for stats in index:
        running.update(stats.digest)
        digests.append(running.digest()[:DIGEST_BYTES])
    return tuple(digests)


def digest_behind(start: bytes, index: Sequence[MessageStats]) -> bytes:
    """Return the last digest of `chain` in a tenth of the time."""
    return digest_of_bytes(start + b"".join([stats.digest for stats in index]))


def digest_of(value: Any) -> bytes:
    """Return the 16-byte digest of a JSON value; raises MalformedConversationError if it is nested too deeply."""
    try:
        text = orjson.dumps(_in_slices(value))
    except TypeError:
        # orjson refuses lone surrogates, huge integers and foreign objects; the standard library accepts them.
        try:
            text = json.dumps(value, default=str).encode()
        except (RecursionError, ValueError):
            raise MalformedConversationError("a message is nested too deeply to be read") from None
    return digest_of_bytes(text)


def _in_slices(value: Any) -> Any:
    """Return a JSON value; a large one gets digests instead of its contents, in a form that no other JSON value has.

    Writing all of it in one call would keep Python's lock, and so block the event loop.
    """
    kind = type(value)
    if kind not in (dict, list) or _chars(value) <= AT_ONCE_CHARS:
        return value
    return {name: _slice(inner) for name, inner in value.items()} if kind is dict else [_slice(inner) for inner in value]


def _slice(value: Any) -> Any:
    if type(value) is str:
        return value if len(value) <= SMALL_SLICE_CHARS else orjson.Fragment(f"@{digest(value).hex()}")
    return orjson.Fragment(f"@{digest_of(value).hex()}") if type(value) in (dict, list) else value


def _chars(value: dict[str, Any] | list[Any]) -> int:
    """Return about how many characters a JSON value has, without its keys."""
    chars = 0
    for inner in value.values() if isinstance(value, dict) else value:
        kind = type(inner)
        chars += len(inner) if kind is str else _chars(inner) if kind is dict or kind is list else 1
    return chars


def _stats_from(messages: MessageReader, start: int, counter: Counter) -> Iterable[MessageStats]:
    """Return the stats of the messages of a block, which begins at `start`."""
    places = range(len(messages.items))[start : start + BLOCK_MESSAGES]
    stats = (_stats_of(messages, i, counter) for i in places)
    if len(places) < BLOCK_MESSAGES:
        return stats
    try:
        text = orjson.dumps(_in_slices(messages.items[start : start + BLOCK_MESSAGES]))
    except TypeError:
        return stats
    key = (messages.format, counter.vocabulary, counter.other_weight, digest_of_bytes(text))
    return starmap(MessageStats, _blocks.get(key, lambda: tuple(map(tuple, stats)), _block_bytes))


def _block_bytes(block: _Block) -> int:
    calls_bytes = sum(getsizeof(stats[-1]) + sum(map(getsizeof, stats[-1])) for stats in block if stats[-1])
    return calls_bytes + sum(getsizeof(stats) + getsizeof(stats[0]) + FIGURES_BYTES for stats in block)


def _stats_of(messages: MessageReader, i: int, counter: Counter) -> MessageStats:
    digest = digest_of(messages.items[i])
    fmt = messages.format

    def read() -> tuple[Any, ...]:
        counter.deadline.check()
        message = messages.message(i)
        longest = max((len(r.text) for r in message.results), default=0)
        guessed, others = counter.guessed(message, fmt), counter.others((message,))
        spoken = (message.role, is_request(message))
        tokens = counter.message(message, fmt)
        beside_tokens = LocalTokens(tokens - counter.message(without_beside(message), fmt))
        said = (longest, stays(message), guessed, is_question(message), others, beside_tokens)
        return tokens, *spoken, *said, replaces_history(message), tuple(map(call_digest, message.calls))

    key = (fmt, counter.vocabulary, counter.other_weight, digest)
    return MessageStats(digest, *_figures.get(key, read))
