"""From an estimate to an exact fit: a search for the room that a selection may fill.

A selection estimates the cost of lines, and the built conversation also has placeholders and a summary. So `fit` tries:
select, build, count exactly, correct the room. It corrects by slightly more than the error if the size was too large, and by
slightly less if it was too small. Whole lines and exchanges come and go, so the size does not always rise with the room. The
fullest fitting conversation is the result. Until one fits, the room becomes smaller, down to none.

Names from removed text stay without its lines, the names that the assistant used most first. A name has a tenth of the
tokens of the lines around it, and shows which call returns these again.
"""

import re
from collections import Counter as Occurrences
from collections.abc import Callable, Sequence
from typing import TypeAlias

from ctx_hooks.compaction.selection.scoring import Item, identifiers_of
from ctx_hooks.compaction.selection.select import Names, Selection, Selector
from ctx_hooks.compaction.selection.user_words import Position
from ctx_hooks.compaction.summary.extractive import summary_tokens
from ctx_hooks.conversation.model import Conversation, ToolResult
from ctx_hooks.texts.identifiers import is_opaque
from ctx_hooks.tokens.budget import Budget
from ctx_hooks.tokens.counter import Counter
from ctx_hooks.tokens.units import LocalTokens

Build: TypeAlias = Callable[[Selection, Names], Conversation]

ATTEMPTS = 4
"""Of 465 fits of generated and real sessions 61 % are close at the first attempt, 83 % at the second, 87 % at the third; the
others keep the fullest that fitted. Each attempt builds and counts the whole conversation."""
USUAL_SUMMARY_FRACTION = 0.4
"""How much of its allowance the summary usually takes."""
MARGIN_FRACTION = 0.02
"""Cut texts have slightly more tokens per character than whole ones: with this margin the first attempt mostly fits."""
CLOSE_FRACTION = 0.045
"""A fit that leaves less than this of the goal unused is good enough."""
TOO_LARGE_FACTOR, TOO_SMALL_FACTOR = 1.05, 0.8
"""Factors on the measured error that correct the next room: the result must fit, and should be full."""
WIDER_FRACTION = 0.005
"""Each too large attempt gives up this much more of the goal, since only whole lines can go."""
SHARES_OF_REST = (1.0, 0.8, 0.5)
"""Shares of the rest after lines that names try to use: their cost is an estimate."""
NAMES_FRACTION, MOST_NAMES_FRACTION = 0.04, 0.07
"""Shares of the goal: what lines leave for names, and the most that names use."""
CLAUSE_TOKENS = 4
"""Cost of the clause with the source of some names; it is free if the record lists the file anyway."""
LEAST_FIGURE_USES = 2
"""A figure with its unit is listed only if the assistant used it so often; any other name always may be."""
LONGEST_NAME_CHARS = 100
_FIGURE = re.compile(r"\d+[A-Za-z]?")
"""A bare figure does not say what it counts."""
_WORDS = re.compile(r"[A-Za-z]+(?:/[A-Za-z]+)+|\w+://.*")
"""Words with slashes are mostly prose ("yes/no"), and a page has many addresses: listed only if the assistant used them."""
_FOUND = re.compile(r"([^:]*/[^:]*\.\w+):[A-Za-z]\w*")
"""A file name and the text that `grep` puts behind it."""
_MARK = re.compile(r"[/.:#]")


def fit(conversation: Conversation, budget: Budget, selector: Selector, build: Build) -> Conversation:
    """Return the fullest built conversation within the goal, with names in the rest of the room; the smallest if none fits.

    Without tools in the older exchanges names get no room: no call shows their lines again, and a sentence says more.
    """
    if all(item.spoken for item in selector.items):
        return _with_lines(budget, selector, build)[0]
    lines_tokens = LocalTokens(int(budget.goal_tokens * (1 - NAMES_FRACTION)))
    fitted, selection = _with_lines(budget.with_goal(lines_tokens), selector, build)
    most_tokens = int(budget.goal_tokens * MOST_NAMES_FRACTION)
    left_tokens = -budget.excess(fitted)
    if left_tokens < 0:
        return fitted
    for share in SHARES_OF_REST:
        room_tokens = min(most_tokens, int(left_tokens * share))
        named = build(selection, names_of_cut(conversation, selector.items, selection, fitted, budget.counter, room_tokens))
        if budget.excess(named) <= 0:
            return named
    return fitted


