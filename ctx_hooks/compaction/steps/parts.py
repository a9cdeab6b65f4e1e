"""Steps that replace or shorten single parts: repeated texts, older reasoning and media, and a long request."""

from dataclasses import replace
from typing import TypeVar

from ctx_hooks.compaction.selection.apply import kept_segments
from ctx_hooks.compaction.selection.blocks import block_segments, names_of
from ctx_hooks.compaction.steps import Step
from ctx_hooks.compaction.summary.actions import action_of
from ctx_hooks.compaction.tool_texts import call_names, with_text
from ctx_hooks.conversation import placeholders
from ctx_hooks.conversation.conversation import Conversation
from ctx_hooks.conversation.model import Media, Part, Reasoning, Text, ToolCall, ToolResult
from ctx_hooks.policy.settings import Language
from ctx_hooks.runtime.content_cache import digest
from ctx_hooks.tokens.budget import Budget

SHORTEST_CHARS = 300
"""A placeholder of about twenty tokens saves nothing in a shorter text."""
BEGINNING_CHARS = 80
"""Length of a system text's beginning that its placeholder quotes."""
REQUEST_FRACTION = 0.7
"""The newest request's share of the room beside fixed text; the rest is for the record and the newest exchanges."""
HEAD_FRACTION = 2 / 3
"""The goal is mostly at the beginning, and what to do first at the end."""
LEAST_CHARS, SECTION_CHARS = 6_000, 1_500
"""A shorter request stays whole, whatever the budget; a longer section is divided at its line ends."""
PLACEHOLDER_CHARS = 400
"""The longest placeholder without the names of files."""
T = TypeVar("T", bound=Part)


def _once(conversation: Conversation, budget: Budget) -> Conversation:
    return _results_once(_system_texts_once(conversation, budget), budget)


def _system_texts_once(conversation: Conversation, budget: Budget) -> Conversation:
    """Replace later copies by a placeholder with their beginning: Codex sends its instructions again in a continued session.

    If another earlier text has the same beginning, the copy stays: the placeholder would be ambiguous.
    """
    tokens, language = budget.counter.text, budget.policy.language
    said: dict[str, set[str]] = {}
    messages = list(conversation.messages)
    for i, message in enumerate(messages):
        if message.role != "system":
            continue
        text, texts = message.text, [p for p in message.parts if isinstance(p, Text)]
        beginning = text[:BEGINNING_CHARS]
        alike = said.setdefault(beginning, set())
        if alike == {text} and i >= conversation.settled and not message.pinned and len(texts) == len(message.parts):
            placeholder = placeholders.line("system", language, begins=placeholders.quoted(f"{beginning}{placeholders.GAP}"))
            if tokens(placeholder) < tokens(text):
                messages[i] = message.with_parts((replace(texts[-1], text=placeholder),))
        alike.add(text)
    return conversation.with_messages(tuple(messages))


def _results_once(conversation: Conversation, budget: Budget) -> Conversation:
    older, returned_by = conversation.older_messages, dict[object, str]()
    short: dict[tuple[int, int], ToolResult] = {}
    for (i, k), (tool, arguments) in reversed(call_names(conversation.messages).items()):
        result = conversation.messages[i].parts[k]
        if not isinstance(result, ToolResult) or not _comparable(result):
            continue
        if action_of(ToolCall("", tool, arguments), result).failed:
            continue  # how each call failed is worth more than the room
        text = tuple([digest(p.text) for p in result.parts if isinstance(p, Text)])
        if i in older and text in returned_by:
            short[i, k] = with_text(result, placeholders.line("repeated", budget.policy.language, tool=returned_by[text]))
        else:
            returned_by[text] = tool
    return conversation.with_messages(
        tuple(
            message.with_parts(tuple(short.get((i, k), part) for k, part in enumerate(message.parts)))
            for i, message in enumerate(conversation.messages)
        )
    )


def _comparable(result: ToolResult) -> bool:
    """Whether the result has only text, is long enough and whole, and no error: so no other part of it can differ."""
    texts = [p.text for p in result.parts if isinstance(p, Text)]
    is_whole_text = len(texts) == len(result.parts) and not result.is_cut
    return is_whole_text and not result.is_error and sum(map(len, texts)) >= SHORTEST_CHARS


