"""The entries of the deterministic records that replace removed exchanges: words in order, actions and their outcome.

A record may be part of a user's message, so everything in it is quoted. The line above a quotation names its source; no
quoted text can imitate it. Users' words are quoted whole, as far as `user_words` has room for them.
"""

import re
from bisect import bisect_right
from collections import Counter as Occurrences
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby, pairwise
from pathlib import PurePath
from typing import Any, TypeAlias

from ctx_hooks.compaction.summary.actions import Action
from ctx_hooks.conversation import placeholders
from ctx_hooks.conversation.model import Message, Text, is_question, is_request
from ctx_hooks.policy.settings import Language
from ctx_hooks.texts.pieces import head_end, tail_start, utf8_bytes
from ctx_hooks.texts.statements import sentences, tells
from ctx_hooks.tokens.budget import Budget
from ctx_hooks.tokens.units import CHARS_PER_TOKEN

SUMMARY_FRACTION = 0.08
MOST_SUMMARY_TOKENS = 3_000
LEAST_SUMMARY_TOKENS = 250
MOST_SUMMARY_FRACTION = 0.15
"""The records' share of the goal beside users' words, at least the size of a few entries and at most a readable length; of a
tiny goal never more than the last fraction. Kept exchanges say more than a record of removed ones."""
SHARES = {"changed": 0.4, "planned": 0.05, "ran": 0.35, "said": 0.1, "read": 0.1}
"""The sections in order: the unused room of one goes to the next."""
MOST_SPOKEN = 0.35
"""Upper bound for what was said in pure dialogue: kept turns say more than a record."""
ANSWERS_FRACTION = 0.04
"""Additional share of the goal for the answers that end turns."""
BEGINNING_CHARS, END_CHARS = 200, 300
"""The kept ends of a text of the assistant: its question or conclusion is at the end."""
COLONS = (":", "\uff1a")
SENTENCE_ENDS = '.!?;,。!?；，)*`"”'
"""Other ends are those of lines: of points of a list."""
SHORTER_TOKENS, FILES_TOKENS = 400, 750
"""The records' size if there is no room for more, and the changed files' size if there is no room for that."""
LONGEST_ACKNOWLEDGEMENT_BYTES = 24
"""A line for "I see." would cost as much as a user's sentence, and separate the sentences around it."""
_ANNOUNCES = re.compile(
    r"(?:\w+['’]?\w*[!,.]? ){0,3}"
    r"(?:let me|let['’]s|I['’]ll|I will|I (?:also )?need to|I should|I['’]m going to|I can (?!see)) "
    r"|(?:\S+ )?\S+!$|.{0,4}(?:让我|我来|我将|我需要|我会)",
    re.IGNORECASE,
)
"""A sentence before a call that says what comes next, or an exclamation: the call says more. A mistake costs one line."""
_OF_ITSELF = re.compile(r"(?:\w+[!,.]? ){0,2}I\b|.{0,4}我")
"""The beginning of a sentence in which the assistant speaks of itself: without a name or figure it reports nothing."""
ENTRY_CHARS = 3
"""The dash, the blank and the line break of an entry."""


Entry: TypeAlias = tuple[int, str]
"""Index of a message, and the text of its entry."""


@dataclass(frozen=True, slots=True)
class Removed:
    """The removed messages that records replace, as gaps in all messages of a conversation."""

    messages: Sequence[Message]
    gaps: Sequence[range]
    words: Mapping[tuple[int, int], Sequence[tuple[int, int]]]
    """The spans of users' texts that stay, by index of the message and of the part in it."""
    actions: Sequence[Action]
    """The actions in removed and in kept messages: these may have the last run of a command."""

    def gap(self, i: int) -> int:
        """Return the number of the gap of the message `i`, -1 if it was not removed."""
        number = bisect_right(self.gaps, i, key=lambda gap: gap.start) - 1
        return number if number >= 0 and i in self.gaps[number] else -1


def summary_tokens(goal_tokens: float, most_tokens: float = MOST_SUMMARY_TOKENS) -> float:
    """Return about how many tokens of a goal the records may have beside users' words, `most_tokens` at most."""
    share = max(LEAST_SUMMARY_TOKENS, goal_tokens * SUMMARY_FRACTION)
    return min(most_tokens, share, goal_tokens * MOST_SUMMARY_FRACTION)


