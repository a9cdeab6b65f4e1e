"""The least useful older exchanges go, and one record says what they were."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_hooks.choice import Selection
from ctx_hooks.record import record_of
from ctx_hooks.selection import Selector
from ctx_hooks.steps import Step
from ctx_hooks.steps.fitting import fit
from ctx_hooks.steps.thinning import thinned
from ctx_hooks.wire import CODECS

if TYPE_CHECKING:
    from ctx_hooks.budget import Budget
    from ctx_hooks.conversation import Conversation, Message


def _apply(conversation: Conversation, budget: Budget) -> Conversation:
    selector = Selector(conversation, budget)
    older = {i: c.messages for c in selector.candidates for i in c.messages}

    def build(selection: Selection) -> Conversation:
        stay = selection.whole | selection.thinned
        forms = thinned(conversation, selection, budget)
        gone = [m for i, m in enumerate(conversation.messages) if i in older and older[i] not in stay]
        kept = [forms.get(i, m) for i, m in enumerate(conversation.messages) if i not in older or older[i] in stay]
        if gone:
            text = record_of(gone, budget)
            kept.insert(_record_place(kept), CODECS[conversation.format].user_message(text))
        return conversation.with_messages(tuple(kept))

    return fit(conversation, budget, selector, build, may_remove=True)


def _record_place(messages: list[Message]) -> int:
    """Return the index behind the leading system messages."""
    return next((i for i, m in enumerate(messages) if m.role != "system"), len(messages))


STEP = Step("oldest_turns", "the least useful older exchanges gave way; a record says what they were", _apply)
