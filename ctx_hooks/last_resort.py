"""What is sent where a compression would take too long: whole exchanges are dropped, oldest first, without counting.

Time and memory are linear in the request, with a small factor: each text is measured once and no vocabulary is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_hooks import invariants, notices
from ctx_hooks.conversation import Media, Message, Part, ToolCall, ToolResult, is_request
from ctx_hooks.extensions import CompressionTimeoutEvent, emit
from ctx_hooks.ledger import Entry
from ctx_hooks.pipeline import Outcome, StepReport
from ctx_hooks.protection import older_exchanges, stays
from ctx_hooks.replay import History
from ctx_hooks.steps.newest_loop import LEAST_KEPT_CHARS, capped
from ctx_hooks.tokens.counter import CALL_TOKENS, MESSAGE_TOKENS, RESULT_TOKENS
from ctx_hooks.tokens.media import media_tokens
from ctx_hooks.wire import CODECS

if TYPE_CHECKING:
    from ctx_hooks.budget import Budget
    from ctx_hooks.conversation import Conversation, Format
    from ctx_hooks.policy.settings import Language
    from ctx_hooks.request import Request

NAME = "last_resort"
BYTES_PER_TOKEN = 2
"""English, code and JSON have three to four UTF-8 bytes a token, hex digits and base64 about two: an estimate that is
rarely too small, where one that is too large costs some history."""
MOST_BYTES_PER_CHAR = 4
"""UTF-8's longest character."""
NOTICE_CHARS = 250
"""The longest notice that is put into a text, with its line breaks."""
MOST_REQUEST_BYTES = 32_000_000
"""Larger requests come here at once. The largest windows, of two million tokens, hold about 8 MB of text; beyond four
times that nearly all is dropped anyway, and choosing what stays would take some ten times the request in memory."""
MOST_MESSAGES = 200_000
"""The same for the number of messages: at 40 tokens a message they would fill four windows of two million tokens."""


def is_too_large(request: Request) -> bool:
    """Whether the request is not to be compressed in any other way."""
    items = request.items
    return request.exceeds(MOST_REQUEST_BYTES) or (isinstance(items, (list, tuple)) and len(items) > MOST_MESSAGES)


def message_tokens(message: Message, fmt: Format) -> int:
    """Return the estimated tokens of a message: rarely less than what a vocabulary counts."""
    return MESSAGE_TOKENS + text_tokens(message.name or "") + sum(_part_tokens(p, fmt) for p in message.parts)


def text_tokens(text: str) -> int:
    """Return the estimated tokens of a text."""
    size = len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
    return -(-size // BYTES_PER_TOKEN)


def estimated_tokens(conversation: Conversation) -> int:
    """Return the estimated tokens of the whole request."""
    messages = sum(message_tokens(m, conversation.format) for m in conversation.messages)
    return messages + sum(map(text_tokens, conversation.preamble))


def estimated_entries(conversation: Conversation) -> tuple[Entry, ...]:
    """Return an entry for each message whose tokens are all guessed, and whose digest is empty: nothing remembers it."""
    sizes = (message_tokens(m, conversation.format) for m in conversation.messages)
    return tuple(
        Entry(b"", tokens, m.role, is_request(m), stays=stays(m), guessed_tokens=tokens)
        for tokens, m in zip(sizes, conversation.messages, strict=True)
    )


def history_of(request: Request) -> History:
    """Return the request's history with estimated figures."""
    conversation = request.conversation()
    preamble_tokens = sum(map(text_tokens, conversation.preamble))
    return History(conversation.part, estimated_entries(conversation), preamble_tokens, b"")


def applied(request: Request, budget: Budget, model: str) -> Outcome:
    """Return the request without its oldest turns, and tell the listeners."""
    outcome = compress(request.conversation(), budget, continues=request.continues_stored_history)
    seconds = None if is_too_large(request) else budget.policy.compression_timeout_seconds
    figures = (outcome.tokens_before, outcome.tokens_after, budget.goal_tokens)
    emit(CompressionTimeoutEvent("compression_timeout", model, request.format, *figures, seconds))
    return outcome


def compress(conversation: Conversation, budget: Budget, *, continues: bool = False) -> Outcome:
    """Return the conversation with its newest exchanges alone, as many as the goal holds by estimate.

    System text, pinned messages, the newest request and the newest tool loop stay; where these are too large, the loop's
    results are cut if the budget allows that. A message says how many were removed.
    """
    before = estimated_tokens(conversation)
    if before <= budget.goal_tokens:
        return Outcome(conversation, before, before, fits=True, steps=())
    repair = budget.policy.repair != "off"
    whole = invariants.repair(conversation, continues=continues)[0] if repair else conversation
    sizes = [message_tokens(m, whole.format) for m in whole.messages]
    room = budget.goal_tokens - sum(map(text_tokens, whole.preamble)) - text_tokens("\n" * NOTICE_CHARS) - sum(sizes)
    gone: set[int] = set()
    for exchange in older_exchanges(whole):
        if room >= 0:
            break
        gone.update(exchange)
        room += sum(sizes[i] for i in exchange)
    kept = [m for i, m in enumerate(whole.messages) if i not in gone]
    if gone:
        place = next((i for i, m in enumerate(kept) if m.role != "system"), len(kept))
        kept.insert(place, _placeholder(len(gone), whole.format, budget.policy.language))
    sent = whole.with_messages(tuple(kept))
    if room < 0 and budget.cut_newest:
        sent = _with_cut_results(sent, -room, budget)
    if repair:
        sent, _ = invariants.repair(sent, continues=continues)
    after = estimated_tokens(sent)
    fits = after <= budget.goal_tokens
    reason = None if fits else f"about {after} tokens are protected, the budget is {budget.goal_tokens}"
    if sent is conversation:
        return Outcome(sent, before, after, fits, (), reason)
    touched = len({id(m) for m in conversation.messages} - {id(m) for m in sent.messages})
    report = StepReport(NAME, before - after, touched, "a compression would have taken too long")
    return Outcome(sent, before, after, fits, (report,), reason)


def _part_tokens(part: Part, fmt: Format) -> int:
    if isinstance(part, ToolCall):
        return CALL_TOKENS + text_tokens(part.name) + text_tokens(part.arguments)
    if isinstance(part, ToolResult):
        return RESULT_TOKENS + sum(_part_tokens(p, fmt) for p in part.parts)
    return media_tokens(part, fmt) if isinstance(part, Media) else text_tokens(part.text)


def _with_cut_results(conversation: Conversation, excess_tokens: int, budget: Budget) -> Conversation:
    """Return the conversation with the results of its newest loop cut to equal shares of what is left for them."""
    texts = [r.text for i in conversation.newest_loop for r in conversation.messages[i].results]
    if not texts:
        return conversation
    left_tokens = sum(map(text_tokens, texts)) - excess_tokens
    bytes_per_char = 1 if all(t.isascii() for t in texts) else MOST_BYTES_PER_CHAR
    chars = left_tokens * BYTES_PER_TOKEN // len(texts) // bytes_per_char - NOTICE_CHARS
    return capped(conversation, max(LEAST_KEPT_CHARS, chars), budget)


def _placeholder(messages: int, fmt: Format, language: Language) -> Message:
    return CODECS[fmt].user_message(notices.dropped(messages, language))
