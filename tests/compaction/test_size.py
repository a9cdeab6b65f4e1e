"""Work grows at most linearly in the number of messages."""

import pytest
from strategies import FORMATS, every_format, items_of, spoken, tool_round
from work import assert_linear

import ctx_hooks
from ctx_hooks import message_rules
from ctx_hooks.compaction import last_resort
from ctx_hooks.compaction.pipeline import STEPS
from ctx_hooks.compaction.selection import bm25
from ctx_hooks.formats import WIRE_FORMATS
from ctx_hooks.runtime import content_cache
from ctx_hooks.testing import agent_session
from ctx_hooks.tokens.budget import Budget
from ctx_hooks.tokens.counter import Counter


def dialogue(messages, fmt="openai-chat"):
    return [
        spoken(fmt, "assistant" if n % 2 else "user", f"turn {n} is about part_{n % 97} of module_{n % 31}")
        for n in range(messages - messages % 2 + 1)
    ]


def session(fmt, turns):
    return items_of(agent_session(fmt, turns=turns, result_chars=400))


def parallel(fmt, calls, *, ids=None, answered=True):
    """Return one answer of so many parallel calls and their results."""
    results = [(i, "done" if answered else None) for i in ids or [f"call_{n}" for n in range(calls)]]
    return [spoken(fmt, "user", "go"), *tool_round(fmt, results, name="f")]


def backwards(fmt, calls):
    """Return results in front of their calls."""
    first, *rest = parallel(fmt, calls)
    half = 1 if fmt != "openai-responses" else calls
    return [first, *rest[half:], *rest[:half]]


SHAPES = {
    "answered": parallel,
    "unanswered": lambda fmt, n: parallel(fmt, n, answered=False),
    "one id for all": lambda fmt, n: parallel(fmt, n, ids=["same"] * n),
    "backwards": backwards,
    "dialogue": lambda fmt, n: dialogue(n, fmt),
    "session": lambda fmt, n: session(fmt, n // 2),
}


@every_format
@pytest.mark.parametrize("shape", SHAPES)
def test_rules_and_repair(fmt, shape):
    assert_linear(lambda n: WIRE_FORMATS[fmt].read(SHAPES[shape](fmt, n)), message_rules.repair, 50)


@pytest.mark.parametrize(
    ("shape", "fmt", "target"),
    [
        ("dialogue", "openai-chat", None),
        ("answered", "anthropic", "auto"),
        *(("session", fmt, (None, "auto")[n % 2]) for n, fmt in enumerate(FORMATS)),
    ],
)
def test_compression(fmt, target, shape):
    def work(messages):
        ctx_hooks.compress(messages, format=fmt, budget_tokens=300, target_tokens=target)

    assert_linear(lambda n: SHAPES[shape](fmt, n), work, 30)


@pytest.mark.parametrize("fmt", ["openai-chat", "openai-responses"])  # a message is a turn, and a part of one
def test_steps_and_the_last_resort(fmt):
    for apply in (*(step.apply for step in STEPS), last_resort.compress):
        assert_linear(
            lambda n: WIRE_FORMATS[fmt].read([*session(fmt, n), *dialogue(n, fmt)]),
            lambda conversation, apply=apply: apply(conversation, Budget(600, 8_000, Counter("cl100k_base"))),
            40,
        )


def test_later_turns_of_a_conversation_do_not_read_again_what_was_cut(monkeypatch):
    """A compaction is indexed by the first turn that asks for something of it, not by each."""
    indexed = []
    read = bm25.stems
    monkeypatch.setattr(bm25, "stems", lambda text: indexed.append(text) or read(text))
    turns = dialogue(2_032)
    content_cache.clear_all()
    read_by_each = []
    for more in (0, 2, 4, 6):
        indexed.clear()
        longer = [*turns, *({"role": ("assistant", "user")[n % 2], "content": f"and part_{n}?"} for n in range(more))]
        ctx_hooks.compress(longer, format="openai-chat", budget_tokens=8_000, target_tokens="auto")
        read_by_each.append(len(indexed))
    assert max(read_by_each[:2]) > len(turns) / 2
    assert max(read_by_each[2:]) < len(turns) / 20
