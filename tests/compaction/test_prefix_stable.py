"""Consecutive requests of one conversation share their prefix byte for byte until a compaction is really due."""

import json
import math
from statistics import mean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sessions import OWN
from strategies import FORMATS, every_format, items_of, payloads, spoken

from ctx_hooks.compaction.cut_points import Cut, Thresholds
from ctx_hooks.compaction.history import History, digest_of, message_stats, request_points, settled_length
from ctx_hooks.compaction.prefix_stable import compacted
from ctx_hooks.formats import WIRE_FORMATS, MessageReader
from ctx_hooks.policy.settings import Policy
from ctx_hooks.runtime import content_cache
from ctx_hooks.testing import agent_session
from ctx_hooks.tokens.budget import Budget
from ctx_hooks.tokens.counter import Counter


def sent(messages, fmt, *, trigger, target=None, policy=None):
    """Return what is sent for a request, message by message as bytes, and the newest compaction in it."""
    counter = Counter("cl100k_base")
    codec = WIRE_FORMATS[fmt]
    reader = MessageReader(fmt, messages)
    history = History(reader, message_stats(reader, counter), 0, digest_of(""))
    budget = Budget(trigger, max(trigger, 8_000), counter, policy or Policy())
    outcome, cut = compacted(history, Thresholds(budget, None if target == "auto" else target or trigger // 2))
    assert outcome.tokens_after == Counter("cl100k_base").conversation(outcome.conversation)
    return [json.dumps(m, sort_keys=True) for m in codec.write(outcome.conversation)], cut, outcome


def requests(messages, fmt):
    """Return the lengths at which the client of this conversation has sent a request."""
    return [n for n in request_points(message_stats(MessageReader(fmt, messages), Counter("cl100k_base"))) if n > 0]


def assert_stable(messages, fmt, trigger, target=None, policy=None):
    """Assert that the prefix is shared until a compaction is made of the messages up to now; return how many were."""
    before, done, compactions = [], 0, 0
    for n in requests(messages, fmt):
        now, cut, outcome = sent(messages[:n], fmt, trigger=trigger, target=target, policy=policy)
        assert outcome.fits or outcome.reason
        if cut.length == done:
            assert now[: len(before)] == before
        else:
            # A request that fits is left alone, though the first compaction is due with it by the margin.
            assert (settled(messages, fmt, n) if done else 1) <= cut.length <= n
            compactions += 1
        before, done = now, cut.length
    return compactions


def settled(messages, fmt, length):
    """Return how many of the first messages the next request begins with in any case."""
    return settled_length(message_stats(MessageReader(fmt, messages), Counter("cl100k_base")), length)


@every_format
def test_a_compaction_begins_with_what_has_settled_in_the_one_before(fmt):
    """But for a few: so far the provider's prompt cache holds it. Every process makes the same of it."""
    messages = items_of(agent_session(fmt, turns=60, thinking=fmt == "anthropic"))
    before, last, anew, shares = [], Cut(), 0, []
    for n in requests(messages, fmt):
        now, cut, outcome = sent(messages[:n], fmt, trigger=8_000, target="auto")
        assert outcome.fits
        if cut.length != last.length and cut.base is not None:
            shared = next(i for i, (a, b) in enumerate(zip(before, now, strict=False)) if a != b)
            shares.append(len("".join(before[:shared])) / len("".join(now)))
            content_cache.clear_all()
            assert sent(messages[:n], fmt, trigger=8_000, target="auto")[0] == now
        anew += cut.length != last.length and cut.base is None
        before, last = now, cut
    assert len(shares) > 2 * anew > 0
    assert mean(shares) > 0.4


@every_format
@settings(max_examples=5)
@given(data=st.data(), trigger=st.integers(200, 1_500), target=st.sampled_from([None, "auto"]))
def test_growing_conversations_are_stable(fmt, data, trigger, target):
    messages = data.draw(payloads(fmt))
    assert_stable(messages, fmt, trigger, target)


@settings(max_examples=5)
@given(
    remark_lines=st.integers(5, 30),
    request_fraction=st.floats(0.2, 0.8),
    trigger=st.integers(2_000, 4_000),
    target_fraction=st.floats(0.1, 0.6),
)
def test_a_compaction_that_leaves_more_than_its_sizes_tell_is_stable(
    remark_lines, request_fraction, trigger, target_fraction
):
    """No size tells that the first speaker's request is the one that is protected, where another user speaks last."""
    messages = [{"role": "user", "name": "ann", "content": "word " * int(trigger * request_fraction)}]
    for n in range(60):
        messages.append({"role": "assistant", "content": f"fine line {n}\n" * remark_lines})
        messages.append({"role": "user", "name": "bob", "content": f"please go on with {n}"})
    assert_stable(messages, "openai-chat", trigger, int(trigger * target_fraction), Policy())


def in_a_message(fmt, messages):
    return [*messages, spoken(fmt, "user", f"Step {len(messages)}. " + "Do not forget the list. " * 20)]


def beside_the_results(fmt, messages):
    """Return the same with the reminder beside the results that a request ends with, as Anthropic and Google allow."""
    *others, last = messages
    field, result, block = {
        "anthropic": ("content", '"tool_result"', {"type": "text"}),
        "gemini": ("parts", '"functionResponse"', {}),
    }[fmt]
    if result not in json.dumps(last):
        return messages
    text = f"Step {len(messages)}. " + "Do not forget the list. " * 20
    return [*others, {**last, field: [*last[field], {**block, "text": text}]}]


@pytest.mark.parametrize(
    ("fmt", "reminder"),
    [*((fmt, in_a_message) for fmt in FORMATS), ("anthropic", beside_the_results), ("gemini", beside_the_results)],
)
def test_a_reminder_that_the_next_request_lacks_rewrites_nothing(fmt, reminder):
    """What stays of a request is sent as it would be without the reminder; each request ends with its own."""
    messages = items_of(agent_session(fmt, turns=36))[:-1]  # the last is a user's
    policy = Policy()
    assert assert_stable(messages, fmt, 5_400, None, policy) >= 2
    for n in requests(messages, fmt):
        plain, plain_cut, _ = sent(messages[:n], fmt, trigger=5_400, policy=policy)
        now, cut, outcome = sent(reminder(fmt, messages[:n]), fmt, trigger=5_400, policy=policy)
        assert outcome.fits
        if not plain_cut.length:
            continue
        assert cut == plain_cut
        shared = next((i for i, (a, b) in enumerate(zip(plain, now, strict=False)) if a != b), len(plain))
        assert len(plain) - shared <= 1
        if reminder(fmt, messages[:n]) != messages[:n]:
            assert "Do not forget" in now[-1]


def test_a_cache_marker_that_moves_changes_nothing_but_itself():
    messages = items_of(agent_session("anthropic", turns=60))

    def marked(n):
        copied = json.loads(json.dumps(messages))
        content = copied[n]["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        blocks[-1]["cache_control"] = {"type": "ephemeral"}
        return [*copied[:n], {**copied[n], "content": blocks}, *copied[n + 1 :]]

    def bare(message):
        return message.replace('{"cache_control": {"type": "ephemeral"}, ', "{")

    one, _, _ = sent(marked(len(messages) - 3), "anthropic", trigger=9_000)
    other, _, _ = sent(messages, "anthropic", trigger=9_000)
    assert [bare(m) for m in one] == other
    assert sum("cache_control" in m for m in one) == 1


@pytest.mark.parametrize("file", OWN, ids=lambda f: f.stem)
def test_recorded_sessions_are_stable(file):
    session = json.loads(file.read_text(encoding="utf-8"))
    trigger, target = 6_000, 4_000
    assert_stable(session["messages"], session["format"], trigger, "auto")
    done = assert_stable(session["messages"], session["format"], trigger, target)
    total = sent(session["messages"], session["format"], trigger=trigger, target=target)[2].tokens_before
    assert 0 < done <= math.ceil(total / (trigger - target)) + 1
