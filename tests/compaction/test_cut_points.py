"""Where compactions are due follows from sizes and roles alone: never at other points, never without need, never read."""

from itertools import accumulate, pairwise
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import items_of

from ctx_hooks.compaction.cut_points import (
    COMPACTION_FIELDS,
    LEAST_FREE_FRACTION,
    MOST_GENERATIONS,
    NEWER_FRACTION,
    Cut,
    CutPoints,
    Thresholds,
)
from ctx_hooks.compaction.history import History, MessageStats, history_of, message_stats, request_points, settled_length
from ctx_hooks.compaction.prefix_stable import compacted
from ctx_hooks.formats import MessageReader
from ctx_hooks.policy.settings import Policy
from ctx_hooks.runtime import content_cache
from ctx_hooks.testing import agent_session
from ctx_hooks.tokens.budget import Budget
from ctx_hooks.tokens.counter import Counter

UNREADABLE = MessageReader("openai-chat", [])
"""Holds no message at all: whoever reads one fails."""
TRIGGER_TOKENS, TARGET_TOKENS = 1_000, 400


def stats(role, tokens, *, stays=False):
    return MessageStats(b"", tokens, role, role == "user", stays=stays)


roles = st.sampled_from(["user", "assistant", "tool"])
indices = st.lists(st.builds(stats, roles, st.integers(1, 300)), max_size=60)


def points_of(
    index, *, preamble_tokens=0, policy=None, target_tokens=TARGET_TOKENS, arrived_tokens=None, trigger=TRIGGER_TOKENS
):
    budget = Budget(trigger, 2 * trigger, Counter("cl100k_base"), policy or Policy())
    tokens = arrived_tokens or [m.tokens for m in index]
    history = History(UNREADABLE, tuple(index), preamble_tokens, b"")
    return CutPoints(history, tokens, Thresholds(budget, target_tokens))


def turns(count, tokens=100):
    return [stats(("user", "assistant")[n % 2], tokens) for n in range(count)]


def test_a_request_that_fits_is_compacted_nowhere():
    assert points_of(turns(10)).newest() == Cut()
    assert points_of(turns(11)).newest() == Cut(11, TARGET_TOKENS, 1)


def test_nothing_is_due_up_to_the_trigger_less_the_margin():
    assert points_of(turns(10, 98)).newest_after(Cut()) == Cut()
    assert points_of(turns(10, 99)).newest_after(Cut()) == Cut(10, TARGET_TOKENS, 1)


@pytest.mark.parametrize("reminder", [stats("user", 20), stats("tool", 20)._replace(beside_tokens=20)])
def test_what_the_next_request_may_lack_makes_no_compaction_due_within_the_margin(reminder):
    loop = [*turns(9), stats("assistant", 50), stats("tool", 30)]
    ends = {"user": [*loop, reminder], "tool": [*loop[:-1], reminder._replace(tokens=50)]}[reminder.role]
    assert points_of(ends).newest_after(Cut()) == Cut()
    assert points_of([stats("user", 1), *loop]).newest_after(Cut()) == Cut(12, TARGET_TOKENS, 1)
    cut = points_of([stats("user", 1), *ends]).newest_after(Cut())
    assert cut == Cut(12, TARGET_TOKENS, 1)


@given(indices)
def test_a_compaction_is_due_only_where_the_client_has_sent_a_request(index):
    cut = points_of(index).newest_after(Cut())
    assert cut.length == 0 or cut.length in {settled_length(index, length) for length in request_points(index)}


@given(indices, st.integers(0, 60))
def test_a_longer_conversation_has_the_cuts_of_its_beginning(index, more):
    """What was sent for an earlier request was decided as it would be now: otherwise prefixes would differ."""
    beginning = index[: max(0, len(index) - more)]
    lengths = [n for n in request_points(beginning) if n < len(beginning) or index[n : n + 1] == []]
    if not lengths:
        return
    earlier = points_of(beginning[: lengths[-1]]).newest_after(Cut())
    now = points_of(index)
    assert now.newest_after(earlier).number >= earlier.number
    assert now.newest_after(earlier) == now.newest_after(Cut())


