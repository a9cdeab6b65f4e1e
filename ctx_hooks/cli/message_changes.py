"""What became of each message of a request: kept, changed, removed or added, with its size before and after, and why."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import groupby
from typing import Literal

from rich.table import Table

from ctx_hooks.cli.terminal import table
from ctx_hooks.compaction.history import digest_of
from ctx_hooks.conversation.conversation import Conversation
from ctx_hooks.conversation.model import Message, Text
from ctx_hooks.conversation.placeholders import MARK
from ctx_hooks.formats import WIRE_FORMATS

Became = Literal["kept", "changed", "removed", "added"]
Pair = tuple[int | None, int | None]
SIGNS: Mapping[Became, tuple[str, str]] = {"removed": ("-", "red"), "changed": ("~", "yellow"), "added": ("+", "green")}
SHARED_CHARS = 60
"""Two texts that share this much of their beginning or end are forms of one text: cuts keep one of the two."""


@dataclass(frozen=True, slots=True)
class MessageChange:
    """A message of the request, or one that is sent with it: its numbers there, from 1, and None if it is not there.

    `who` is its role, or the tool that it calls or whose result it is.
    """

    received: int | None
    sent: int | None
    who: str
    became: Became
    tokens_before: int
    tokens_after: int
    why: str = ""


def changes_of(
    received: Conversation, sent: Conversation, size: Callable[[Message], int], why_removed: str
) -> list[MessageChange]:
    """Return what became of each message, in order; `size` returns a message's tokens."""
    tools = {call.id: call.name for message in received.messages for call in message.calls}
    before, after = (
        [digest_of(message) for message in WIRE_FORMATS[conversation.format].write(conversation)]
        for conversation in (received, sent)
    )
    found: list[MessageChange] = []
    for tag, i, i_end, j, j_end in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag == "equal":
            pairs: Iterator[Pair] = zip(range(i, i_end), range(j, j_end), strict=True)
        else:
            pairs = _pairs(received.messages, range(i, i_end), sent.messages, range(j, j_end))
        for old, new in pairs:
            was = received.messages[old] if old is not None else None
            is_now = sent.messages[new] if new is not None else None
            sizes = (size(was) if was else 0, size(is_now) if is_now else 0)
            numbers = (None if old is None else old + 1, None if new is None else new + 1)
            became: Became = "kept" if tag == "equal" else "removed" if is_now is None else "changed" if was else "added"
            why = "" if tag == "equal" else why_removed if is_now is None else _why(was, is_now)
            found.append(MessageChange(*numbers, _who(was or is_now, tools), became, *sizes, why))
    return found


def _pairs(received: Sequence[Message], olds: range, sent: Sequence[Message], news: range) -> Iterator[Pair]:
    """Yield the messages of two ranges, those that are forms of one message together."""
    start = olds.start
    for new in news:
        match = next((old for old in range(start, olds.stop) if _is_form_of(received[old], sent[new])), None)
        if match is None:
            yield None, new
            continue
        yield from ((old, None) for old in range(start, match))
        yield match, new
        start = match + 1
    yield from ((old, None) for old in range(start, olds.stop))


def _is_form_of(was: Message, is_now: Message) -> bool:
    """Whether a message is a form of another: it has the same calls and results, or shares text."""
    if was.role != is_now.role:
        return False
    ids, ids_now = ([*(c.id for c in m.calls), *(r.call_id for r in m.results)] for m in (was, is_now))
    if ids or ids_now:
        return ids == ids_now
    text, text_now = was.text, is_now.text
    return text[:SHARED_CHARS] in text_now or text[-SHARED_CHARS:] in text_now


def _why(was: Message | None, is_now: Message) -> str:
    """Return why a message is sent in another form, or at all; a new placeholder says so itself."""
    known = set(lines_of(was)) if was else set()
    notices = (line for line in lines_of(is_now) if MARK in line and line not in known)
    notice = next((line[line.index(MARK) + len(MARK) :].strip(" \"'") for line in notices), "")
    if was is None or len(is_now.text) > len(was.text):
        return notice.split(". ", maxsplit=1)[0] or "a message rule of the provider requires it"
    return "shortened, with a notice" if notice else "without older reasoning, or written shorter"


def lines_of(message: Message) -> Iterator[str]:
    """Yield the lines of a message's texts, results and calls."""
    for part in message.parts:
        if isinstance(part, Text):
            yield from part.text.splitlines()
    for result in message.results:
        yield from result.text.splitlines()
    for call in message.calls:
        yield call.arguments


def _who(message: Message | None, tools: Mapping[str, str]) -> str:
    if message is None or not (message.calls or message.results):
        return message.role if message else ""
    if message.calls:
        return f"call of {', '.join(dict.fromkeys(call.name for call in message.calls))}"
    names = dict.fromkeys(tools.get(result.call_id, "a call") for result in message.results)
    return f"result of {', '.join(names)}"


def table_of(messages: Sequence[MessageChange]) -> Table:
    """Return a table with one row for consecutive changes with the same outcome and reason, and one for what is kept."""
    shown = table("", "message", "who", "before", "after", "why", right=(3, 4), folded=(5,))
    for (became, why), changes in groupby((m for m in messages if m.became != "kept"), key=lambda m: (m.became, m.why)):
        alike = list(changes)
        sign, style = SIGNS[became]
        numbers = [str(m.received) for m in alike if m.received is not None] or ["new"]
        who = {m.who for m in alike}
        whose = who.pop() if len(who) == 1 else f"{len(alike)} messages"
        shown.add_row(sign, "-".join(dict.fromkeys((numbers[0], numbers[-1]))), whose, *_sizes(alike), why, style=style)
    kept = [m for m in messages if m.became == "kept"]
    shown.add_row("", "", f"{len(kept)} others", *_sizes(kept), "sent unchanged", style="dim")
    return shown


def _sizes(messages: Sequence[MessageChange]) -> tuple[str, str]:
    return f"{sum(m.tokens_before for m in messages):,}", f"{sum(m.tokens_after for m in messages):,}"