def sections(
    removed: Removed, budget: Budget, most_tokens: float = MOST_SUMMARY_TOKENS, files_tokens: int = 0
) -> list[list[str]]:
    """Return for each gap the lines of its sections; in each section the newest entries of all gaps come first."""
    language = budget.policy.language
    chars = summary_tokens(budget.goal_tokens, most_tokens) * CHARS_PER_TOKEN
    entries = done_in(removed, language)
    found: dict[str, Sequence[Entry]] = {}
    room = 0.0
    for section, share in SHARES.items():
        room += chars * share
        if section == "changed":
            room = max(room, summary_tokens(budget.goal_tokens, files_tokens) * CHARS_PER_TOKEN)
        if section == "said":
            most = room if any(entries.values()) else min(room, chars * MOST_SPOKEN)
            answers_chars = min(most_tokens, budget.goal_tokens * ANSWERS_FRACTION) * CHARS_PER_TOKEN
            found[section], room = _said(removed, most, answers_chars, language)
        else:
            found[section], room = _newest(entries[section], room)
        room = room if most_tokens else 0.0
    return _by_gap(removed, found, language)


def done_in(removed: Removed, language: Language) -> dict[str, list[Entry]]:
    """Return the entries of each section, in order; a plan or a run does not count if a kept message has a newer one."""
    gone = [a for a in removed.actions if removed.gap(a.index) >= 0]
    plans = [a for a in removed.actions if a.kind == "planned"][-1:]
    runs = _last_runs([a for a in removed.actions if a.kind == "ran"])
    return {
        "changed": _changed(gone, language),
        "planned": [(a.index, placeholders.spoken(a.what)) for a in plans if removed.gap(a.index) >= 0],
        "ran": _ran(runs, removed),
        "read": _read(gone),
    }


def _changed(actions: Sequence[Action], language: Language) -> list[Entry]:
    """Return each changed file once, at its last change, with the number of changes and whether the last one failed."""
    changes = [(file, a) for a in actions if a.kind == "changed" for file in a.files]
    times = Occurrences(file for file, _ in changes)
    return [
        (
            a.index,
            placeholders.spoken(file)
            + f" (x{times[file]})" * (times[file] > 1)
            + f" ({placeholders.FAILED[language]}: {placeholders.quoted(a.outcome)})" * a.failed,
        )
        for file, a in _last(changes)
    ]


def _last_runs(runs: Sequence[Action]) -> list[Action]:
    """Return the runs of which a command was not run again later, by itself or among others."""
    last = {command: n for n, run in enumerate(runs) for command in run.commands}
    return [run for n, run in enumerate(runs) if any(last[command] == n for command in run.commands)]


def _last(found: Sequence[tuple[Any, Action]]) -> list[tuple[Any, Action]]:
    """Return each name once, at its last place."""
    return [found[n] for n in sorted({name: n for n, (name, _) in enumerate(found)}.values())]


def _ran(runs: Sequence[Action], removed: Removed) -> list[Entry]:
    """Return each run with its outcome; a tool's calls without one in a gap are one entry, the last, with their number."""
    keys = [(removed.gap(a.index), a.what if a.outcome or not a.tool else a.tool) for a in runs]
    times, last = Occurrences(keys), {key: a for key, a in zip(keys, runs, strict=True) if key[0] >= 0}
    entries = []
    for key, a in sorted(last.items(), key=lambda found: found[1].index):
        outcome = f": {placeholders.quoted(a.outcome)}" if a.outcome else ""
        entries.append((a.index, placeholders.spoken(a.what) + f" (x{times[key]})" * (times[key] > 1) + outcome))
    return entries


def _read(actions: Sequence[Action]) -> list[Entry]:
    """Return what was read, each at its last place: files that were not changed, else the call that looked for something."""
    changed = {file for a in actions if a.kind == "changed" for file in a.files}
    reads = [(a.index, [f for f in a.files if "." in PurePath(f).name] or [a.what]) for a in actions if a.kind == "read"]
    last = {name: i for i, names in reads for name in names if name not in changed}
    return [(i, placeholders.spoken(name)) for name, i in sorted(last.items(), key=lambda found: found[1])]


def _by_gap(removed: Removed, found: Mapping[str, Sequence[Entry]], language: Language) -> list[list[str]]:
    """Return for each gap the lines of the sections, with the entries of this gap."""
    lines: list[list[str]] = [[] for _ in removed.gaps]
    for section, title in placeholders.SUMMARY_SECTIONS[language].items():
        for gap, entries in groupby(found.get(section, ()), key=lambda entry: removed.gap(entry[0])):
            lines[gap] += [f"{title}:"] * bool(title)
            lines[gap] += [f"{placeholders.ENTRY}{text}" for _, text in entries]
    return lines


def _newest(entries: Sequence[Entry], room_chars: float) -> tuple[list[Entry], float]:
    """Return the newest entries that fit the room, in order, and the remaining room."""
    kept: dict[str, int] = {}
    for i, text in reversed(entries):
        if text in kept:
            continue
        if len(text) + ENTRY_CHARS > room_chars:
            break
        room_chars -= len(text) + ENTRY_CHARS
        kept[text] = i
    return [(i, text) for text, i in reversed(kept.items())], room_chars


