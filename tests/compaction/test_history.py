"""The sizes in the index of a history are those of its messages."""

import pytest
from strategies import items_of

from ctx_hooks.compaction.history import history_of
from ctx_hooks.compaction.message_index import message_stats
from ctx_hooks.formats.reader import MessageReader
from ctx_hooks.testing import agent_session
from ctx_hooks.tokens.counter import Counter


@pytest.mark.parametrize("fmt", ["openai-chat", "anthropic", "openai-responses", "gemini"])
def test_a_counter_that_knows_them_counts_what_another_counts(fmt):
    reader = MessageReader(fmt, items_of(agent_session(fmt, turns=5, result_chars=500)), ("Be brief.",))
    known, counting = Counter("o200k_base"), Counter("o200k_base")
    history = history_of(reader, message_stats(reader, known), known)
    conversation = history.conversation(known)
    assert len(conversation.messages) == len(history.index)
    assert known.conversation(conversation) == counting.conversation(conversation) == history.tokens
    whole, half = conversation.messages, conversation.messages[::2]
    assert counting.messages(half, fmt) < counting.messages(whole, fmt)
    assert known.conversation(conversation.with_messages(half)) == counting.conversation(conversation.with_messages(half))
