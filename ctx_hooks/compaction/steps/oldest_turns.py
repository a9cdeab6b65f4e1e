"""Older results keep spans that later steps may name; the least useful exchanges go, and a summary says what they were."""

from __future__ import annotations

from bisect import bisect
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import TYPE_CHECKING

from ctx_hooks.compaction.selection.apply import Shortener
from ctx_hooks.compaction.selection.fit import fit
from ctx_hooks.compaction.selection.select import Selection, Selector
from ctx_hooks.compaction.steps import Step
from ctx_hooks.compaction.summary.actions import actions_of
from ctx_hooks.compaction.summary.extractive import Removed, bare_summary, brief_summary, extractive_summary, written_form
from ctx_hooks.compaction.summary.placing import most_unanswered, unanswered_turns, with_summary
from ctx_hooks.conversation import placeholders
from ctx_hooks.conversation.exchanges import is_request
from ctx_hooks.conversation.protection import newest_words
from ctx_hooks.message_rules import alternation

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import TypeAlias

    from ctx_hooks.compaction.selection.names import Names
    from ctx_hooks.compaction.summary.actions import Action
    from ctx_hooks.conversation.model import Conversation
    from ctx_hooks.tokens.budget import Budget

    Summarise: TypeAlias = Callable[[Removed, Budget], str]


@dataclass(frozen=True, slots=True)
class Form:
    """A form of what stands for removed messages.

    Attributes:
        summarise: makes the summary.
        fills_gaps: whether users' turns stay whose answers are gone, with a line that says what these were.
        newest_first: whether the newest exchanges stay, whatever the older ones are worth.
    """

    summarise: Summarise
    fills_gaps: bool = True
    newest_first: bool = False


def with_written(text: str) -> Step:
    """Return the step that puts a model's summary, `text`, for older exchanges: the newest stay whole."""
    form = Form(partial(written_form, text), fills_gaps=False, newest_first=True)
    return Step(STEP.name, "older exchanges gave way; a model's summary says what they were", partial(_apply, (form,)))


def _apply(forms: tuple[Form, ...], conversation: Conversation, budget: Budget) -> Conversation:
    """Remove what has to go, with the first form of a summary that fits: the whole, what matters most, a line.

    Where none does, what matters most stays: it is small, and what is too large is protected. The line is no choice if the
    goal is a wish, for which the newest results are not cut: users' words are worth more.
    """
    selector = Selector(conversation, budget, newest_first=forms[0].newest_first)
    shortener = Shortener(conversation, selector.items, budget)
    actions = actions_of(conversation.messages)
    fitted = []
    for form in forms if budget.cut_newest else forms[:2]:
        fitted.append(_fitted(form, conversation, budget, selector, shortener, actions))
        if budget.excess(fitted[-1]) <= 0:
            return fitted[-1]
    return fitted[min(len(fitted) - 1, 1)]


def _fitted(
    form: Form,
    conversation: Conversation,
    budget: Budget,
    selector: Selector,
    shortener: Shortener,
    actions: tuple[Action, ...],
) -> Conversation:
    messages = conversation.messages

    @cache  # one attempt differs from the next in lines, and seldom in the messages that go
    def told_of(gone: frozenset[int]) -> tuple[str, Mapping[int, str]]:
        order = [i for i in sorted(gone) if messages[i].text != placeholders.REMOVED_MESSAGE]
        if not order:
            return "", {}
        unanswered, told = unanswered_turns(conversation, gone, budget) if form.fills_gaps else ({}, ())
        places = {i: n for n, i in enumerate(order)}
        words = {(places[i], k): spans for (i, k), spans in selector.words.items() if i in places}
        done = tuple([action for action in actions if action.index in gone])
        later = tuple([action for action in actions if action.index > order[0] and action.index not in gone])
        left = [i for i in range(order[0], order[-1]) if i not in gone and is_request(messages[i])]
        turns = {bisect(order, i): messages[i] for i in left}
        told_places = frozenset(places[i] for i in told if i in places)
        removed = Removed(tuple([messages[i] for i in order]), words, done, later, told_places, turns)
        return form.summarise(removed, budget), unanswered

    def build(chosen: Selection, named: Names) -> Conversation:
        most = most_unanswered(budget) if form.fills_gaps else 0
        selection = _with_questions(chosen, conversation, selector, most)
        stay = selection.whole | selection.shortened
        gone = frozenset(i for item in selector.items if item.messages not in stay for i in item.messages)
        forms = shortener.messages(selection, named)
        summary, unanswered = told_of(gone)
        kept = [forms.get(i, m) for i, m in enumerate(messages) if i not in gone]
        if summary:
            summary = placeholders.with_names(summary, named.get(None, ()), budget.policy.language)
            kept = with_summary(conversation, forms, gone, summary, unanswered, budget.policy.language)
        return alternation.kept(conversation, conversation.with_messages(tuple(kept)))

    return fit(conversation, budget, selector, build)


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


STEP = Step(
    "oldest_turns",
    "the least useful older exchanges gave way; an extractive summary says what they were",
    partial(_apply, (Form(extractive_summary), Form(brief_summary, fills_gaps=False), Form(bare_summary, fills_gaps=False))),
)
