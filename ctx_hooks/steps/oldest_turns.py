"""The least useful older exchanges go, and one record says what they were."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_hooks import notices
from ctx_hooks.choice import Selection
from ctx_hooks.invariants import alternation
from ctx_hooks.record import record_of, with_record
from ctx_hooks.selection import Selector
from ctx_hooks.steps import Step
from ctx_hooks.steps.fitting import fit
from ctx_hooks.steps.thinning import thinned

if TYPE_CHECKING:
    from ctx_hooks.budget import Budget
    from ctx_hooks.conversation import Conversation


def _apply(conversation: Conversation, budget: Budget) -> Conversation:
    selector = Selector(conversation, budget)
    older = {i: c.messages for c in selector.candidates for i in c.messages}

    def build(selection: Selection) -> Conversation:
        stay = selection.whole | selection.thinned
        forms = thinned(conversation, selection, budget)
        gone = [m for i, m in enumerate(conversation.messages) if i in older and older[i] not in stay]
        kept = [forms.get(i, m) for i, m in enumerate(conversation.messages) if i not in older or older[i] in stay]
        gone = [m for m in gone if m.text != notices.REMOVED_MESSAGE]
        if gone:
            kept = with_record(kept, record_of(gone, budget), conversation.format, budget.policy.language)
        return alternation.kept(conversation, conversation.with_messages(tuple(kept)))

    return fit(conversation, budget, selector, build, may_remove=True)


STEP = Step("oldest_turns", "the least useful older exchanges gave way; a record says what they were", _apply)
