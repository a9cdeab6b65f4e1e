"""A greedy knapsack: of the older exchanges, what has the most value for its tokens comes first.

What can be kept are lines (`Lines`). The cost of a line is its tokens; before the first line of an exchange its frame has to
be paid, which is what stays of it without any line. The value of a line is the sum of the values of the identifiers in it
that nothing before it shows, and of its relevance to the newest request; the frame has the identifiers of the calls.

All lines are put in one order, by value per token, and what a room holds is its beginning. An identifier counts for the
first line that shows it: who is first depends on the order, and the order on what counts for whom. So a first order, for
which every identifier counts everywhere, is corrected by the values that it gives, and then once more.

A frame is taken for the sake of its lines. It is placed at the best value per token that it reaches together with the best
of them, as many as raise it, and these come directly behind it: of more value for themselves, they cannot come before it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from ctx_hooks.compaction.selection.lines import Lines
    from ctx_hooks.compaction.selection.relevance import Floats
    from ctx_hooks.compaction.selection.segments import Integers

SEEN_VALUE = 1.0
"""The value of an identifier that nothing kept shows yet: the unit of all values."""
USED_VALUE = 9.0
"""Its value when the assistant has used it, until a kept call or answer of the assistant names it. From the middle of real
sessions, the assistant's next answers name 13.8 % of the identifiers that it has used before, and 1.6 % of those that it
was only shown: 8.8 times as many."""
REQUEST_VALUE = 2.0
"""The value of the line that fits the newest request best: more than an identifier that was only shown, far less than
one that was used, since words of a question also stand in much that does not answer it."""
RECENCY_VALUE = 0.5
"""How much more value a line of just now has than the same line of long ago: it decides between equals. The newest
exchanges are kept whole anyway, before any line is weighed."""
CORRECTIONS = 2
"""How often the order is made anew from the values that it gave."""
REFUSALS = 50
"""After so many lines that the room no longer holds it counts as spent: a shorter line may still fit."""


@dataclass(frozen=True, slots=True)
class Values:
    """What the identifiers are worth that nothing kept brings yet, by number.

    Attributes:
        shown: to the first line that shows one; a frame that names it before then has as much.
        named: to the first line or frame beside that: the assistant is then seen to name it.
    """

    shown: Floats
    named: Floats

    @classmethod
    def of(cls, lines: Lines, used: Integers) -> Values:
        """Return the values while nothing is kept; `used` are the identifiers that the assistant has used."""
        named = np.zeros(len(lines.numbers))
        named[used] = USED_VALUE - SEEN_VALUE
        return cls(np.full(len(lines.numbers), SEEN_VALUE), named)

    def without(self, shown: Integers, named: Integers) -> Values:
        """Return the values after some identifiers have been shown, and others named by the assistant."""
        left = Values(self.shown.copy(), self.named.copy())
        left.shown[shown] = left.named[shown] = left.named[named] = 0.0
        return left


def ordered(lines: Lines, values: Values, weights: Floats, *, frames_are_paid: bool) -> Integers:
    """Return the rows of `lines` that have any value, first what has most for its tokens.

    Args:
        lines: what can be taken.
        values: of the identifiers in it.
        weights: of each item: by how much its lines count more than those of others; of weight 0 none is taken.
        frames_are_paid: whether the exchanges stay in any case: their frames are not among what is taken.
    """
    bonus = REQUEST_VALUE * lines.relevance
    value = lines.by_row((values.shown + values.named)[lines.name])
    order = _by_density(lines, bonus + value, weights, frames_are_paid=frames_are_paid)
    for _ in range(CORRECTIONS):
        value = _added(lines, values, order)
        order = _by_density(lines, bonus + value, weights, frames_are_paid=frames_are_paid)
    return order


def _by_density(lines: Lines, value: Floats, weights: Floats, *, frames_are_paid: bool) -> Integers:
    """Return the rows of any value, those with the most per token first, and of equal ones the frame before its lines."""
    density = weights[lines.item] * _density(lines, value, frames_are_paid=frames_are_paid)
    order = np.argsort(-density, kind="stable")
    return order[density[order] > 0]


def _density(lines: Lines, value: Floats, *, frames_are_paid: bool) -> Floats:
    """Return the value per token at which each row is placed."""
    density: Floats = value / lines.tokens
    if frames_are_paid:
        density[: lines.frames] = 0.0
        return density
    alone = density.copy()
    alone[: lines.frames] = np.inf
    # Item by item: its frame, then its lines, the best first. Small integers are sorted faster, by their digits.
    grouped = np.lexsort((-alone, lines.item.astype(np.min_scalar_type(lines.frames))))
    starts = np.searchsorted(lines.item[grouped], np.arange(lines.frames))
    values, tokens = np.cumsum(value[grouped]), np.cumsum(lines.tokens[grouped])
    item = lines.item[grouped]
    together = (values - (values - value[grouped])[starts][item]) / (tokens - (tokens - lines.tokens[grouped])[starts][item])
    best = np.maximum.reduceat(together, starts)
    density[: lines.frames] = best
    np.minimum(density, best[lines.item], out=density)
    return density


def _added(lines: Lines, values: Values, order: Integers) -> Floats:
    """Return the value of the identifiers that each row adds to those before it in `order`."""
    rows = len(lines.item)
    place = np.full(rows, rows)
    place[order] = np.arange(len(order))
    places = place[lines.holder]
    first_shown = np.full(len(lines.numbers), rows)
    np.minimum.at(first_shown, lines.name[~lines.in_frame], places[~lines.in_frame])
    first_named = np.full(len(lines.numbers), rows)
    np.minimum.at(first_named, lines.name, places)
    shows = np.where(lines.in_frame, places < first_shown[lines.name], places == first_shown[lines.name])
    names = places == first_named[lines.name]
    return lines.by_row(shows * values.shown[lines.name] + names * values.named[lines.name])


def within(room_tokens: float, lines: Lines, order: Integers) -> tuple[Integers, float]:
    """Return what a room holds of the rows in `order`, and the tokens that are left of it.

    What does not fit is passed over, a frame with all its lines; so is the frame of which the best line does not fit.
    """
    taken = []
    for _ in range(REFUSALS):
        # No row costs less than a token: so many at most fit, and the first that does not is among them.
        spent_tokens = np.cumsum(lines.tokens[order[: max(1, int(room_tokens) + 1)]])
        fitting = int(np.searchsorted(spent_tokens, room_tokens, side="right"))
        if 0 < fitting < len(order) and order[fitting - 1] == lines.item[order[fitting]]:
            fitting -= 1
        taken.append(order[:fitting])
        room_tokens -= spent_tokens[fitting - 1] if fitting else 0.0
        if fitting == len(order):
            return np.concatenate(taken), room_tokens
        refused, order = order[fitting], order[fitting + 1 :]
        if refused < lines.frames:
            order = order[lines.item[order] != lines.item[refused]]
    return np.concatenate(taken), 0.0
