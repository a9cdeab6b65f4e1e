"""The least useful older exchanges go, and a summary says what they were."""

from __future__ import annotations

from functools import cache, partial
from typing import TYPE_CHECKING

from ctx_hooks.compaction.selection.apply import Shortener
from ctx_hooks.compaction.selection.fit import fit
from ctx_hooks.compaction.selection.select import Selection, Selector
from ctx_hooks.compaction.steps import Step
from ctx_hooks.compaction.summary.extractive import extractive_summary, whole_of, with_summary
from ctx_hooks.compaction.summary.written_form import written_form
from ctx_hooks.conversation import placeholders
from ctx_hooks.message_rules import alternation

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeAlias

    from ctx_hooks.conversation.model import Conversation, Message
    from ctx_hooks.tokens.budget import Budget

    Summarise: TypeAlias = Callable[[Sequence[Message], Budget], str]


def with_written(text: str) -> Step:
    """Return the step that puts a model's summary, `text`, for the removed exchanges."""
    why = "the least useful older exchanges gave way; a model's summary says what they were"
    return Step(STEP.name, why, partial(_apply, partial(written_form, text)))


def _apply(summarise: Summarise, conversation: Conversation, budget: Budget) -> Conversation:
    """Remove what has to go; where the summary alone is what does not fit, one line says that messages are gone."""
    selector = Selector(conversation, budget)
    shortener = Shortener(conversation, selector.items, budget)
    fitted = _fitted(summarise, conversation, budget, selector, shortener)
    if budget.excess(fitted) <= 0:
        return fitted
    bare = _fitted(_without_summary, conversation, budget, selector, shortener)
    return bare if budget.excess(bare) <= 0 else fitted


def _fitted(
    summarise: Summarise, conversation: Conversation, budget: Budget, selector: Selector, shortener: Shortener
) -> Conversation:
    messages = conversation.messages

    @cache  # one attempt differs from the next in lines, and seldom in the messages that go
    def summary_of(gone: frozenset[int]) -> str:
        removed = [messages[i] for i in sorted(gone) if messages[i].text != placeholders.REMOVED_MESSAGE]
        return summarise(removed, budget) if removed else ""

    def build(selection: Selection) -> Conversation:
        stay = selection.whole | selection.shortened
        gone = frozenset(i for item in selector.items if item.messages not in stay for i in item.messages)
        forms = shortener.messages(selection)
        kept = [forms.get(i, m) for i, m in enumerate(messages) if i not in gone]
        if summary := summary_of(gone):
            kept = with_summary(kept, summary, conversation.format, budget.policy.language)
        return alternation.kept(conversation, conversation.with_messages(tuple(kept)))

    return fit(conversation, budget, selector, build, may_remove=True)


def _without_summary(removed: Sequence[Message], budget: Budget) -> str:
    return placeholders.dropped(len(removed), budget.policy.language, whole_of(removed, budget))


STEP = Step(
    "oldest_turns",
    "the least useful older exchanges gave way; an extractive summary says what they were",
    partial(_apply, extractive_summary),
)
