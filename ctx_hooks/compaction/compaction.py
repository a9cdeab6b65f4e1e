"""The compacted form of the first messages of a history, and what of it the compactions after it begin with.

A compaction that is made anew from the first message on is written into the provider's prompt cache whole. So the few after
it begin with the bytes that have settled in it: all but its newest exchanges, which are kept whole and are compacted when
they are older. What is behind these is compacted as a conversation of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from sys import getsizeof
from typing import TYPE_CHECKING

from ctx_hooks.conversation.model import Opaque, ToolCall
from ctx_hooks.message_rules import alternation
from ctx_hooks.runtime.content_cache import json_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ctx_hooks.compaction.pipeline import StepReport
    from ctx_hooks.compaction.summary.model_written import WrittenSummary
    from ctx_hooks.conversation.model import Conversation, Message

MESSAGE_BYTES, PART_BYTES = 160, 120
"""What a message and a part of it take beside their texts (measured)."""


@dataclass(frozen=True, slots=True)
class Compaction:
    """The compacted form of the first `length` messages of a history.

    Attributes:
        length: how many messages it stands for.
        messages: what is sent instead of these.
        tokens: the local tokens of `messages`.
        steps: what the steps did.
        reason: why it is larger than its target, None where it is not.
        summary: what a model has written of these messages and stands for the removed ones, None for the extractive summary.
        removes: whether messages were removed, so that a summary has a place.
        handles: name the removed texts that its placeholders refer to.
        settled: how many of `messages` a compaction after this one may begin with.
        settled_length: how many messages of the history these stand for.
    """

    length: int
    messages: tuple[Message, ...]
    tokens: int
    steps: tuple[StepReport, ...] = ()
    reason: str | None = None
    summary: WrittenSummary | None = None
    removes: bool = False
    handles: tuple[str, ...] = ()
    settled: int = 0
    settled_length: int = 0


NONE_YET = Compaction(0, (), 0)


def behind(held: Sequence[Message], whole: Conversation, made: Conversation) -> Conversation:
    """Return the messages that are held of an earlier compaction with what was `made` of the rest, as turns of `whole`."""
    return alternation.kept(whole, whole.with_messages((*held, *made.messages))) if held else made


def settled_in(rest: Conversation, made: Conversation) -> tuple[int, int]:
    """Return how many of the messages that were `made` have settled, and how many of `rest` stand before the others.

    The newest exchanges have not, as far as they are there with all their results and nothing beside their texts.
    """
    places = {id(m.raw): n for n, m in enumerate(made.messages)}
    first, settled = len(rest.messages), len(made.messages)
    for exchange in reversed(rest.exchanges):
        kept = [places.get(id(rest.messages[i].raw), -1) for i in exchange]
        is_system = any(rest.messages[i].role == "system" for i in exchange)
        if is_system or kept != [*range(settled - len(kept), settled)]:
            break
        before, after = (rest.messages[exchange[0] : exchange[-1] + 1], made.messages[kept[0] : settled])
        # A user's message may hold the summary, too: what is compacted later would lack it.
        if _is_shortened(after) or any(a.text != b.text for a, b in zip(before, after, strict=True)):
            break
        first, settled = exchange[0], kept[0]
    return settled, first


def size_bytes(compaction: Compaction) -> int:
    """Return the memory of a compaction: what its messages were read from, their parts, and texts written anew."""
    held = sum(map(getsizeof, compaction.handles))
    for message in compaction.messages:
        held += MESSAGE_BYTES + json_bytes(message.raw)
        for part in message.parts:
            held += PART_BYTES + (getsizeof(part.arguments) if isinstance(part, ToolCall) else 0)
            held += getsizeof(part.text) if isinstance(part, Opaque) else 0
    return held


def _is_shortened(messages: Sequence[Message]) -> bool:
    return any(result.is_cut for message in messages for result in message.results)
