"""The least useful older exchanges go, and a summary says what they were."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ctx_hooks.compaction.selection.apply import shortened_messages
from ctx_hooks.compaction.selection.fit import fit
from ctx_hooks.compaction.selection.select import Selection, Selector
from ctx_hooks.compaction.steps import Step
from ctx_hooks.compaction.summary.extractive import extractive_summary, with_summary
from ctx_hooks.compaction.summary.written_form import written_form
from ctx_hooks.conversation import placeholders
from ctx_hooks.message_rules import alternation

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeAlias

    from ctx_hooks.conversation.model import Conversation
    from ctx_hooks.tokens.budget import Budget

    Summarise: TypeAlias = Callable[[Conversation, Sequence[int], Budget], str]


def with_written(text: str, unsummarised: int) -> Step:
    """Return the step that puts a model's summary for the removed exchanges.

    Args:
        text: the summary.
        unsummarised: how many of the newest messages it does not stand for.
    """
    why = "the least useful older exchanges gave way; a model's summary says what they were"
    return Step(STEP.name, why, partial(_apply, partial(written_form, text, unsummarised)))


def _extracted(conversation: Conversation, removed: Sequence[int], budget: Budget) -> str:
    return extractive_summary([conversation.messages[i] for i in removed], budget)


def _apply(summarise: Summarise, conversation: Conversation, budget: Budget) -> Conversation:
    selector = Selector(conversation, budget)
    older = {i: c.messages for c in selector.items for i in c.messages}

    def build(selection: Selection) -> Conversation:
        stay = selection.whole | selection.shortened
        forms = shortened_messages(conversation, selection, budget)
        gone = [i for i in older if older[i] not in stay]
        kept = [forms.get(i, m) for i, m in enumerate(conversation.messages) if i not in older or older[i] in stay]
        gone = [i for i in gone if conversation.messages[i].text != placeholders.REMOVED_MESSAGE]
        if gone:
            summary = summarise(conversation, gone, budget)
            kept = with_summary(kept, summary, conversation.format, budget.policy.language)
        return alternation.kept(conversation, conversation.with_messages(tuple(kept)))

    return fit(conversation, budget, selector, build, may_remove=True)


STEP = Step(
    "oldest_turns",
    "the least useful older exchanges gave way; an extractive summary says what they were",
    partial(_apply, _extracted),
)
