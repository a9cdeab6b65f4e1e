"""The least useful older exchanges go, and one record says what they were."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_hooks import notices
from ctx_hooks.choice import Selection
from ctx_hooks.conversation import Text, is_request
from ctx_hooks.invariants import alternation
from ctx_hooks.record import record_of
from ctx_hooks.selection import Selector
from ctx_hooks.steps import Step
from ctx_hooks.steps.fitting import fit
from ctx_hooks.steps.thinning import thinned
from ctx_hooks.wire import CODECS

if TYPE_CHECKING:
    from ctx_hooks.budget import Budget
    from ctx_hooks.conversation import Conversation, Format, Message
    from ctx_hooks.policy.settings import Language


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
            kept = _with_record(kept, record_of(gone, budget), conversation.format, budget.policy.language)
        return alternation.kept(conversation, conversation.with_messages(tuple(kept)))

    return fit(conversation, budget, selector, build, may_remove=True)


def _with_record(messages: list[Message], record: str, fmt: Format, language: Language) -> list[Message]:
    """Return the messages with the record behind the leading system messages.

    It opens the user's message that comes there, so that no two messages of the user's stand beside each other, or is a
    message of its own: what is pinned, or said by another agent, is left alone.
    """
    place = next((i for i, m in enumerate(messages) if m.role != "system"), len(messages))
    first = messages[place] if place < len(messages) else None
    if first is None or not is_request(first) or first.pinned or first.name is not None:
        return [*messages[:place], CODECS[fmt].user_message(record), *messages[place:]]
    opened = _opened(first, f"{record}\n{notices.record_end(language)}\n")
    return [*messages[:place], opened, *messages[place + 1 :]]


def _opened(message: Message, text: str) -> Message:
    """Return the user's message with `text` before the user's words, in the manner of its content."""
    if isinstance(message.raw.get("content"), str):
        return message.with_parts((Text(f"{text}\n{message.text}"),))
    return message.with_parts((Text(text), *message.parts))


STEP = Step("oldest_turns", "the least useful older exchanges gave way; a record says what they were", _apply)
