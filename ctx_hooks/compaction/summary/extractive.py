"""The deterministic extractive summary that stands for removed exchanges.

It is part of a user's message, so everything in it is quoted: whose words they are is said by the line above, which no
quoted text can write. Only what the user asked is the user's.
"""

from __future__ import annotations

from sys import getsizeof
from typing import TYPE_CHECKING

from ctx_hooks.compaction import tool_arguments
from ctx_hooks.compaction.summary.transcript import transcript
from ctx_hooks.compaction.tool_results import call_names
from ctx_hooks.conversation import placeholders
from ctx_hooks.conversation.exchanges import is_request
from ctx_hooks.conversation.model import Message, Text, ToolResult
from ctx_hooks.formats import CODECS
from ctx_hooks.runtime.content_cache import ContentCache, digest
from ctx_hooks.texts.error_lines import error_lines
from ctx_hooks.texts.identifiers import identifiers

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ctx_hooks.conversation.cut_texts import Reference
    from ctx_hooks.conversation.model import Format
    from ctx_hooks.policy.settings import Language
    from ctx_hooks.tokens.budget import Budget

SUMMARY_FRACTION = 0.05
MOST_SUMMARY_TOKENS = 2_000
LEAST_SUMMARY_TOKENS = 250
MOST_SUMMARY_FRACTION = 0.15
"""The summary's share of the goal, within what a few entries need and what anyone reads; of a tiny goal never more than
the last of these. Kept exchanges say more than a summary of those that went."""
SHARES = {"requests": 0.40, "files": 0.20, "commands": 0.15, "decisions": 0.15, "errors": 0.10}
"""What was asked cannot be found out again; files, commands and errors can, by asking the tools."""
LONGEST_ENTRY_CHARS = 300
"""A longer request is no short one: its beginning stands in the summary."""
CHARS_PER_TOKEN = 4
"""English and code have three to five characters a token."""
ENTRY_CHARS = 3
"""The dash, the blank and the line break of an entry."""

_error_lines: ContentCache[str | None] = ContentCache()


def summary_tokens(budget: Budget) -> float:
    """Return about how many tokens the summary may have."""
    return allowed_tokens(budget.goal_tokens)


def allowed_tokens(goal_tokens: float, most_tokens: float = MOST_SUMMARY_TOKENS) -> float:
    """Return about how many tokens of a goal a summary may have, `most_tokens` at most."""
    share = max(LEAST_SUMMARY_TOKENS, goal_tokens * SUMMARY_FRACTION)
    return min(most_tokens, share, goal_tokens * MOST_SUMMARY_FRACTION)


def extractive_summary(removed: Sequence[Message], budget: Budget) -> str:
    """Return the extractive summary of the removed messages: a heading, and the sections."""
    heading = placeholders.summary_heading(len(removed), budget.policy.language, whole_of(removed, budget))
    return "\n".join((heading, *sections(removed, budget)))


def whole_of(removed: Sequence[Message], budget: Budget) -> Reference | None:
    """Return where the whole of the removed messages is; None where nothing is archived."""
    return budget.reference(transcript(removed, budget.policy.language)) if budget.cut_texts is not None else None


def sections(removed: Sequence[Message], budget: Budget, stated: str = "") -> list[str]:
    """Return the lines of the sections: what was asked, touched, run, said and broken; none for a section without entries.

    Within each section the newest entries win the space, and what a section leaves goes to the next; they are listed in
    their order. An entry whose identifiers are all named in `stated` is left out, a request only where `stated` quotes it
    whole: that a file is named does not say what the user asked of it.
    """
    titles = placeholders.SUMMARY_SECTIONS[budget.policy.language]
    chars = summary_tokens(budget) * CHARS_PER_TOKEN
    newest_first = removed[::-1]
    entries = {
        "requests": _requests(newest_first),
        "files": (_quoted_line(p) for m in newest_first for c in m.calls for p in tool_arguments.paths(c.arguments)),
        "commands": (_quoted_line(p) for m in newest_first for c in m.calls for p in tool_arguments.commands(c.arguments)),
        "decisions": _decisions(newest_first),
        "errors": _errors(removed),
    }
    stated_names = frozenset(identifiers(stated))
    lines = []
    unspent = 0.0
    for section, section_entries in entries.items():
        room = chars * SHARES[section] + unspent
        names = frozenset() if section == "requests" else stated_names
        kept = _newest((entry for entry in section_entries if not _is_stated(entry, stated, names)), int(room))
        unspent = room - sum(len(entry) + ENTRY_CHARS for entry in kept)
        if kept:
            lines += [f"{titles[section]}:", *(f"- {entry}" for entry in kept)]
    return lines


