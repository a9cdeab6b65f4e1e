"""The assistant's answers stay in their place: the ends of the answers that close a turn, and the newest ones whole.

Nobody can follow questions without their answers. In recorded sessions of agents these answers are .005 to .03 of the
context. In plain dialogue half of the text is answers: `select.py` keeps the turns that fit the newest request.
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
    """Return the kept spans of the assistant's older answers, in order, by position of the text."""
    counter = budget.counter
    texts = dict(_answers(conversation))
    tokens_per_char = {position: counter.text(text) / len(text) for position, text in texts.items()}
    room_tokens = ANSWERS_FRACTION * _tools_fraction(conversation, budget) * free_tokens(conversation, budget)
    kept: dict[Position, Spans] = {}
    for form in (_ends, lambda text: ((0, len(text)),)):
        for position, text in texts.items():
            spans = form(text)
            price = (chars_of(spans) - chars_of(kept.get(position, ()))) * tokens_per_char[position]
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


def _tools_fraction(conversation: Conversation, budget: Budget) -> float:
    """Return the fraction of calls and their results in the older exchanges."""
    older = conversation.older_exchanges
    tokens = [budget.counter.messages((conversation.messages[i] for i in e), conversation.format) for e in older]
    used = sum(tokens[n] for n, exchange in enumerate(older) if _uses_tools(conversation, exchange))
    return used / max(1, sum(tokens))


def _uses_tools(conversation: Conversation, exchange: range) -> bool:
    return any(conversation.messages[i].calls or conversation.messages[i].results for i in exchange)


def _ends(text: str) -> Spans:
    """Return the spans of a text's two ends, of a short text the whole."""
    head, tail = head_end(text, END_CHARS), tail_start(text, END_CHARS)
    return ((0, head), (tail, len(text))) if head < tail else ((0, len(text)),)
