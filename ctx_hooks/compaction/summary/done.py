"""The actions in removed messages, as entries of their record: files changed and read, failures, commands, the plan."""

from bisect import bisect_right
from collections import Counter as Occurrences
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from ctx_hooks.compaction.summary.actions import Action, still_failing
from ctx_hooks.conversation import placeholders
from ctx_hooks.conversation.model import Message
from ctx_hooks.policy.settings import Language

Entry: TypeAlias = tuple[int, str]
"""Index of a message, and the text of its entry."""


@dataclass(frozen=True, slots=True)
class Removed:
    """The messages that records replace.

    Attributes:
        messages: all messages of the conversation.
        gaps: the ranges of the removed ones, in order.
        words: the spans of users' texts that stay, by index of the message and of the part in it.
        actions: the actions in removed and in kept messages: a kept one may have fixed a failure.
    """

    messages: Sequence[Message]
    gaps: Sequence[range]
    words: Mapping[tuple[int, int], Sequence[tuple[int, int]]]
    actions: Sequence[Action]

    def gap(self, i: int) -> int:
        """Return the number of the gap of the message `i`, -1 if it was not removed."""
        number = bisect_right(self.gaps, i, key=lambda gap: gap.start) - 1
        return number if number >= 0 and i in self.gaps[number] else -1


def done_in(removed: Removed, language: Language) -> dict[str, list[Entry]]:
    """Return the entries of each section, in order; a plan does not count if a kept message has a newer one."""
    gone = [a for a in removed.actions if removed.gap(a.index) >= 0]
    first = removed.gaps[0].start if removed.gaps else 0
    failing = [a for a in still_failing([a for a in removed.actions if a.index >= first]) if removed.gap(a.index) >= 0]
    plans = [a for a in removed.actions if a.kind == "planned"][-1:]
    return {
        "changed": _changed(gone, set(map(id, failing)), language),
        "failing": list(map(_ended, failing)),
        "planned": [(a.index, placeholders.spoken(a.what)) for a in plans if a in gone],
        "ran": _ran(gone),
        "read": _read(gone),
    }


def _changed(actions: Sequence[Action], failing: Collection[int], language: Language) -> list[Entry]:
    """Return each changed file once, at its last change, with the number of changes and whether the last one failed."""
    changes = [(file, a) for a in actions if a.kind == "changed" for file in a.files]
    times = Occurrences(file for file, _ in changes)
    return [
        (
            a.index,
            placeholders.spoken(file)
            + f" (x{times[file]})" * (times[file] > 1)
            + f" ({placeholders.FAILED[language]}: {placeholders.quoted(a.outcome)})" * (id(a) in failing),
        )
        for file, a in _last(changes)
    ]


def _last(found: Sequence[tuple[Any, Action]]) -> list[tuple[Any, Action]]:
    """Return each name once, at its last place."""
    return [found[n] for n in sorted({name: n for n, (name, _) in enumerate(found)}.values())]


def _ran(actions: Sequence[Action]) -> list[Entry]:
    """Return each command once, at its last run, with how it ended, unless that run is known to have failed."""
    return [_ended(a) for _, a in _last([(a.commands or a.what, a) for a in actions if a.kind == "ran"]) if not a.failed]


def _ended(action: Action) -> Entry:
    outcome = f": {placeholders.quoted(action.outcome)}" if action.outcome else ""
    return action.index, placeholders.spoken(action.what) + outcome


def _read(actions: Sequence[Action]) -> list[Entry]:
    changed = {file for a in actions if a.kind == "changed" for file in a.files}
    last = {file: a.index for a in actions if a.kind == "read" for file in a.files if file not in changed}
    return [(i, placeholders.spoken(file)) for file, i in sorted(last.items(), key=lambda found: found[1])]
