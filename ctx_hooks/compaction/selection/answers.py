"""Ends of the assistant's answers that close a turn stay in their place: nobody can follow questions without answers.

In recorded sessions of agents they are .005 to .03 of the context; in plain dialogue half of it: `select.py` chooses.
"""

from collections.abc import Iterator, Mapping

from ctx_hooks.compaction.selection.user_words import Position, Spans, chars_of, free_tokens
from ctx_hooks.conversation.conversation import Conversation
from ctx_hooks.conversation.model import Text, is_request
from ctx_hooks.texts.pieces import head_end, tail_start
from ctx_hooks.tokens.budget import Budget

ANSWERS_FRACTION = 0.15
"""The answers' share of the goal's free room in a conversation of calls and results; with dialogue proportionally less."""
END_CHARS = 400
"""The kept length at either end of a long answer: its subject, and its question or conclusion."""


def answers(conversation: Conversation, budget: Budget) -> Mapping[Position, Spans]:
    """Return the kept spans of the assistant's older answers, the newest first, by position of the text."""
    older = conversation.older_exchanges
    tokens = [budget.counter.messages((conversation.messages[i] for i in e), conversation.format) for e in older]
    used_tokens = sum(tokens[n] for n, exchange in enumerate(older) if _uses_tools(conversation, exchange))
    room_tokens = ANSWERS_FRACTION * used_tokens / max(1, sum(tokens)) * free_tokens(conversation, budget)
    kept: dict[Position, Spans] = {}
    for position, text in _answers(conversation):
        head, tail = head_end(text, END_CHARS), tail_start(text, END_CHARS)
        spans = ((0, head), (tail, len(text))) if head < tail else ((0, len(text)),)
        price = chars_of(spans) * budget.counter.text(text) / len(text)
        if price <= room_tokens:
            room_tokens -= price
            kept[position] = spans
    return kept


def _answers(conversation: Conversation) -> Iterator[tuple[Position, str]]:
    """Yield the texts that end the assistant's turns, newest first."""
    messages = conversation.messages
    for exchange in reversed(conversation.older_exchanges):
        behind = exchange.stop
        if behind == len(messages) or not is_request(messages[behind]) or _uses_tools(conversation, exchange):
            continue
        for i in exchange:
            for k, part in enumerate(messages[i].parts if messages[i].role == "assistant" else ()):
                if isinstance(part, Text) and part.text.strip() and not (part.is_cut or part.is_signed):
                    yield (i, k), part.text


def _uses_tools(conversation: Conversation, exchange: range) -> bool:
    return any(conversation.messages[i].calls or conversation.messages[i].results for i in exchange)
