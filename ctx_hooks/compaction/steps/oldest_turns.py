"""Older results keep spans that later steps may name; records replace the least useful exchanges."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TypeAlias

from ctx_hooks.compaction.selection.apply import Shortener
from ctx_hooks.compaction.selection.fit import fit
from ctx_hooks.compaction.selection.select import Selection, Selector
from ctx_hooks.compaction.steps import Step
from ctx_hooks.compaction.summary.actions import actions_of
from ctx_hooks.compaction.summary.done import Removed
from ctx_hooks.compaction.summary.extractive import (
    FILES_TOKENS,
    SHORTER_TOKENS,
    bare_records,
    extractive_records,
    most_unanswered,
    written_records,
)
from ctx_hooks.compaction.summary.placing import gaps_of, with_records
from ctx_hooks.conversation import placeholders
from ctx_hooks.conversation.conversation import Conversation
from ctx_hooks.conversation.model import is_request
from ctx_hooks.message_rules import alternation
from ctx_hooks.tokens.budget import Budget

Record: TypeAlias = Callable[[Removed, Budget], Mapping[range, str]]  # by the gap that each fills


def with_written(text: str) -> Step:
    """Return the step that replaces older exchanges by a model's summary, `text`; the newest stay whole."""
    apply = partial(_apply, (partial(written_records, text),), newest_first=True)
    return Step(STEP.name, "older exchanges gave way; a model's summary says what they were", apply)


def _apply(
    forms: tuple[Record, ...], conversation: Conversation, budget: Budget, *, newest_first: bool = False
) -> Conversation:
    """Remove older exchanges, with the first form of records that fits; if none fits, use a small form.

    If the newest results may not be cut for the goal, bare records are not tried: what was said and done is worth more.
    """
    messages, language = conversation.messages, budget.policy.language
    selector = Selector(conversation, budget, newest_first=newest_first)
    shortener = Shortener(conversation, selector.items, budget)
    actions = actions_of(messages)

    def build(record: Record, chosen: Selection) -> Conversation:
        most = most_unanswered(budget) if record is extractive_records else 0
        selection = _with_questions(chosen, conversation, selector, most)
        stay = selection.whole | selection.shortened
        gone = frozenset(i for item in selector.items if item.messages not in stay for i in item.messages)
        gaps = [g for g in gaps_of(gone) if any(messages[i].text not in placeholders.REMOVED_MESSAGES for i in g)]
        removed = Removed(messages, gaps, selector.words, actions)
        records = record(removed, budget) if gaps else {}
        kept = with_records(conversation, shortener.messages(selection), gone, records, language)
        return alternation.kept(conversation, conversation.with_messages(tuple(kept)), language)

    fitted = []
    for record in forms if budget.cut_newest else forms[:3]:
        fitted.append(fit(budget, selector, partial(build, record)))
        if budget.excess(fitted[-1]) <= 0:
            return fitted[-1]
    return fitted[min(len(fitted) - 1, 2)]


def _with_questions(selection: Selection, conversation: Conversation, selector: Selector, most: int) -> Selection:
    """Return the selection with users' turns that a summary would quote: those before the first answer, the newest others.

    Questions of kept answers are always added, and the newest words beside tool results; of turns without an answer at most
    `most`. With 0, turns before the first answer get no preference.
    """
    stay = conversation.references | {conversation.newest_words}
    quoted = {i for i, _ in selector.words}
    gone = {item.messages for item in selector.items} - selection.whole - selection.shortened
    questions = {exchange for exchange in gone if not stay.isdisjoint(exchange)}
    roles = [m.role for m in conversation.messages]
    opening = roles.index("assistant") if most and "assistant" in roles else 0
    is_answer = False
    for exchange in reversed(conversation.exchanges):
        if exchange not in gone:
            is_answer = conversation.messages[exchange[0]].role == "assistant"
        elif exchange[0] in quoted and is_request(conversation.messages[exchange[0]]):
            if is_answer or exchange[0] < opening or most > 0:
                questions.add(exchange)
                most -= not is_answer
            is_answer = False
    return replace(selection, shortened=selection.shortened | questions)


FORMS: tuple[Record, ...] = (
    extractive_records,
    partial(extractive_records, most_tokens=SHORTER_TOKENS, files_tokens=FILES_TOKENS),
    partial(extractive_records, most_tokens=0, files_tokens=FILES_TOKENS),
    partial(extractive_records, most_tokens=0),
    bare_records,
)
WHY = "the least useful older exchanges gave way; records say what they were"
STEP = Step("oldest_turns", WHY, partial(_apply, FORMS))
TO_TARGET = Step("oldest_turns", WHY, partial(_apply, FORMS[:2]))
"""For target tokens below the budget: the record lists actions even if it exceeds the target."""
BRIEF = Step("oldest_turns", WHY, partial(_apply, FORMS[2:4]))
"""For target tokens, if TO_TARGET exceeds the budget: as many of the users' words as a small room allows."""
SMALLEST = Step("oldest_turns", WHY, partial(_apply, FORMS[-1:]))
"""For a request that fits with no form: its provider may still accept the smallest one."""
