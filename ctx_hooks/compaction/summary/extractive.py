"""The deterministic extractive summary that stands for removed exchanges: what was said in order, done, and left open.

It is part of a user's message, so everything in it is quoted: whose words they are is said by the line above, which no
quoted text can write. Users' words stand in it whole, as far as `user_words` has room for them.
"""

from __future__ import annotations

from bisect import bisect
from collections import Counter as Occurrences
from dataclasses import dataclass, field
from itertools import accumulate, groupby, pairwise
from typing import TYPE_CHECKING

from ctx_hooks.compaction.summary.actions import still_failing
from ctx_hooks.compaction.summary.transcript import transcript
from ctx_hooks.compaction.tool_arguments import beginning
from ctx_hooks.conversation import placeholders
from ctx_hooks.conversation.exchanges import is_request
from ctx_hooks.conversation.model import Text
from ctx_hooks.texts.identifiers import identifiers
from ctx_hooks.texts.pieces import head_end, tail_start

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ctx_hooks.compaction.summary.actions import Action
    from ctx_hooks.conversation.cut_texts import Reference
    from ctx_hooks.conversation.model import Message
    from ctx_hooks.policy.settings import Language
    from ctx_hooks.tokens.budget import Budget

SUMMARY_FRACTION = 0.08
MOST_SUMMARY_TOKENS = 3_000
LEAST_SUMMARY_TOKENS = 250
MOST_SUMMARY_FRACTION = 0.15
"""The summary's share of the goal beside users' words, within what a few entries need and what anyone reads; of a tiny goal
never more than the last of these. Kept exchanges say more than a summary of those that went."""
SHARES = {"changed": 0.4, "failing": 0.1, "planned": 0.05, "ran": 0.25, "said": 0.1, "read": 0.1}
"""In the order in which what one section leaves goes to the next."""
MOST_RAN, MOST_SPOKEN = 0.25, 0.35
"""Commands are many, and of what was only spoken kept exchanges say more."""
BEGINNING_CHARS, END_CHARS = 200, 300
"""What stands of an answer of the assistant's: what it is about, and what it asks or concludes."""
TURN_CHARS, TURN_LINE_CHARS = 80, 110
"""What is quoted of a user's turn that stays, to say what came behind it, and what the line has that does."""
COLONS = (":", "\uff1a")
BRIEF_CHARS = 3_000
"""What a list of files may have where there is no room for a summary."""
CHARS_PER_TOKEN = 4
"""English and code have three to five characters a token."""
REPEATED_TIMES = 3
"""What the assistant has said so often to the letter tells nothing, such as "Noted."."""
ENTRY_CHARS = 3
"""The dash, the blank and the line break of an entry."""


@dataclass(frozen=True, slots=True)
class Removed:
    """Messages that a summary stands for.

    Attributes:
        messages: in order.
        words: the spans of users' texts that stay, by index of the message among these and of the part in it.
        actions: what was done in these.
        later: what was done behind these, in what stays: a failure may have been cured there.
        told: the indices of those of which what was said stands elsewhere.
        turns: of users that stay, the messages by how many of these messages stood before them.
    """

    messages: tuple[Message, ...]
    words: Mapping[tuple[int, int], Sequence[tuple[int, int]]]
    actions: tuple[Action, ...]
    later: tuple[Action, ...] = ()
    told: frozenset[int] = frozenset()
    turns: Mapping[int, Message] = field(default_factory=dict)


def summary_tokens(goal_tokens: float, most_tokens: float = MOST_SUMMARY_TOKENS) -> float:
    """Return about how many tokens of a goal the summary may have beside users' words, `most_tokens` at most."""
    share = max(LEAST_SUMMARY_TOKENS, goal_tokens * SUMMARY_FRACTION)
    return min(most_tokens, share, goal_tokens * MOST_SUMMARY_FRACTION)


def extractive_summary(removed: Removed, budget: Budget) -> str:
    """Return the extractive summary of the removed messages: a heading, and the sections; a line where these are empty."""
    return _headed(sections(removed, budget), removed, budget)


def brief_summary(removed: Removed, budget: Budget) -> str:
    """Return the users' words of the removed messages under the heading, and the newest of the files that were changed."""
    language = budget.policy.language
    lines, _ = _said(removed, 0, language)
    room_chars = min(BRIEF_CHARS, summary_tokens(budget.goal_tokens) * CHARS_PER_TOKEN)
    return _headed(lines + _section("changed", _changed(removed), room_chars, language)[0], removed, budget)