def _without_reasoning(conversation: Conversation, budget: Budget) -> Conversation:
    messages, stay = list(conversation.messages), conversation.protected
    for i, message in enumerate(messages):
        # A message with only reasoning would become empty, which providers refuse; it goes with its exchange.
        if i not in stay and not all(isinstance(p, Reasoning) for p in message.parts):
            left = (
                conversation.reasoning_left(i, p, is_wanted=budget.wants_reasoning) if isinstance(p, Reasoning) else p
                for p in message.parts
            )
            messages[i] = message.with_parts(tuple(p for p in left if p is not None))
    return conversation.with_messages(tuple(messages))


def _without_media(conversation: Conversation, budget: Budget) -> Conversation:
    """Replace the media of users and tools, oldest first, until the goal is met; the assistant's belong to its answer."""
    messages, counter = list(conversation.messages), budget.counter
    excess = budget.excess(conversation)
    for i in sorted(conversation.older_messages):
        message = messages[i]
        if excess > 0 and message.role != "assistant":
            short = message.with_parts(tuple([_line(part, budget.policy.language) for part in message.parts]))
            saved = counter.message(message, conversation.format) - counter.message(short, conversation.format)
            if saved > 0:
                excess -= saved
                messages[i] = short
    return conversation.with_messages(tuple(messages))


def _line(part: T, language: Language) -> T | Text:
    if isinstance(part, ToolResult):
        parts = tuple([_line(p, language) for p in part.parts])
        return part if parts == part.parts else replace(part, parts=parts)
    if isinstance(part, Media):
        return Text(placeholders.line("media", language, kind=part.kind, size=part.size_chars))
    return part


def longest_request_tokens(goal_tokens: int, fixed_tokens: int) -> int:
    """Return the most tokens that the newest request may have beside fixed text."""
    return int(max(0, goal_tokens - fixed_tokens) * REQUEST_FRACTION)


def _with_shorter_request(conversation: Conversation, budget: Budget) -> Conversation:
    i, messages, counter = conversation.newest_request, conversation.messages, budget.counter
    if i is None or i < conversation.settled or all(m.role != "assistant" for m in messages[i + 1 :]):
        return conversation
    fixed = conversation.with_messages(tuple(m for m in messages if m.role == "system"))
    room_tokens = longest_request_tokens(budget.goal_tokens, counter.conversation(fixed))
    excess_tokens = counter.message(messages[i], conversation.format) - room_tokens
    texts = [p for p in messages[i].parts if isinstance(p, Text) and not (p.is_cut or p.is_signed)]
    if excess_tokens <= 0 or messages[i].pinned or not texts:
        return conversation
    longest = max(texts, key=lambda part: len(part.text))
    left = 1 - excess_tokens / counter.text(longest.text)
    short = _shortened(longest, max(LEAST_CHARS, int(left * len(longest.text)) - PLACEHOLDER_CHARS), budget)
    request = messages[i].with_parts(tuple(short if part is longest else part for part in messages[i].parts))
    return conversation.with_messages((*messages[:i], request, *messages[i + 1 :]))


def _shortened(part: Text, most_chars: int, budget: Budget) -> Text:
    """Return a text with the sections at its beginning and end that have at most `most_chars`."""
    text, language = part.text, budget.policy.language
    spans = block_segments(text, SECTION_CHARS).spans
    head_end = most_chars * HEAD_FRACTION
    tail_start = len(text) - most_chars * (1 - HEAD_FRACTION)
    kept = frozenset(n for n, (start, end) in enumerate(spans) if end <= head_end or start >= tail_start)
    gone = [span for n, span in enumerate(spans) if n not in kept]
    if not gone:
        return part
    chars, reference = sum(b - a for a, b in gone), budget.reference(part.original_text)
    placeholder = placeholders.blocks_left_out(names_of(text, gone), chars, len(text), language, reference)
    return Text(kept_segments(text, placeholder, spans, kept, in_place=True), part.raw, came_text=part.original_text)


REPEATS = Step("repeats", "another copy of the same text stands in the conversation", _once)
REASONING = Step("older_reasoning", "providers do not need the thinking of finished turns", _without_reasoning)
MEDIA = Step("older_media", "older media become a line", _without_media)
LONG_REQUEST = Step(
    "long_request", "the record and the newest exchanges need room beside a long request", _with_shorter_request
)
