"""What users and the assistant said, by the words in it: made once of each block of a history, by content.

No text is held, only Python's hashes of stems and texts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from sys import getsizeof

import numpy as np

from ctx_hooks.compaction.history import History
from ctx_hooks.compaction.message_index import digest_behind
from ctx_hooks.compaction.selection import bm25
from ctx_hooks.compaction.selection.bm25 import Hashes, Integers, Postings
from ctx_hooks.conversation.model import Message
from ctx_hooks.runtime.content_cache import ContentCache
from ctx_hooks.tokens.counter import Counter

BLOCK_MESSAGES = 16
"""So many messages are indexed together: of a history that has grown only what stands in its last block is indexed again,
and a request's words are looked for once in each block."""
LONGEST_PIECE_CHARS = 600
"""A longer turn is ranked in pieces of this length: what answers a question is rarely longer."""

_blocks: ContentCache[Block] = ContentCache()


@dataclass(frozen=True, slots=True)
class Block:
    """The pieces of some messages, in order.

    Attributes:
        postings: of the pieces.
        wholes: of each piece the hash of all that its message says.
        counts: how many pieces each message has.
    """

    postings: Postings
    wholes: Hashes
    counts: Integers

    @property
    def size_bytes(self) -> int:
        """The memory that is held."""
        return self.postings.size_bytes + getsizeof(self.wholes) + getsizeof(self.counts)


def blocks(history: History, length: int, counter: Counter) -> Iterator[Block]:
    """Yield the first `length` messages of a history in blocks; of these at least one is there."""
    for start in range(0, length, BLOCK_MESSAGES):
        end = min(start + BLOCK_MESSAGES, length)

        def indexed(start: int = start, end: int = end) -> Block:
            counter.deadline.check()
            messages = history.messages.conversation(start, end).messages
            counts = np.array([len(pieces_of(m)) for m in messages], np.int32)
            return Block(postings_of(messages), np.repeat(hashes(m.text.strip() for m in messages), counts), counts)

        key = (history.messages.format, digest_behind(b"", history.index[start:end]))
        yield _blocks.get(key, indexed, lambda block: block.size_bytes)


def hashes(texts: Iterable[str]) -> Hashes:
    """Return Python's hash of each text."""
    return np.fromiter(map(hash, texts), np.int64)


def lines_in(messages: Sequence[Message]) -> Hashes:
    """Return the hashes of all that messages say, and of each line of it."""
    return hashes({line.strip() for m in messages for line in (m.text, *m.text.splitlines())})


def pieces_of(message: Message) -> list[str]:
    """Return what a user or the assistant said behind the speaker's role, in pieces of bounded length."""
    if message.role not in ("user", "assistant") or not message.text.strip():
        return []
    text = f"{message.role}: {message.text}"
    return [text[i : i + LONGEST_PIECE_CHARS] for i in range(0, len(text), LONGEST_PIECE_CHARS)]


def postings_of(messages: Sequence[Message]) -> Postings:
    """Return the postings of the pieces of messages."""
    return bm25.postings_of(piece for message in messages for piece in pieces_of(message))
