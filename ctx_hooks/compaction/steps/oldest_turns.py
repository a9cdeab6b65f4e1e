"""Older results keep spans that later steps may name; the least useful exchanges go, and records say what they were."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TypeAlias

from ctx_hooks.compaction.selection.apply import Shortener
from ctx_hooks.compaction.selection.fit import fit
from ctx_hooks.compaction.selection.select import Names, Selection, Selector
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
from ctx_hooks.conversation.exchanges import is_request
from ctx_hooks.conversation.model import Conversation
from ctx_hooks.conversation.protection import newest_words
from ctx_hooks.message_rules import alternation
from ctx_hooks.tokens.budget import Budget

Record: TypeAlias = Callable[[Removed, Budget], Mapping[range, str]]
"""Makes the records, by the gap that each stands for."""


def with_written(text: str) -> Step:
    """Return the step that puts a model's summary, `text`, for older exchanges: the newest stay whole."""
    apply = partial(_apply, (partial(written_records, text),), newest_first=True)
    return Step(STEP.name, "older exchanges gave way; a model's summary says what they were", apply)


def _apply(
    forms: tuple[Record, ...], conversation: Conversation, budget: Budget, *, newest_first: bool = False
) -> Conversation:
    """Remove what has to go, with the first of the forms of records that fits; with none, what matters most stays.

    That is small, and what is too large is protected. For a goal for which the newest results are not cut, bare records are
    not tried: what was said and done is worth more. With the first form, users' turns stay whose answers are gone.
    """
    messages, language = conversation.messages, budget.policy.language
    selector = Selector(conversation, budget, newest_first=newest_first)
    shortener = Shortener(conversation, selector.items, budget)
    actions = actions_of(messages)

    def build(record: Record, chosen: Selection, named: Names) -> Conversation:
        most = most_unanswered(budget) if record is extractive_records else 0
        selection = _with_questions(chosen, conversation, selector, most)
        stay = selection.whole | selection.shortened
        gone = frozenset(i for item in selector.items if item.messages not in stay for i in item.messages)
        gaps = [g for g in gaps_of(gone) if any(messages[i].text != placeholders.REMOVED_MESSAGE for i in g)]
        named_there = {p: names for p, names in named.items() if any(p[0] in gap for gap in gaps)}
        removed = Removed(messages, gaps, selector.words, actions, named_there)
        records = record(removed, budget) if gaps else {}
        kept = with_records(conversation, shortener.messages(selection, named), gone, records, language)
        return alternation.kept(conversation, conversation.with_messages(tuple(kept)))

    fitted = []
    for record in forms if budget.cut_newest else forms[:3]:
        fitted.append(fit(conversation, budget, selector, partial(build, record)))
        if budget.excess(fitted[-1]) <= 0:
            return fitted[-1]
    return fitted[min(len(fitted) - 1, 2)]


def _with_questions(selection: Selection, conversation: Conversation, selector: Selector, most: int) -> Selection:
    """Return the selection with users' turns that a summary would quote: those before the first answer, the newest others.

    Those that what stays answers do so in any case, and the newest words beside tool results.

    Args:
        selection: what stays.
        conversation: of which it is.
        selector: knows what users have said.
        most: how many turns without an answer may stay; with 0 no turn before the first answer stays for its own sake.
    """
    newest = newest_words(conversation)
    quoted = {i for i, _ in selector.words}
    gone = {item.messages for item in selector.items} - selection.whole - selection.shortened
    questions = {exchange for exchange in gone if newest in exchange}
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
"""For target tokens, which a larger budget stands behind: what was done is told although they are exceeded."""
BRIEF = Step("oldest_turns", WHY, partial(_apply, FORMS[2:4]))
"""For target tokens, if that exceeds the budget: as many of users' words as a small room holds."""
SMALLEST = Step("oldest_turns", WHY, partial(_apply, FORMS[-1:]))
"""For a request that fits with no form: its provider may take it if it is as small as it can be."""
