"""What can be retrieved of messages, by the words in it: made once of each block of a history, by content.

No text is held, only Python's hashes of stems and lines.
"""

from __future__ import annotations

from dataclasses import dataclass
from sys import getsizeof
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ctx_hooks.compaction.message_index import digest_behind
from ctx_hooks.compaction.selection import bm25
from ctx_hooks.conversation.model import ToolResult
from ctx_hooks.runtime.content_cache import ContentCache
from ctx_hooks.texts.pieces import lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ctx_hooks.compaction.history import History
    from ctx_hooks.compaction.selection.bm25 import Hashes, Integers, Postings
    from ctx_hooks.conversation.model import Message
    from ctx_hooks.tokens.counter import Counter

BLOCK_MESSAGES = 16
"""So many messages are indexed together: of a history that has grown only what stands in its last block is indexed again,
and a request's words are looked for once in each block."""
LONGEST_PIECE_CHARS = 600
"""A longer turn or line is ranked in pieces of this length: what answers a question is rarely longer."""

_blocks: ContentCache[Block] = ContentCache()


class Piece(NamedTuple):
    """What can be retrieved of a message.

    Attributes:
        whole: what is looked for among what is still sent.
        text: what is ranked.
        quotation: what is quoted of it.
        part: the index of the tool result that it is a line of, -1 for what the message's author said.
    """

    whole: str
    text: str
    quotation: str
    part: int = -1


@dataclass(frozen=True, slots=True)
class Block:
    """The pieces of some messages, in order.

    Attributes:
        postings: of what is ranked of each piece.
        wholes: the hash of what is looked for of each among what is still sent.
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
            found = [pieces_of(m) for m in history.messages.conversation(start, end).messages]
            pieces = [piece for of_message in found for piece in of_message]
            postings = bm25.postings_of(piece.text for piece in pieces)
            return Block(postings, hashes(piece.whole for piece in pieces), np.array([len(p) for p in found], np.int32))

        key = (history.messages.format, digest_behind(b"", history.index[start:end]))
        yield _blocks.get(key, indexed, lambda block: block.size_bytes)


def hashes(texts: Iterable[str]) -> Hashes:
    """Return Python's hash of each text."""
    return np.fromiter(map(hash, texts), np.int64)


def lines_in(messages: Sequence[Message]) -> Hashes:
    """Return the hashes of all that a piece's whole may be equal to in what is sent."""
    texts = [m.text for m in messages] + [r.text for m in messages for r in m.results]
    return hashes({line.strip() for text in texts for line in (text, *text.splitlines())})


def pieces_of(message: Message) -> list[Piece]:
    """Return a message's pieces: of a turn of dialogue, and lines of tool results."""
    pieces = spoken(message)
    for k, part in enumerate(message.parts):
        if isinstance(part, ToolResult):
            stripped = (
                line[i : i + LONGEST_PIECE_CHARS].strip()
                for line in lines(part.text)
                for i in range(0, len(line), LONGEST_PIECE_CHARS)
            )
            pieces += [Piece(line, line, line, k) for line in stripped if line]
    return pieces


def spoken(message: Message) -> list[Piece]:
    """Return what a user or the assistant said, in pieces of bounded length, the first one ranked with the speaker."""
    if message.role not in ("user", "assistant") or not message.text.strip():
        return []
    whole, opening = message.text.strip(), f"{message.role}: "
    text = opening + message.text
    pieces = (text[i : i + LONGEST_PIECE_CHARS] for i in range(0, len(text), LONGEST_PIECE_CHARS))
    return [Piece(whole, p, p if n else p[len(opening) :]) for n, p in enumerate(pieces)]


def dialogue(messages: Sequence[Message]) -> Postings:
    """Return the postings of what is ranked of what users and assistants said."""
    return bm25.postings_of(piece.text for message in messages for piece in spoken(message))