def with_summary(messages: list[Message], summary: str, fmt: Format, language: Language) -> list[Message]:
    """Return the messages with the summary behind the leading system messages.

    It opens the user's message that comes there, so that no two messages of the user's stand beside each other, or is a
    message of its own: what is pinned, or said by another agent, is left alone.
    """
    place = next((i for i, m in enumerate(messages) if m.role != "system"), len(messages))
    first = messages[place] if place < len(messages) else None
    if first is None or not is_request(first) or first.pinned or first.name is not None:
        return [*messages[:place], CODECS[fmt].user_message(summary), *messages[place:]]
    opened = _opened(first, f"{summary}\n{placeholders.summary_end(language)}\n")
    return [*messages[:place], opened, *messages[place + 1 :]]


def _opened(message: Message, text: str) -> Message:
    """Return the user's message with `text` before the user's words, in the manner of its content."""
    if isinstance(message.raw.get("content"), str):
        return message.with_parts((Text(f"{text}\n{message.text}"),))
    return message.with_parts((Text(text), *message.parts))


def _is_stated(entry: str, stated: str, stated_names: frozenset[str]) -> bool:
    """Whether an entry is quoted whole, or each of its identifiers is named; by its names never where it names nothing."""
    names = identifiers(entry) if stated_names else ()
    return entry in stated or (bool(names) and stated_names.issuperset(names))


def _newest(entries: Iterable[str], chars: int) -> list[str]:
    """Return the distinct entries that fit into `chars`, of entries given newest first; oldest first."""
    kept: dict[str, None] = {}
    for entry in entries:
        if entry in kept:
            continue
        chars -= len(entry) + ENTRY_CHARS
        if chars < 0:
            break
        kept[entry] = None
    return list(kept)[::-1]


def _requests(messages: Sequence[Message]) -> Iterator[str]:
    """Yield what the user asked; other agents' output, which frameworks send as named user messages, is not the user's."""
    for message in messages:
        text = message.text
        if is_request(message) and message.name is None and text.strip():
            yield _quoted_line(text)


def _decisions(messages: Sequence[Message]) -> Iterator[str]:
    """Yield what the assistant said, by its first line."""
    for message in messages:
        if message.role == "assistant" and (text := message.text.strip()):
            yield _quoted_line(text.split("\n", 1)[0])


def _errors(messages: Sequence[Message]) -> Iterator[str]:
    """Yield the first error line of each result that has one, newest first, with the call that returned it."""
    calls = call_names(messages)
    for i in range(len(messages) - 1, -1, -1):
        for k, part in enumerate(messages[i].parts):
            line = _first_error_line(part.text) if isinstance(part, ToolResult) else None
            if line is not None:
                yield f"{placeholders.quoted(_call(*calls[i, k]))}: {_quoted_line(line)}"


def _first_error_line(text: str) -> str | None:
    return _error_lines.get(digest(text), lambda: next(error_lines(text), None), getsizeof)


def _call(name: str, given: str) -> str:
    return f"{name}({tool_arguments.digest(given)})" if name else ""


def _quoted_line(text: str) -> str:
    line = " ".join(text[: 2 * LONGEST_ENTRY_CHARS].split())
    if len(line) > LONGEST_ENTRY_CHARS:
        line = line[: LONGEST_ENTRY_CHARS - 1] + placeholders.GAP
    return placeholders.quoted(line)
