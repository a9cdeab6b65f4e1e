"""The compacted form of the first messages of a history; later compactions begin with its settled part."""

from dataclasses import dataclass
from sys import getsizeof

from ctx_hooks.compaction.pipeline import StepReport
from ctx_hooks.compaction.summary.model_written import WrittenSummary
from ctx_hooks.conversation.conversation import Conversation
from ctx_hooks.conversation.model import Message, Opaque, ToolCall
from ctx_hooks.runtime.content_cache import json_bytes

MESSAGE_BYTES, PART_BYTES = 160, 120
"""Memory of a message, and of a part of it, beside their texts (measured)."""


@dataclass(frozen=True, slots=True)
class Compaction:
    """The compacted form of the first `length` messages of a history.

    Attributes:
        messages: the messages that are sent instead, `tokens` local tokens.
        reason: why it is larger than its target, None if it is not.
        summary: the model's summary that replaces the removed messages, None for the extractive summary.
        refers: whether its placeholders name archived texts.
        unsettled: how many messages at its end are unchanged originals, in whole exchanges. Those before them have settled:
            so the prompt cache need not store each compaction as a whole.
    """

    length: int
    messages: tuple[Message, ...]
    tokens: int
    steps: tuple[StepReport, ...] = ()
    reason: str | None = None
    summary: WrittenSummary | None = None
    refers: bool = False
    unsettled: int = 0

    @property
    def settled(self) -> tuple[Message, ...]:
        """The messages with which the next compaction may begin; none if even its newest exchange was changed."""
        return self.messages[: -self.unsettled] if self.unsettled else ()

    @property
    def settled_length(self) -> int:
        """How many messages of the history have settled."""
        return self.length - self.unsettled if self.unsettled else 0


NONE_YET = Compaction(0, (), 0)


def unsettled_in(originals: Conversation, made: Conversation, *, newest_only: bool) -> int:
    """Return how many messages at the end of `made` are unchanged originals, in whole exchanges or the newest one.

    In a group it is 0: all messages together decide who spoke first.
    """
    if any(message.name is not None for message in originals.messages):
        return 0
    kept = 0
    for exchange in list(reversed(originals.exchanges))[: 1 if newest_only else None]:
        newest = kept + len(exchange)
        own, left = originals.messages[-newest:], made.messages[made.settled :][-newest:]
        if len(left) < newest or any(a is not b for a, b in zip(own[: len(exchange)], left, strict=False)):
            break
        kept = newest
    return kept


def size_bytes(compaction: Compaction) -> int:
    """Return the memory of a compaction."""
    parts = [part for message in compaction.messages for part in message.parts]
    copies = [p.arguments if isinstance(p, ToolCall) else p.text for p in parts if isinstance(p, (ToolCall, Opaque))]
    messages_bytes = sum(MESSAGE_BYTES + json_bytes(message.raw) for message in compaction.messages)
    return messages_bytes + PART_BYTES * len(parts) + sum(map(getsizeof, copies))