def _with_lines(budget: Budget, selector: Selector, build: Build) -> tuple[Conversation, Selection]:
    """Return the fullest conversation within the goal, and its selection."""
    beside_tokens = budget.goal_tokens * MARGIN_FRACTION + summary_tokens(budget.goal_tokens) * USUAL_SUMMARY_FRACTION
    room_tokens = selector.free_tokens - beside_tokens
    planned_tokens = max(room_tokens, 0)
    fullest: tuple[Conversation, Selection] | None = None
    least_unused_tokens = float("inf")
    attempt = 0
    while True:
        attempt += 1
        selection = selector.within(max(room_tokens, 0), planned_tokens)
        built = build(selection, {})
        excess_tokens = budget.excess(built)
        if 0 <= -excess_tokens < least_unused_tokens:
            fullest, least_unused_tokens = (built, selection), -excess_tokens
        is_close = 0 <= -excess_tokens <= CLOSE_FRACTION * budget.goal_tokens
        if fullest is not None and (is_close or attempt >= ATTEMPTS):
            return fullest
        if excess_tokens > 0 and room_tokens <= 0:
            nothing = Selection(frozenset(), frozenset(), {})  # nor answers: another pass would keep fewer of these
            return (build(nothing, {}), nothing) if budget.cut_newest else (built, selection)
        if excess_tokens > 0:
            room_tokens -= excess_tokens * TOO_LARGE_FACTOR + attempt * WIDER_FRACTION * budget.goal_tokens
        else:
            room_tokens -= excess_tokens * TOO_SMALL_FACTOR


def names_of_cut(
    conversation: Conversation,
    items: Sequence[Item],
    selection: Selection,
    left: Conversation,
    counter: Counter,
    room_tokens: int,
) -> Names:
    """Return removed names that nothing in `left` contains, most used first, as many as the room allows."""
    used = Occurrences(name for m in conversation.messages if m.role == "assistant" for name in identifiers_of((m,)))
    seen: Occurrences[str] = Occurrences()
    places: dict[str, Position] = {}
    for item in items:
        seen.update(item.identifiers)
        is_shortened = item.messages in selection.shortened
        if not is_shortened and item.messages not in selection.whole:
            places.update(dict.fromkeys(item.identifiers, (item.messages.start, 0)))
        for source in item.sources:
            i, k = source.position
            seen.update(source.segments.identifiers)
            if not is_shortened or isinstance(conversation.messages[i].parts[k], ToolResult):
                places.update(dict.fromkeys(source.segments.identifiers, source.position))
    shown = {part for name in identifiers_of(left.messages) for part in _parts(name)}
    places = {_FOUND.sub(r"\1", name): place for name, place in places.items() if len(name) <= LONGEST_NAME_CHARS}
    telling = (n for n in places if not (_FIGURE.fullmatch(n) or (n not in used and (_WORDS.fullmatch(n) or is_opaque(n)))))
    listed = (n for n in telling if n not in shown and (not n[0].isdigit() or used[n] >= LEAST_FIGURE_USES))
    found: dict[Position, list[str]] = {}
    longer: set[str] = set()
    for name in sorted(listed, key=lambda n: (n in used, used[n] + seen[n], places[n], n), reverse=True):
        place = places[name]
        room_tokens -= counter.text(f" {name},") + (CLAUSE_TOKENS if place not in found else 0)
        if room_tokens < 0:
            break
        found.setdefault(place, []).append(name)
        longer.update(part for part in _parts(name) if part != name)
    return {place: rest for place, names in found.items() if (rest := [n for n in names if n not in longer])}


def _parts(name: str) -> list[str]:
    """Return a name with its beginnings and endings up to a mark in it: for a path also the file and the folders.

    >>> _parts("src/names.py")
    ['src/names.py', 'src', 'src/names', 'names.py', 'py']
    """
    marks = [found.start() for found in _MARK.finditer(name)] if len(name) <= LONGEST_NAME_CHARS else []
    return [name, *(name[:i] for i in marks), *(name[i + 1 :] for i in marks)]
