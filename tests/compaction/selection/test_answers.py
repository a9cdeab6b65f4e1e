"""A session reads as the conversation that it was: questions that stay have their answers behind them."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import called, texts

import ctx_hooks
from ctx_hooks.compaction.selection.user_words import ANSWERS_FRACTION, answers
from ctx_hooks.formats import WIRE_FORMATS
from ctx_hooks.tokens.budget import Budget
from ctx_hooks.tokens.counter import Counter

COUNTER = Counter("o200k_base")
SOURCE = "\n".join(f"def step_{n}(value):\n    return value + table_{n}[{n * 7}]\n" for n in range(120))


def session(answered, calls=3):
    """Return an agent's session: of each turn a question, some calls with long results, and the answer."""
    messages = [{"role": "system", "content": "You repair code."}]
    for n, answer in enumerate(answered):
        messages.append({"role": "user", "content": f"Question {n}: what does module {n} do?"})
        for call in range(calls):
            messages += called(f"# {n} {call}\n{SOURCE}", f"c_{n}_{call}", arguments={"path": f"src/module_{n}_{call}.py"})
        messages.append({"role": "assistant", "content": answer})
    return [*messages, {"role": "user", "content": "Which of them reads the ledger?"}, *called(SOURCE, "last")]


def compressed(messages, budget_tokens):
    return ctx_hooks.compress(messages, format="openai-chat", budget_tokens=budget_tokens, target_tokens="auto")


def test_each_question_is_answered_where_it_was_asked():
    said = [f"Module {n} keeps the table of step {n}.\n\nI would rename it to `tables_{n}.py`; shall I?" for n in range(14)]
    sent = compressed(session(said), 16_000)
    assert sent.tokens_after < sent.tokens_before
    spoken = [(m["role"], m["content"]) for m in sent.messages if not m.get("tool_calls")]
    for n, answer in enumerate(said):
        place = spoken.index(("assistant", answer))
        asked = next(text for role, text in reversed(spoken[:place]) if role == "user")
        assert f"Question {n}: what does module {n} do?" in asked


@pytest.mark.parametrize("line", ["A sentence that nobody asks for again, of many words.\n", "one_line_without_an_end_"])
def test_of_long_answers_the_ends_stay(line):
    said = [f"First {n}: the plan is as follows.\n{line * 200}\nLast {n}: shall I begin with step {n}?" for n in range(4)]
    sent = compressed(session(said, calls=8), 16_000)
    kept = [m["content"] for m in sent.messages if m["role"] == "assistant" and not m.get("tool_calls")]
    assert all(f"First {n}:" in text and f"begin with step {n}?" in text for n, text in enumerate(kept))
    assert len(kept[1]) < len(said[1]) / 2


@settings(max_examples=40)
@given(st.lists(texts, min_size=1, max_size=8), st.integers(1_000, 20_000))
def test_they_are_spans_of_the_texts_within_their_share(said, goal_tokens):
    payload = session([text or "-" for text in said])
    conversation = WIRE_FORMATS["openai-chat"].read(payload)
    kept = answers(conversation, Budget(goal_tokens=goal_tokens, window_tokens=2 * goal_tokens, counter=COUNTER))
    for (i, k), spans in kept.items():
        text = conversation.messages[i].parts[k].text
        assert conversation.messages[i].role == "assistant"
        assert spans[0][0] == 0
        assert spans[-1][1] == len(text)
        assert all(a < b for a, b in spans)
        assert all(b < c for (_, b), (c, _) in pairwise(spans))
    tokens = sum(
        COUNTER.text(conversation.messages[i].parts[k].text[a:b]) for (i, k), spans in kept.items() for a, b in spans
    )
    assert tokens <= ANSWERS_FRACTION * goal_tokens * 1.25  # single ends may be denser than their text


def test_plain_dialogue_is_left_to_the_newest_request():
    chat = [{"role": ("user", "assistant")[n % 2], "content": f"Remark {n} about nothing. " * 20} for n in range(99)]
    conversation = WIRE_FORMATS["openai-chat"].read(chat)
    assert not answers(conversation, Budget(goal_tokens=4_000, window_tokens=8_000, counter=COUNTER))