@given(indices)
def test_what_follows_the_newest_cut_fits_at_every_request(index):
    cut = points_of(index).newest_after(Cut())
    sums = (0, *accumulate(m.tokens for m in index))
    for length in request_points(index):
        if settled_length(index, length) > cut.length:
            assert cut.tokens + sums[length] - sums[cut.length] <= TRIGGER_TOKENS


@given(indices, st.integers(1, 300), st.integers(0, 60))
def test_a_target_follows_from_what_is_compacted_alone(index, tokens, more):
    """Whatever comes behind it: every worker, and every later request, computes the same."""
    shorter, longer = [*index, stats("user", tokens)], [*index, stats("user", tokens), *turns(more, 250)[1:]]
    length = len(shorter)
    points = [points_of(i, target_tokens=None) for i in (shorter, longer)]
    assert points[0].target_tokens(Cut(length)) == points[1].target_tokens(Cut(length))


def test_target_has_room_for_the_newest_loop():
    loop = [stats("user", 100), stats("assistant", 2_000), stats("assistant", 2_000), stats("tool", 2_000)]
    older_tokens = (10_000 - 6_100) // 2
    assert points_of(loop, target_tokens=None, trigger=10_000).target_tokens(Cut(4)) == 6_100 + older_tokens


def bases_of(index, target_tokens, trigger=10 * TRIGGER_TOKENS):
    """Return of each compaction that a growing session had how many it was made behind, its length and what it leaves."""
    points = points_of(index, target_tokens=target_tokens, trigger=trigger)
    lengths = request_points(index)
    cuts = dict.fromkeys(points_of(index[:n], target_tokens=target_tokens, trigger=trigger).newest() for n in lengths)
    return [(len(cut.bases()), cut.length, points.target_tokens(cut)) for cut in cuts if cut.length]


def test_a_few_compactions_are_made_behind_each_other_and_each_leaves_a_share_of_what_came_since():
    loop = [stats("user", 200), *(stats(("assistant", "tool")[n % 2], 300) for n in range(150))]
    generations, lengths, targets = zip(*bases_of(loop, None), strict=True)
    few = generations.index(0, 1)
    assert 2 < few <= MOST_GENERATIONS + 1
    assert generations[: 2 * few] == (*range(few), *range(few))
    came = [300 * (after - before) for before, after in pairwise(lengths[:few])]
    assert [after - before for before, after in pairwise(targets[:few])] == [int(NEWER_FRACTION * c) for c in came]
    assert targets[few - 1] <= 10 * TRIGGER_TOKENS * (1 - LEAST_FREE_FRACTION)


class ReadPolicy(Policy):
    """A policy whose fields are listed as they are looked at."""

    looked_at: ClassVar[set[str]] = set()

    def __getattribute__(self, name):
        if name in Policy.model_fields:
            ReadPolicy.looked_at.add(name)
        return super().__getattribute__(name)


def test_a_compaction_reads_no_field_of_the_policy_that_its_digest_lacks():
    content_cache.clear_all()
    ReadPolicy.looked_at.clear()
    for fmt in ("openai-chat", "anthropic", "openai-responses", "gemini"):
        policy = ReadPolicy(tool_results={"max_chars": 2_000})
        session = items_of(agent_session(fmt, turns=30, thinking=fmt == "anthropic"))
        messages = MessageReader(fmt, session * 2)
        counter = Counter("cl100k_base")
        history = history_of(messages, message_stats(messages, counter), counter)
        for budget_tokens in (1_000, 9_000):
            outcome, _ = compacted(history, Thresholds(Budget(budget_tokens, 12_000, counter, policy)))
            assert outcome.steps
    assert ReadPolicy.looked_at == COMPACTION_FIELDS


OTHER = {"fallbacks": "last", "mode": "observe", "rescue_attempts": 1, "max_turns": 3}
READ = {"language": "zh", "keep_recent": 9}


def digest_of_policy(**fields):
    return Thresholds(Budget(1_000, 2_000, Counter("cl100k_base"), Policy(**fields))).digest()


def test_only_a_field_on_which_a_compaction_depends_changes_its_digest():
    assert {digest_of_policy(**{name: value}) for name, value in OTHER.items()} == {digest_of_policy()}
    assert len({digest_of_policy(**{name: value}) for name, value in READ.items()} | {digest_of_policy()}) == len(READ) + 1
    assert digest_of_policy(language="en") == digest_of_policy()
