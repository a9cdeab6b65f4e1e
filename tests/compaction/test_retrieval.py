"""Compacted text that a later user turn asks for is appended to that turn, quoted; the cached prefix is unchanged."""

from __future__ import annotations

import json

import pytest

from ctx_hooks.compaction.cut_points import Thresholds
from ctx_hooks.compaction.history import History, history_of
from ctx_hooks.compaction.message_index import chain, digest_of, message_stats
from ctx_hooks.compaction.prefix_stable import compacted
from ctx_hooks.compaction.retrieval import LATER_TURN_FRACTION, Retrieval, reserved_tokens, share_tokens
from ctx_hooks.formats import CODECS
from ctx_hooks.formats.reader import MessageReader
from ctx_hooks.policy.settings import Policy
from ctx_hooks.tokens.budget import Budget
from ctx_hooks.tokens.counter import Counter


def sent(messages, *, trigger, target, policy=None):
    """Return what is sent for a request, message by message as JSON, how often it was compacted, and the outcome."""
    counter, reader = Counter("cl100k_base"), MessageReader("openai-chat", messages)
    history = History(reader, message_stats(reader, counter), 0, digest_of(""))
    outcome, cut = compacted(history, Thresholds(Budget(trigger, 8_000, counter, policy or Policy()), target))
    written = CODECS["openai-chat"].write(outcome.conversation)
    return [json.dumps(m, sort_keys=True) for m in written], cut.number, outcome


def chatter(n):
    return {
        "role": ("user", "assistant")[n % 2],
        "content": f"Nothing much happened on day {n}, we talked about this and that.",
    }


def test_what_a_user_turn_asks_for_is_appended_to_it_and_stays():
    talk = [chatter(n) for n in range(400)]
    talk[21]["content"] = "Mr Albrecht tuned grandmother's piano in spring."
    question = {"role": "user", "content": "Who tuned the piano?"}
    messages = [*talk, question]
    asked, compactions, outcome = sent(messages, trigger=3_000, target=400)
    assert compactions
    assert "Who tuned the piano?" in asked[-1]
    assert "Mr Albrecht" in "".join(asked)
    assert outcome.fits
    later = [*messages, {"role": "assistant", "content": "Mr Albrecht."}, {"role": "user", "content": "Thanks."}]
    assert sent(later, trigger=3_000, target=400)[0][: len(asked)] == asked


def test_retrieval_can_be_switched_off():
    messages = [*(chatter(n) for n in range(300)), {"role": "user", "content": "What happened on day 17?"}]
    last = sent(messages, trigger=3_000, target=1_000, policy=Policy(retrieval_fraction=0))[0][-1]
    assert json.loads(last) == messages[-1]


def test_a_turn_that_is_longer_than_what_it_could_be_given_brings_its_own():
    """A pasted file shares words with everything: it is no question."""
    talk = [chatter(n) for n in range(300)]
    talk[21]["content"] = "Mr Albrecht tuned grandmother's piano in spring."
    talk[41]["content"] = "Mrs Winter painted the old harbour twice."
    pasted = {"role": "user", "content": "Who tuned the piano?\n" + "A line of a pasted file.\n" * 100}
    assert json.loads(sent([*talk, pasted], trigger=4_000, target=1_000)[0][-1]) == pasted
    question = {"role": "user", "content": "Who painted the harbour?"}
    later = [*talk, pasted, {"role": "assistant", "content": "I see."}, question]
    assert "Mrs Winter" in sent(later, trigger=4_000, target=1_000)[0][-1]


@pytest.mark.parametrize("goal", [400, 3_000, 100_000])
def test_each_later_turn_may_have_half_a_share_more(goal):
    budget = Budget(goal, 200_000, Counter("cl100k_base"))
    assert share_tokens(budget) <= goal * budget.policy.retrieval_fraction
    reserved = [reserved_tokens(turns, budget) for turns in range(5)]
    assert reserved[0] == 0
    assert reserved[1] == int(share_tokens(budget))
    assert reserved == sorted(reserved)
    assert reserved[4] == int(share_tokens(budget) * (1 + 3 * LATER_TURN_FRACTION))


@pytest.mark.parametrize("turns", [1, 2, 10])
def test_all_turns_together_get_no_more_than_is_reserved_for_them(turns):
    talk = [chatter(n) for n in range(200)]
    asked = range(21, 21 + 2 * turns, 2)
    for n in asked:
        talk[n]["content"] = f"The key number {n} of the green cupboard hangs beside door number {n}. " * 3
    questions = [{"role": "user", "content": f"Where does key {n} of the cupboard hang?"} for n in asked]
    answers = [{"role": "assistant", "content": "Let me see."}] * turns
    later = [m for pair in zip(questions, answers, strict=True) for m in pair]
    budget = Budget(4_000, 8_000, Counter("cl100k_base"), Policy(retrieval_fraction=0.02))
    reader = MessageReader("openai-chat", [*talk, *later])
    history = history_of(reader, message_stats(reader, budget.counter), budget.counter)
    texts = Retrieval(history, len(talk), (), chain(b"", history.index), budget).texts()
    assert texts
    assert set(texts) <= set(range(len(talk), len(history.index), 2))
    assert sum(map(budget.counter.text, texts.values())) <= reserved_tokens(turns, budget)


def test_without_a_compaction_nothing_is_retrieved():
    budget = Budget(4_000, 8_000, Counter("cl100k_base"))
    reader = MessageReader("openai-chat", [chatter(n) for n in range(20)])
    history = history_of(reader, message_stats(reader, budget.counter), budget.counter)
    assert Retrieval(history, 0, (), chain(b"", history.index), budget).texts() == {}
