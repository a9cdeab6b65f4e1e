"""The records of removed messages: heading, extracts or summary, and the place where the messages were."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise

from ctx_hooks.compaction.summary.extractive import MOST_SUMMARY_TOKENS, Removed, sections
from ctx_hooks.compaction.tool_texts import call_names
from ctx_hooks.conversation import placeholders
from ctx_hooks.conversation.conversation import Conversation
from ctx_hooks.conversation.model import (
    REMOVED_MESSAGE,
    Message,
    Text,
    ToolCall,
    ToolResult,
    is_request,
    replaces_history,
    stays,
)
from ctx_hooks.conversation.placeholders import Below
from ctx_hooks.formats import WIRE_FORMATS
from ctx_hooks.policy.settings import Language
from ctx_hooks.tokens.budget import Budget


def extractive_records(
    removed: Removed, budget: Budget, most_tokens: float = MOST_SUMMARY_TOKENS, files_tokens: int = 0
) -> dict[range, str]:
    """Return the records by gap, in `most_tokens` beside users' words and the newest changed files up to `files_tokens`."""
    return _headed(sections(removed, budget, most_tokens, files_tokens), removed, budget)


def bare_records(removed: Removed, budget: Budget) -> dict[range, str]:
    """Return the line that says how many messages were removed."""
    return _headed([[] for _ in removed.gaps], removed, budget)


def written_records(text: str, removed: Removed, budget: Budget) -> dict[range, str]:
    """Return the records with a model's summary in the newest: a poor or older summary loses no later text.

    The extracts come first: users' words only grow, so the prompt cache has the beginning of the previous record.
    """
    return _headed(sections(removed, budget), removed, budget, written=text)


def _headed(found: Sequence[Sequence[str]], removed: Removed, budget: Budget, written: str = "") -> dict[range, str]:
    """Return the lines of each gap below its heading.

    The record before a gap without entries counts its messages, too: a heading for each would cost as much as a dialogue's
    turns. A model's summary (`written`) ends the newest record.
    """
    language, newest = budget.policy.language, len(found) - 1
    recorded = [n for n, lines in enumerate(found) if lines or n == 0 or (written and n == newest)]
    records = {}
    for n, end in pairwise([*recorded, len(found)]):
        there = [removed.messages[i] for gap in removed.gaps[n:end] for i in gap]
        messages = [m for m in there if m.text not in REMOVED_MESSAGE.values()]
        quotes = bool(found[n]) and found[n][0].startswith(placeholders.ENTRY)  # lists have titles of their own
        below: Below = "summary" if written and n == newest else "record" if quotes else "nothing"
        whole = budget.reference("\n\n".join(_transcript(messages, language))) if budget.archives else None
        first_line = placeholders.dropped(len(messages), language, whole, is_scattered=end - n > 1, below=below)
        lines = [first_line, *found[n]]
        if below == "summary":
            extracts = [placeholders.EXTRACTS[language], *found[n]] if found[n] else []
            lines = [*extracts, first_line, placeholders.block_quoted(written)]
        records[removed.gaps[n]] = "\n".join(lines)
    return records


def _transcript(messages: Sequence[Message], language: Language) -> Iterator[str]:
    """Yield the archive's transcript: original texts, calls and results; no line of theirs can imitate a source's line."""
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


def gaps_of(gone: Collection[int]) -> tuple[range, ...]:
    """Return the runs of consecutive indices, in order."""
    starts = sorted(i for i in gone if i - 1 not in gone)
    stops = sorted(i + 1 for i in gone if i + 1 not in gone)
    return tuple(map(range, starts, stops))


def with_records(
    conversation: Conversation,
    forms: Mapping[int, Message],
    gone: Collection[int],
    records: Mapping[range, str],
    language: Language,
) -> list[Message]:
    """Return the rest of a conversation, with each record in the place of the messages that it replaces.

    Directly after a user's words a record joins the same message, unless another user's message follows. Before a user's
    words it joins that message if nobody or the assistant spoke last. So it has no neighbour of its own role. Else it is a
    separate message: the assistant's before a user's words, otherwise a user's. Pinned and settled messages and those of
    other agents stay unchanged. A provider's own compaction already replaces the messages before it. `forms` are the
    shortened forms of some messages by index, `gone` the indices of the removed ones.
    """
    messages, codec = conversation.messages, WIRE_FORMATS[conversation.format]
    replaced = max((i for i, m in enumerate(conversation.messages) if replaces_history(m)), default=-1)
    texts = {gap.stop: text for gap, text in records.items() if gap.stop > replaced}
    sent: list[Message] = []
    speaker, may_add = "", False
    for i in (i for i in range(len(messages) + 1) if i not in gone):
        behind = forms.get(i, messages[i]) if i < len(messages) else None
        is_asked = behind is not None and is_request(behind)
        text = texts.get(i)
        if text and may_add and not is_asked:
            sent[-1] = _with_text(sent[-1], behind=f"\n{text}")
        elif text and behind is not None and _is_open(behind) and speaker in ("", "assistant"):
            behind = _with_text(behind, before=f"{text}\n{placeholders.line('end', language)}\n")
        elif text:
            sent.append(codec.new_message("assistant" if is_asked and speaker else "user", text))
        if behind is not None:
            sent.append(behind)
            speaker = speaker if behind.role in ("system", "other") else behind.role
            may_add = i >= conversation.settled and _is_open(behind)
    return sent


def _is_open(message: Message) -> bool:
    return is_request(message) and not (message.results or stays(message)) and message.name is None


def _with_text(message: Message, before: str = "", behind: str = "") -> Message:
    """Return the user's message with text before or behind the user's words, in the form of its content."""
    if isinstance(message.raw.get("content"), str):
        return message.with_parts((Text("\n".join(filter(None, (before, message.text, behind)))),))
    return message.with_parts((*[Text(before)] * bool(before), *message.parts, *[Text(behind)] * bool(behind)))
