"""What is known of messages by their content is what reading them tells, however it is looked up."""

import pytest
from strategies import every_format, items_of

from ctx_hooks.compaction.history import chain, digest_behind, history_of, message_stats
from ctx_hooks.errors import MalformedConversationError
from ctx_hooks.formats import MessageReader
from ctx_hooks.runtime import content_cache
from ctx_hooks.testing import agent_session
from ctx_hooks.tokens.counter import Counter


def stats_of(messages, fmt="openai-chat"):
    return message_stats(MessageReader(fmt, messages), Counter("cl100k_base"))


def said(n):
    return {"role": ("user", "assistant")[n % 2], "content": f"Remark number {n}?"}


@every_format
def test_a_history_has_the_stats_of_its_messages_each_for_itself(fmt):
    messages = items_of(agent_session(fmt, turns=40, result_chars=200))
    content_cache.clear_all()
    alone = [stats for i in range(len(messages)) for stats in stats_of(messages[i : i + 1], fmt)]
    for _ in range(2):  # as it is read, and as it is remembered
        assert list(stats_of(messages, fmt)) == alone
        assert list(stats_of(messages[:-1], fmt)) == alone[:-1]


def test_a_message_that_changes_is_read_again_wherever_it_stands():
    messages = [said(n) for n in range(90)]
    before = stats_of(messages)
    for n in (0, 44, len(messages) - 1):
        changed = [*messages[:n], {**messages[n], "content": "something longer, and no question"}, *messages[n + 1 :]]
        assert [i for i, (a, b) in enumerate(zip(before, stats_of(changed), strict=True)) if a != b] == [n]


def test_what_json_cannot_hold_is_known_all_the_same():
    messages = [{**said(n), "seen": {n}} for n in range(32)]
    assert stats_of(messages) == stats_of(messages)
    assert len({stats.digest for stats in stats_of(messages)}) == 32


def test_what_is_no_message_is_told_by_its_place():
    with pytest.raises(MalformedConversationError, match=r"messages\[33\]"):
        stats_of([*(said(n) for n in range(33)), "no message", *(said(n) for n in range(32))])


def test_the_digest_of_a_beginning_is_that_of_the_chain():
    index = stats_of([said(n) for n in range(5)])
    assert tuple(digest_behind(b"start", index[:n]) for n in range(6)) == chain(b"start", index)


@every_format
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
