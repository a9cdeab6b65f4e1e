"""The history of a request as compaction gets it: counted, or estimated where counting would take too long."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_hooks.compaction import last_resort
from ctx_hooks.compaction.history import History, history_of
from ctx_hooks.compaction.message_index import message_stats
from ctx_hooks.tokens.units import LocalTokens

if TYPE_CHECKING:
    from ctx_hooks.request.request import Request
    from ctx_hooks.tokens.counter import Counter


def counted_history(request: Request, counter: Counter) -> History:
    """Return the request's history as `counter` counts it.

    Raises:
        MalformedConversationError: the request holds no conversation.
        CompressionTimeoutError: the counter's deadline has passed.
    """
    messages = request.messages
    return history_of(messages, message_stats(messages, counter), counter, continues=request.continues_stored_history)


def estimated_history(request: Request) -> History:
    """Return the request's history with estimated figures, of which none teaches anything."""
    conversation = request.conversation()
    preamble_tokens = LocalTokens(sum(map(last_resort.text_tokens, conversation.preamble)))
    return History(request.messages, last_resort.estimated_stats(conversation), preamble_tokens, b"")
