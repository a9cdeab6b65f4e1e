"""The deterministic record that stands for removed exchanges."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_hooks import arguments, notices
from ctx_hooks.conversation import Message, is_request
from ctx_hooks.error_lines import error_lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ctx_hooks.budget import Budget

RECORD_FRACTION = 0.05
MOST_RECORD_TOKENS = 2_000
LEAST_RECORD_TOKENS = 250
MOST_RECORD_FRACTION = 0.15
SHARES = {"requests": 0.40, "files": 0.20, "commands": 0.15, "decisions": 0.15, "errors": 0.10}
LONGEST_ENTRY_CHARS = 300
"""A longer request is no short one: its beginning is recorded."""
CHARS_PER_TOKEN = 4
ENTRY_CHARS = 3
"""The dash, the blank and the line break of an entry."""


def record_tokens(budget: Budget) -> float:
    """Return about how many tokens a record may have."""
    share = max(LEAST_RECORD_TOKENS, budget.goal_tokens * RECORD_FRACTION)
    return min(MOST_RECORD_TOKENS, share, budget.goal_tokens * MOST_RECORD_FRACTION)


def record_of(removed: Sequence[Message], budget: Budget) -> str:
    """Return the record of the removed messages: a heading, then what was asked, touched, run, decided and broken.

    Within each section the newest entries win the space, and what a section leaves goes to the next; they are listed in
    their order.
    """
    language = budget.policy.language
    titles = notices.RECORD_SECTIONS[language]
    chars = record_tokens(budget) * CHARS_PER_TOKEN
    newest_first = removed[::-1]
    entries = {
        "requests": _requests(newest_first),
        "files": (p for m in newest_first for c in m.calls for p in arguments.paths(c.arguments)),
        "commands": (p for m in newest_first for c in m.calls for p in arguments.commands(c.arguments)),
        "decisions": _decisions(newest_first),
        "errors": _errors(newest_first),
    }
    lines = [notices.record_heading(len(removed), language)]
    unspent = 0.0
    for section, found in entries.items():
        room = chars * SHARES[section] + unspent
        kept = _newest(found, int(room))
        unspent = room - sum(len(entry) + ENTRY_CHARS for entry in kept)
        if kept:
            lines += [f"{titles[section]}:", *(f"- {entry}" for entry in kept)]
    return "\n".join(lines)


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
    for message in messages:
        if is_request(message) and (text := _one_line(message.text)) and notices.MARK not in text:
            yield text


def _decisions(messages: Sequence[Message]) -> Iterator[str]:
    """Yield what the assistant said, by its first line."""
    for message in messages:
        if message.role == "assistant" and (text := message.text.strip()):
            yield _one_line(text.split("\n", 1)[0])


def _errors(messages: Sequence[Message]) -> Iterator[str]:
    """Yield the first error line of each result that has one."""
    for message in messages:
        for result in message.results:
            line = next(error_lines(result.text), None)
            if line is not None:
                yield _one_line(line)


def _one_line(text: str) -> str:
    line = " ".join(text[: 2 * LONGEST_ENTRY_CHARS].split())
    return line if len(line) <= LONGEST_ENTRY_CHARS else line[: LONGEST_ENTRY_CHARS - 1] + notices.GAP