def _said(removed: Removed, room_chars: float, answers_chars: float, language: Language) -> tuple[list[Entry], float]:
    """Return the words of users, which use no room, and of the assistant: first ends of turns, also in `answers_chars`."""
    places = [i for gap in removed.gaps for i in gap]
    words = {i: text for i in places if (text := _words_of(i, removed))}
    turns = accumulate(is_request(m) for m in removed.messages)
    spoken = [(turn, i) for i, turn in enumerate(turns) if removed.messages[i].role == "assistant"]
    closing = set({turn: i for turn, i in spoken if removed.messages[i].text.strip()}.values())
    texts = {i: removed.messages[i].text.strip() for i in places if removed.messages[i].role == "assistant"}
    quoted: set[str] = set()
    for i in sorted(texts, key=lambda i: (i not in closing, -i)):
        entry = ends_of(reported(texts[i], calls=bool(removed.messages[i].calls)))
        entry = "" if _acknowledges(removed, i, entry, closes=i in closing) else entry
        chars = len(entry) + ENTRY_CHARS
        if not entry or entry in quoted or chars > room_chars + answers_chars * (i in closing):
            continue
        extra_chars = min(chars, answers_chars) * (i in closing)
        answers_chars -= extra_chars
        room_chars -= chars - extra_chars
        words[i] = entry
        quoted.add(entry)

    def source_of(i: int) -> tuple[int, str, int]:
        message = removed.messages[i]
        source = placeholders.source(message.role, message.name, language)
        is_line = message.role == "user" and "\n" not in words[i]
        return removed.gap(i), source, -1 if is_line else i  # short messages of a user's in turn are one entry

    groups = [(source, list(found)) for (_, source, _), found in groupby(sorted(words), key=source_of)]
    return [(i[0], placeholders.said_by(source, [words[n] for n in i], language)) for source, i in groups], room_chars


def reported(text: str, *, calls: bool) -> str:
    """Return the sentences that report; one that ends in a colon and the last before `calls` only announce."""
    found = [text[a:b].strip() for a, b in sentences(text, 0, len(text)) if any(map(str.isalpha, text[a:b]))]
    found = [sentence for sentence in found[:-1] if _reports(sentence)] if calls else found
    said = [sentence for sentence in found if not sentence.rstrip("*_ ").endswith(COLONS)]
    return "".join(f"{s}{' ' if s[-1] in SENTENCE_ENDS else '; '}" for s in said[:-1]) + "".join(said[-1:])


def _reports(sentence: str) -> bool:
    if sentence.startswith("#"):
        return False  # a heading announces, too
    says_something = tells(sentence, 0, len(sentence)) or not _OF_ITSELF.match(sentence)
    return says_something and not _ANNOUNCES.match(sentence)


def _acknowledges(removed: Removed, i: int, entry: str, *, closes: bool) -> bool:
    """Whether the assistant's words only acknowledge a result, or a user's words that are no question."""
    before = removed.messages[max(0, i - 1)]
    is_reply = is_request(before) and is_question(before)
    says_nothing = utf8_bytes(entry) <= LONGEST_ACKNOWLEDGEMENT_BYTES and not tells(entry, 0, len(entry))
    return says_nothing and not is_reply and (is_request(before) or not closes)


def _words_of(i: int, removed: Removed) -> str:
    """Return the kept users' words of a message, with a mark at each gap between them."""
    found = []
    for k, part in enumerate(removed.messages[i].parts):
        spans = removed.words.get((i, k), ()) if isinstance(part, Text) else ()
        if spans and isinstance(part, Text):
            text = part.text.rstrip()[: spans[-1][1]]
            for (_, start), (end, _) in reversed(list(pairwise([*spans, (len(part.text.rstrip()),) * 2]))):
                text = _with_gap(text, start, end) if part.text[start:end].strip() else text
            found.append(text[spans[0][0] :])
    return "\n".join(found).strip()


def ends_of(text: str) -> str:
    """Return a text whole, or its beginning and end."""
    if len(text) <= BEGINNING_CHARS + END_CHARS:
        return text
    return _with_gap(text, head_end(text, BEGINNING_CHARS), tail_start(text, END_CHARS))


def _with_gap(text: str, start: int, end: int) -> str:
    """Return a text with a mark in place of a part; the mark has its own line if lines are missing."""
    line = "\n" if "\n" in text[max(0, start - 1) : end + 1] else " "
    return f"{text[:start].rstrip()}{line}{placeholders.GAP}{line}{text[end:].lstrip()}"
