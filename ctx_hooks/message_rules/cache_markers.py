"""At most four cache markers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ctx_hooks.formats.fields import CACHE_MARKER, MAPPINGS
from ctx_hooks.message_rules.rule import Repair, Rule

if TYPE_CHECKING:
    from ctx_hooks.conversation.model import Conversation, Part

MOST_MARKERS = 4


class CacheMarkers(Rule):
    """No more than four blocks carry a cache marker.

    Anthropic: "A maximum of 4 blocks with cache_control may be provided. Found 5." Markers on system text and tools
    count too and are kept; the earliest markers on messages are removed.
    """

    name = "cache_markers"

    def repair(self, conversation: Conversation, *, continues: bool) -> tuple[Conversation, tuple[Repair, ...]]:
        """Remove the earliest markers; the blocks stay."""
        del continues
        surplus = _surplus(conversation)
        messages = list(conversation.messages)
        for i, k in surplus:
            parts = list(messages[i].parts)
            parts[k] = _unmarked(parts[k])
            messages[i] = replace(messages[i], parts=tuple(parts), edited=True)
        return conversation.with_messages(tuple(messages)), tuple(
            Repair(self.name, i, "edited", "more than four cache markers") for i, _ in surplus
        )


def _surplus(conversation: Conversation) -> list[tuple[int, int]]:
    marked = [
        (i, k)
        for i, m in enumerate(conversation.messages)
        for k, p in enumerate(m.parts)
        if p.raw is not None and isinstance(p.raw, MAPPINGS) and p.raw.get(CACHE_MARKER) is not None
    ]
    return marked[: max(0, len(marked) + conversation.preamble_markers - MOST_MARKERS)]


def _unmarked(part: Part) -> Part:
    return replace(part, raw={k: v for k, v in part.raw.items() if k != CACHE_MARKER})
