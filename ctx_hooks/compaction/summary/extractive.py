"""The deterministic records that replace removed exchanges: words in order, actions, and open failures.

Entries are chosen from all removed text, newest first; each is in the record of its own gap. A record may be part of a
user's message, so everything in it is quoted. The line above a quotation names its source; no quoted text can imitate it.
Users' words are quoted whole, as far as `user_words` has room for them.
"""

from collections import Counter as Occurrences
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, groupby, pairwise

from ctx_hooks.compaction.summary.done import Entry, Removed, done_in
from ctx_hooks.compaction.tool_texts import call_names
from ctx_hooks.conversation import placeholders
from ctx_hooks.conversation.model import Message, Text, ToolCall, ToolResult, is_question, is_request
from ctx_hooks.conversation.placeholders import Below
from ctx_hooks.policy.settings import Language
from ctx_hooks.texts.identifiers import identifiers
from ctx_hooks.texts.pieces import head_end, tail_start, utf8_bytes
from ctx_hooks.texts.statements import sentences, tells
from ctx_hooks.tokens.budget import Budget

SUMMARY_FRACTION = 0.08
MOST_SUMMARY_TOKENS = 3_000
LEAST_SUMMARY_TOKENS = 250
MOST_SUMMARY_FRACTION = 0.15
"""The records' share of the goal beside users' words, at least the size of a few entries and at most a readable length; of a
tiny goal never more than the last fraction. Kept exchanges say more than a record of removed ones."""
SHARES = {"changed": 0.4, "failing": 0.1, "planned": 0.05, "ran": 0.25, "said": 0.1, "read": 0.1}
"""The sections in order: the unused room of one goes to the next."""
MOST_RAN, MOST_SPOKEN = 0.25, 0.35
"""Upper bounds: there are many commands, and kept exchanges say more than a record of pure dialogue."""
ANSWERS_FRACTION = 0.04
"""Additional share of the goal for the answers that end turns."""
BEGINNING_CHARS, END_CHARS = 160, 240
"""The kept ends of such an answer: its question or conclusion is at the end."""
ANSWER_CHARS = 300
"""Length of an answer's entry in the record."""
COLONS = (":", "\uff1a")
SHORTER_TOKENS, FILES_TOKENS = 400, 750
"""The records' size if there is no room for more, and the changed files' size if there is no room for that."""
CHARS_PER_TOKEN = 4
"""English and code have three to five characters a token."""
REPEATED_TIMES = 3
"""A text that the assistant has repeated so often, such as "Noted.", says nothing."""
LONGEST_ACKNOWLEDGEMENT_BYTES = 24
"""A line for "I see." would cost as much as a user's sentence, and separate the sentences around it."""
ENTRY_CHARS = 3
"""The dash, the blank and the line break of an entry."""


def summary_tokens(goal_tokens: float, most_tokens: float = MOST_SUMMARY_TOKENS) -> float:
    """Return about how many tokens of a goal the records may have beside users' words, `most_tokens` at most."""
    share = max(LEAST_SUMMARY_TOKENS, goal_tokens * SUMMARY_FRACTION)
    return min(most_tokens, share, goal_tokens * MOST_SUMMARY_FRACTION)


def extractive_records(
    removed: Removed, budget: Budget, most_tokens: float = MOST_SUMMARY_TOKENS, files_tokens: int = 0
) -> dict[range, str]:
    """Return the records by gap: a heading, and what was said, changed, failing, run, planned and read there.

    They have at most `most_tokens` beside users' words, and always the newest changed files up to `files_tokens`.
    """
    return _headed(sections(removed, budget, most_tokens=most_tokens, files_tokens=files_tokens), removed, budget)


def bare_records(removed: Removed, budget: Budget) -> dict[range, str]:
    """Return the line that says how many messages were removed."""
    return _headed([[] for _ in removed.gaps], removed, budget)


def written_records(text: str, removed: Removed, budget: Budget) -> dict[range, str]:
    """Return the records with a model's summary in the newest, and the extracts that it lacks.

    So a poor summary loses no name of the deterministic form, and an older summary no later text. The extracts come first:
    users' words only grow, so the prompt cache has the beginning of the previous record.
    """
    return _headed(sections(removed, budget, stated=text), removed, budget, written=text)


