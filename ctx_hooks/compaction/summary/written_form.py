"""A model's summary as it stands in a compaction: quoted, with what it lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_hooks.compaction.summary.extractive import Removed, sections, whole_of
from ctx_hooks.conversation import placeholders

if TYPE_CHECKING:
    from ctx_hooks.tokens.budget import Budget


def written_form(text: str, removed: Removed, budget: Budget) -> str:
    """Return what stands for the removed messages: a heading, the model's summary, and the extracts that it lacks.

    So neither a poor summary loses what is named in the deterministic form, nor one that was written some turns ago what
    came since.
    """
    language = budget.policy.language
    extracts = sections(removed, budget, stated=text)
    lines = [
        placeholders.written_heading(len(removed.messages), language, whole_of(removed.messages, budget)),
        placeholders.block_quoted(text),
    ]
    return "\n".join((*lines, placeholders.extracts_heading(language), *extracts) if extracts else lines)
