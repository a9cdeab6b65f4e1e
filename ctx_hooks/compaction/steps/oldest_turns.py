"""Older results keep spans that later steps may name; records replace the least useful exchanges."""

from collections.abc import Callable, Mapping
from functools import partial
from itertools import pairwise
from typing import TypeAlias

from ctx_hooks.compaction.selection.apply import Shortener
from ctx_hooks.compaction.selection.select import Selection, Selector, fit
from ctx_hooks.compaction.steps import Step
from ctx_hooks.compaction.summary.actions import actions_of
from ctx_hooks.compaction.summary.extractive import FILES_TOKENS, SHORTER_TOKENS, Removed
from ctx_hooks.compaction.summary.placing import (
    bare_records,
    extractive_records,
    gaps_of,
    with_records,
    written_records,
)
from ctx_hooks.conversation.conversation import Conversation
from ctx_hooks.conversation.model import REMOVED_MESSAGE
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
    """Remove older exchanges, with the first form of records that fits, else with the one that leaves the least."""
    messages, language = conversation.messages, budget.policy.language
    selector = Selector(conversation, budget, newest_first=newest_first)
    shortener = Shortener(conversation, selector.items, budget)
    actions = actions_of(messages)
    named = conversation.references | {conversation.newest_words}
    quoted = {i for i, _ in selector.words}

    def build(record: Record, chosen: Selection) -> Conversation:
        stay = {*chosen.whole, *chosen.shortened, *(o.messages for o in selector.items if not named.isdisjoint(o.messages))}
        older = {item.messages for item in selector.items}
        # The question of an answer that stays does, too: its record would cost more.
        stay.update(q for q, a in pairwise(conversation.exchanges) if q[0] in quoted and (a in stay or a not in older))
        gone = frozenset(i for exchange in older - stay for i in exchange)
        gaps = [g for g in gaps_of(gone) if any(messages[i].text not in REMOVED_MESSAGE.values() for i in g)]
        removed = Removed(messages, gaps, selector.words, actions)
        records = record(removed, budget) if gaps else {}
        kept = with_records(
            conversation, shortener.messages((stay & older) - chosen.whole, chosen.lines), gone, records, language
        )
        return alternation.kept(conversation, conversation.with_messages(tuple(kept)), language)

    fitted = []
    for record in forms:
        fitted.append(fit(budget, selector, partial(build, record)))
        if budget.excess(fitted[-1]) <= 0:
            break
    return min(fitted, key=budget.excess)


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