def bare_summary(removed: Removed, budget: Budget) -> str:
    """Return the line that says how many messages were removed."""
    return _headed([], removed, budget)


def written_form(text: str, removed: Removed, budget: Budget) -> str:
    """Return what stands for the removed messages: a heading, the model's summary, and the extracts that it lacks.

    So neither a poor summary loses what is named in the deterministic form, nor one that was written some turns ago what
    came since.
    """
    language = budget.policy.language
    extracts = sections(removed, budget, stated=text)
    lines = [
        placeholders.written_heading(len(removed.messages), language, _whole_of(removed.messages, budget)),
        placeholders.block_quoted(text),
    ]
    return "\n".join((*lines, placeholders.extracts_heading(language), *extracts) if extracts else lines)


def _headed(lines: Sequence[str], removed: Removed, budget: Budget) -> str:
    heading = placeholders.summary_heading if lines else placeholders.dropped
    return "\n".join((heading(len(removed.messages), budget.policy.language, _whole_of(removed.messages, budget)), *lines))


def _whole_of(removed: Sequence[Message], budget: Budget) -> Reference | None:
    """Return where the whole of the removed messages is; None where nothing is archived."""
    return budget.reference(transcript(removed, budget.policy.language)) if budget.cut_texts is not None else None


def sections(removed: Removed, budget: Budget, stated: str = "") -> list[str]:
    """Return the lines of the sections: what was said, changed, failing, run, planned and read; none for an empty one.

    Within each section the newest entries win the space; they are listed in their order. Of what tools did an entry whose
    identifiers are all named in `stated` is left out.
    """
    language = budget.policy.language
    chars = summary_tokens(budget.goal_tokens) * CHARS_PER_TOKEN
    actions = removed.actions
    plans = [a for a in (*actions, *removed.later) if a.kind == "planned"][-1:]
    entries = {
        "changed": _changed(removed),
        "failing": [_ended(a) for a in _failing(removed)],
        "planned": [placeholders.spoken(a.what) for a in plans if a in actions],
        "ran": _ran(actions),
        "read": _read(actions),
    }
    lines: dict[str, list[str]] = {}
    names = frozenset(identifiers(stated))
    most_shares = {"ran": MOST_RAN, "said": 1 if actions else MOST_SPOKEN}
    unspent = 0.0
    for section, share in SHARES.items():
        room = chars * share + unspent
        most = min(room, chars * most_shares.get(section, 1))
        if section == "said":
            lines[section], left = _said(removed, most, language)
        else:
            unstated = [e for e in entries[section] if not (names and names.issuperset(identifiers(e) or ("",)))]
            lines[section], left = _section(section, unstated, most, language)
        unspent = room - most + left
    return [line for section in placeholders.SUMMARY_SECTIONS[language] for line in lines[section]]


def _section(section: str, entries: Sequence[str], room_chars: float, language: Language) -> tuple[list[str], float]:
    """Return the lines of a section with the newest entries that the room holds, and what is left of the room."""
    kept: list[str] = []
    for entry in dict.fromkeys(reversed(entries)):
        if len(entry) + ENTRY_CHARS > room_chars:
            break
        room_chars -= len(entry) + ENTRY_CHARS
        kept.append(f"- {entry}")
    title = placeholders.SUMMARY_SECTIONS[language][section]
    return ([f"{title}:", *reversed(kept)] if kept else []), room_chars