def _headed(found: Sequence[Sequence[str]], removed: Removed, budget: Budget, written: str = "") -> dict[range, str]:
    """Return the lines of each gap below its heading.

    The record before a gap without entries counts its messages, too: a heading for each gap would cost a dialogue as much as
    the turns between them. A model's summary (`written`) ends the newest record.
    """
    language, newest = budget.policy.language, len(found) - 1
    recorded = [n for n, lines in enumerate(found) if lines or n == 0 or (written and n == newest)]
    records = {}
    for n, end in pairwise([*recorded, len(found)]):
        there = [removed.messages[i] for gap in removed.gaps[n:end] for i in gap]
        messages = [m for m in there if m.text not in placeholders.REMOVED_MESSAGES]
        below: Below = "summary" if written and n == newest else "record" if found[n] else "nothing"
        whole = budget.reference("\n\n".join(_transcript(messages, language))) if budget.archives else None
        first_line = placeholders.dropped(len(messages), language, whole, is_scattered=end - n > 1, below=below)
        lines = [first_line, *found[n]]
        if below == "summary":
            extracts = [placeholders.EXTRACTS[language], *found[n]] if found[n] else []
            lines = [*extracts, first_line, placeholders.block_quoted(written)]
        records[removed.gaps[n]] = "\n".join(lines)
    return records


def _transcript(messages: Sequence[Message], language: Language) -> Iterator[str]:
    """Yield the archive's transcript: texts, calls and results in order, each under a line with its source.

    It has the original texts, with a mark before every line, so no text can imitate another source's line. Media and
    reasoning are left out: media are no text, and reasoning is only for its own model.
    """
    calls = call_names(messages)
    for i, message in enumerate(messages):
        for k, part in enumerate(message.parts):
            if isinstance(part, Text) and part.original_text:
                source = placeholders.source(message.role, message.name, language)
                yield f"{source}\n{_marked(part.original_text)}"
            elif isinstance(part, ToolCall):
                yield f"{placeholders.source('arguments', part.name, language)}\n{_marked(part.arguments)}"
            elif isinstance(part, ToolResult) and part.original_text:
                tool = calls.get((i, k), ("", ""))[0]
                yield f"{placeholders.source('call', tool, language)}\n{_marked(part.original_text)}"


def _marked(text: str) -> str:
    return "".join(f"> {line}" for line in text.splitlines(keepends=True))


def sections(
    removed: Removed, budget: Budget, stated: str = "", most_tokens: float = MOST_SUMMARY_TOKENS, files_tokens: int = 0
) -> list[list[str]]:
    """Return for each gap the lines of the sections: what was said, changed, failing, run, planned and read.

    In each section the newest entries of all gaps come first. Entries of run, planned and read actions are left out if
    `stated` has all of their identifiers; a file's name does not say that it was changed or fails.
    """
    language = budget.policy.language
    chars = summary_tokens(budget.goal_tokens, most_tokens) * CHARS_PER_TOKEN
    entries = done_in(removed, language)
    found: dict[str, Sequence[Entry]] = {}
    stated_names = frozenset(identifiers(stated))
    most_shares = {"ran": MOST_RAN, "said": 1 if any(removed.gap(a.index) >= 0 for a in removed.actions) else MOST_SPOKEN}
    unspent = 0.0
    for section, share in SHARES.items():
        least = summary_tokens(budget.goal_tokens, files_tokens) * CHARS_PER_TOKEN if section == "changed" else 0
        room = max(chars * share + unspent, least)
        most = min(room, max(least, chars * most_shares.get(section, 1)))
        if section == "said":
            answers_chars = min(most_tokens, budget.goal_tokens * ANSWERS_FRACTION) * CHARS_PER_TOKEN
            found[section], left = _said(removed, most, answers_chars, language)
        else:
            names = () if section in ("changed", "failing") else stated_names
            unstated = [(i, e) for i, e in entries[section] if not (names and names.issuperset(identifiers(e) or ("",)))]
            found[section], left = _newest(unstated, most)
        unspent = room - most + left if most_tokens else 0.0
    return _by_gap(removed, found, language)


