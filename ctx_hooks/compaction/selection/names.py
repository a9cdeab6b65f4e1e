"""What stays of cut text where none of its lines does: names, those first that the assistant has used most.

A name has a tenth of the tokens of the lines around it, and tells a reader which call shows these again.
"""

from __future__ import annotations

import re
from collections import Counter as Occurrences
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from ctx_hooks.compaction.selection.scoring import Item, identifiers_of
from ctx_hooks.compaction.selection.select import Selection
from ctx_hooks.compaction.selection.user_words import Position
from ctx_hooks.conversation.model import Conversation, ToolResult
from ctx_hooks.texts.identifiers import is_opaque
from ctx_hooks.tokens.counter import Counter

Names: TypeAlias = Mapping[Position, Sequence[str]]
"""By the part that they stand in."""


NAMES_FRACTION, MOST_NAMES_FRACTION = 0.04, 0.07
"""Of the goal, what lines leave for names, and what these have at most."""
CLAUSE_TOKENS = 4
"""What says where the names of one place come from; a file that is listed in any case says it for nothing."""
LEAST_FIGURE_USES = 2
"""A figure with its unit is listed if the assistant used it so often; any other name if it was seen."""
LONGEST_NAME_CHARS = 100
_FIGURE = re.compile(r"\d+[A-Za-z]?")
"""It says of nothing what it counts."""
_WORDS = re.compile(r"[A-Za-z]+(?:/[A-Za-z]+)+|\w+://.*")
"""Words with strokes between them are mostly prose ("yes/no"), and a page has many addresses, if the assistant used none."""
_FOUND = re.compile(r"([^:]*/[^:]*\.\w+):[A-Za-z]\w*")
"""What `grep` puts behind the name of a file."""
_MARK = re.compile(r"[/.:#]")


def names_of_cut(
    conversation: Conversation,
    items: Sequence[Item],
    selection: Selection,
    left: Conversation,
    counter: Counter,
    room_tokens: int,
) -> Names:
    """Return names that were cut and stand in nothing that is `left`, most used first, as many as the room holds."""
    used = Occurrences(
        name for message in conversation.messages if message.role == "assistant" for name in identifiers_of((message,))
    )
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
    cut = (
        n
        for n in places
        if not (n in shown or _FIGURE.fullmatch(n) or (n not in used and (_WORDS.fullmatch(n) or is_opaque(n))))
    )
    listed = (n for n in cut if not n[0].isdigit() or used[n] >= LEAST_FIGURE_USES)
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
    """Return a name and what it begins and ends with, up to a mark in it: of a path the file and the folders, too.

    >>> _parts("src/names.py")
    ['src/names.py', 'src', 'src/names', 'names.py', 'py']
    """
    marks = [found.start() for found in _MARK.finditer(name)] if len(name) <= LONGEST_NAME_CHARS else []
    return [name, *(name[:i] for i in marks), *(name[i + 1 :] for i in marks)]