def _said(removed: Removed, room_chars: float, language: Language) -> tuple[list[str], float]:
    """Return the lines of what was said, in order, and the characters that are left of the room.

    Users' words are none of it; of the assistant's texts it holds first those that end a turn, then the newest.
    """
    words = {i: text for i in range(len(removed.messages)) if (text := _words_of(i, removed))}
    texts = {i: m.text.strip() for i, m in enumerate(removed.messages) if m.role == "assistant"}
    times = Occurrences(texts.values())
    answers = {i: text for i, text in texts.items() if text and times[text] < REPEATED_TIMES}
    turns = accumulate(is_request(m) for m in removed.messages)
    closing = set({turn: i for i, turn in enumerate(turns) if i in answers}.values())
    places = sorted(place for place in removed.turns if place > 0)
    named = {0, *(bisect(places, i) for i in words)}
    told: set[str] = set()
    for i in sorted(answers.keys() - removed.told, key=lambda i: (i not in closing, -i)):
        entry = ends_of(answers[i] if i in closing else answers[i].split("\n", 1)[0])
        announces = i not in closing and entry.rstrip("*_ ").endswith(COLONS)  # what stands nowhere
        chars = len(entry) + ENTRY_CHARS + TURN_LINE_CHARS * (bisect(places, i) not in named)
        if announces or entry in told or chars > room_chars:
            continue
        room_chars -= chars
        named.add(bisect(places, i))
        words[i] = entry
        told.add(entry)
    behind = 0
    lines = [f"{placeholders.SUMMARY_SECTIONS[language]['said']}:"] if words else []

    def source_of(i: int) -> tuple[int, str, int]:
        message = removed.messages[i]
        source = placeholders.source_of_speaker(message.role, message.name, language)
        return bisect(places, i), source, 0 if message.role == "user" else i  # what a user says in turn is one entry

    for (place, source, _), entries in groupby(sorted(words), key=source_of):
        if place > behind:
            behind = place
            turn = removed.turns[places[behind - 1]]
            lines.append(placeholders.after_turn(beginning(turn.text, TURN_CHARS), turn.name, language))
        lines.append(placeholders.said_by(f"- {source}", *(words[i] for i in entries)))
    return lines, room_chars


def _words_of(i: int, removed: Removed) -> str:
    """Return the users' words that stay of a message, a mark where something between them is missing."""
    found = []
    for k, part in enumerate(removed.messages[i].parts):
        spans = removed.words.get((i, k), ()) if isinstance(part, Text) else ()
        if spans and isinstance(part, Text):
            text = part.text.rstrip()[: spans[-1][1]]
            for (_, start), (end, _) in reversed(list(pairwise([*spans, (len(part.text.rstrip()),) * 2]))):
                text = _with_gap(text, start, end) if part.text[start:end].strip() else text
            found.append(text[spans[0][0] :].strip())
    return "\n".join(found)


def ends_of(text: str, beginning_chars: int = BEGINNING_CHARS, end_chars: int = END_CHARS) -> str:
    """Return a text whole, or its beginning and end."""
    if len(text) <= beginning_chars + end_chars:
        return text
    return _with_gap(text, head_end(text, beginning_chars), tail_start(text, end_chars))


def _with_gap(text: str, start: int, end: int) -> str:
    """Return a text with a mark in place of a part, on a line of its own where lines are missing."""
    line = "\n" if "\n" in text[max(0, start - 1) : end + 1] else " "
    return f"{text[:start].rstrip()}{line}{placeholders.GAP}{line}{text[end:].lstrip()}"


def _failing(removed: Removed) -> list[Action]:
    """Return the removed failures that no later success has cured."""
    ours = set(map(id, removed.actions))
    return [a for a in still_failing((*removed.actions, *removed.later)) if id(a) in ours]


def _changed(removed: Removed) -> list[str]:
    """Return the changed files, each once, where it was changed last, with how often and whether the last change failed."""
    changes = [a for a in removed.actions if a.kind == "changed"]
    failing = set(map(id, _failing(removed)))
    times = Occurrences(file for a in changes for file in a.files)
    last: dict[str, Action] = {}
    for action in changes:
        for file in action.files:
            last.pop(file, None)
            last[file] = action
    return [
        placeholders.spoken(file)
        + f" (x{times[file]})" * (times[file] > 1)
        + f" {placeholders.quoted(a.outcome)}" * (id(a) in failing)
        for file, a in last.items()
    ]


def _ran(actions: Sequence[Action]) -> list[str]:
    """Return what was run and did not fail the last time, each command once, where it was run last, with how it ended."""
    last: dict[str, Action] = {}
    for action in (a for a in actions if a.kind == "ran"):
        last.pop(action.same, None)
        last[action.same] = action
    return [_ended(a) for a in last.values() if not a.failed]


def _ended(action: Action) -> str:
    outcome = f": {placeholders.quoted(action.outcome)}" if action.outcome else ""
    return placeholders.spoken(action.what) + outcome


def _read(actions: Sequence[Action]) -> list[str]:
    changed = {file for a in actions if a.kind == "changed" for file in a.files}
    files = dict.fromkeys(file for a in actions if a.kind == "read" for file in a.files if file not in changed)
    return [placeholders.spoken(file) for file in files]