def _by_gap(removed: Removed, found: Mapping[str, Sequence[Entry]], language: Language) -> list[list[str]]:
    """Return for each gap the lines of the sections, with the entries of this gap."""
    lines: list[list[str]] = [[] for _ in removed.gaps]
    for section, title in placeholders.SUMMARY_SECTIONS[language].items():
        for gap, entries in groupby(found.get(section, ()), key=lambda entry: removed.gap(entry[0])):
            lines[gap] += [f"{title}:"] * bool(title)
            lines[gap] += [f"- {text}" for _, text in entries]
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
    """Return the words of users and assistant, in order, and the remaining characters of the room.

    Users' words use no room. The assistant's texts that end a turn may also use `answers_chars`; they come first, then the
    newest others.
    """
    places = [i for gap in removed.gaps for i in gap]
    words = {i: text for i in places if (text := _words_of(i, removed))}
    turns = accumulate(is_request(m) for m in removed.messages)
    spoken = [(turn, i) for i, turn in enumerate(turns) if removed.messages[i].role == "assistant"]
    closing = set({turn: i for turn, i in spoken if removed.messages[i].text.strip()}.values())
    texts = {i: removed.messages[i].text.strip() for i in places if removed.messages[i].role == "assistant"}
    times = Occurrences(m.text.strip() for m in removed.messages if m.role == "assistant")
    answers = [i for i, text in texts.items() if text and times[text] < REPEATED_TIMES and not _acknowledges(removed, i)]
    told: set[str] = set()
    for i in sorted(answers, key=lambda i: (i not in closing, -i)):
        text = reported(texts[i], calls=bool(removed.messages[i].calls))
        entry = ends_of(text, BEGINNING_CHARS, END_CHARS) if i in closing else ends_of(text)
        chars = len(entry) + ENTRY_CHARS
        if not entry or entry in told or chars > room_chars + answers_chars * (i in closing):
            continue
        extra_chars = min(chars, answers_chars) * (i in closing)
        answers_chars -= extra_chars
        room_chars -= chars - extra_chars
        words[i] = entry
        told.add(entry)

    def source_of(i: int) -> tuple[int, str, int]:
        message = removed.messages[i]
        source = placeholders.source(message.role, message.name, language)
        is_line = message.role == "user" and "\n" not in words[i]
        return removed.gap(i), source, -1 if is_line else i  # short messages of a user's in turn are one entry

    groups = [(source, list(found)) for (_, source, _), found in groupby(sorted(words), key=source_of)]
    return [(i[0], placeholders.said_by(source, [words[n] for n in i], language)) for source, i in groups], room_chars


def reported(text: str, *, calls: bool) -> str:
    """Return the sentences of the assistant that report: not those that end in a colon, nor the last one before `calls`.

    These announce what follows, which is not there.
    """
    found = [text[a:b].strip() for a, b in sentences(text, 0, len(text)) if any(map(str.isalpha, text[a:b]))]
    found = found[:-1] if calls else found
    return " ".join(sentence for sentence in found if not sentence.rstrip("*_ ").endswith(COLONS))


def _acknowledges(removed: Removed, i: int) -> bool:
    """Whether the assistant only acknowledges a user's words that are no question."""
    text, before = removed.messages[i].text.strip(), removed.messages[max(0, i - 1)]
    says_nothing = utf8_bytes(text) <= LONGEST_ACKNOWLEDGEMENT_BYTES and not tells(text, 0, len(text))
    return says_nothing and is_request(before) and not is_question(before)


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


def ends_of(text: str, beginning_chars: int = 200, end_chars: int = 300) -> str:
    """Return a text whole, or its beginning and end."""
    if len(text) <= beginning_chars + end_chars:
        return text
    return _with_gap(text, head_end(text, beginning_chars), tail_start(text, end_chars))


def _with_gap(text: str, start: int, end: int) -> str:
    """Return a text with a mark in place of a part; the mark has its own line if lines are missing."""
    line = "\n" if "\n" in text[max(0, start - 1) : end + 1] else " "
    return f"{text[:start].rstrip()}{line}{placeholders.GAP}{line}{text[end:].lstrip()}"
