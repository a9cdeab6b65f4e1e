"""What a compaction cuts can be had again, whole, by the handles that stand in what is sent."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import called, every_format, hostile_texts, items_of, payloads

from ctx_hooks.compaction.cut_points import Thresholds
from ctx_hooks.compaction.history import history_of, message_stats
from ctx_hooks.compaction.prefix_stable import compacted
from ctx_hooks.conversation.handles import CutTexts, Retrievable, handle_of
from ctx_hooks.conversation.model import Text, ToolCall, ToolResult
from ctx_hooks.formats import WIRE_FORMATS, MessageReader
from ctx_hooks.policy.settings import Policy
from ctx_hooks.runtime import content_cache
from ctx_hooks.testing import agent_session
from ctx_hooks.tokens.budget import Budget
from ctx_hooks.tokens.counter import Counter

LANGUAGES = ("en", "zh")
HANDLE = re.compile(r"(?:ctx_retrieve\(|archived as |存档为 )([a-z2-7]{12})")


def outcome_of(messages, fmt, goal, policy=None, *, offered=True):
    """Return a compaction of the messages, and the texts that it has archived by their handles."""
    stored = {}
    counter = Counter("cl100k_base")
    reader = MessageReader(fmt, messages)
    history = history_of(reader, message_stats(reader, counter), counter)
    cut_texts = CutTexts(Retrievable(b"tenant", 7, {"name": "ctx_retrieve"} if offered else None, stored.update))
    budget = Budget(goal, max(goal, 8_000), counter, policy or Policy(), cut_texts=cut_texts)
    return compacted(history, Thresholds(budget, goal * 3 // 4))[0], stored


def texts_of(conversation):
    """Yield what the messages say, call and return, each with its kind."""
    for message in conversation.messages:
        for part in message.parts:
            if isinstance(part, (Text, ToolResult)):
                yield part.text
            elif isinstance(part, ToolCall):
                yield part.arguments


def named_in(outcome):
    return [handle for text in texts_of(outcome.conversation) for handle in HANDLE.findall(text)]


@every_format
@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("goal", [3_000, 6_000, 12_000, 20_000])
def test_archive_has_each_removed_line(fmt, language, goal):
    """At large goals results are shortened, at small ones whole exchanges go; long arguments and pasted texts as well."""
    content_cache.clear_all()
    messages = items_of(agent_session(fmt, turns=30, seed=5))
    outcome, stored = outcome_of(messages, fmt, goal, Policy(language=language))
    assert named_in(outcome)
    there = "\n".join([*texts_of(outcome.conversation), *stored.values()])
    for text in texts_of(WIRE_FORMATS[fmt].read(messages)):
        for line in filter(str.strip, text.splitlines()):
            assert line in there


@every_format
@given(data=st.data(), goal=st.integers(150, 3_000), offered=st.booleans(), language=st.sampled_from(LANGUAGES))
def test_sent_handles_name_archived_texts(fmt, data, goal, offered, language):
    """A later request, which finds the compaction in the cache, names the same handles."""
    content_cache.clear_all()
    messages = data.draw(payloads(fmt))
    outcome, stored = outcome_of(messages, fmt, goal, Policy(language=language), offered=offered)
    remembered, _ = outcome_of(messages, fmt, goal, Policy(language=language), offered=offered)
    assert set(named_in(outcome)) <= stored.keys()
    assert remembered.conversation == outcome.conversation
    assert outcome.offers == remembered.offers == (offered and bool(named_in(outcome)))
    assert all(handle_of(b"tenant", text) == handle for handle, text in stored.items())


def chat(*results):
    read = [m for n, text in enumerate(results) for m in called(text, f"c{n}", "fetch", {"page": n})]
    return [
        {"role": "user", "content": "Read all."},
        *read,
        {"role": "assistant", "content": "Read."},
        {"role": "user", "content": "And now?"},
    ]


@settings(max_examples=30)
@given(texts=st.lists(hostile_texts.map(lambda t: t * 9), min_size=2, max_size=6), goal=st.integers(120, 800))
def test_hostile_results_are_archived_to_the_letter(texts, goal):
    """Of what is shortened in its place the stored text is the very result; of what is removed each line is quoted."""
    content_cache.clear_all()
    outcome, archived = outcome_of(chat(*texts), "openai-chat", goal)
    sent, stored = list(texts_of(outcome.conversation)), archived.values()
    for text in texts:
        is_whole = text in stored or text in sent
        assert is_whole or all(any(line in whole for whole in stored) for line in text.splitlines())
