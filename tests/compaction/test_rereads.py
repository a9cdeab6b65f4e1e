"""What compaction makes an agent ask again is found in its requests, and nothing where nothing was removed."""

import json
import random
from itertools import chain

import pytest
from engine_requests import to
from strategies import FIELDS, called, every_format, spoken, tool_round

from ctx_hooks.attempts.attempt import Limits
from ctx_hooks.attempts.request import Request
from ctx_hooks.compaction.cut_points import Thresholds
from ctx_hooks.compaction.history import call_digest, history_of, message_stats
from ctx_hooks.compaction.rereads import rereads
from ctx_hooks.compaction.summary.model_written import NO_SUMMARIES
from ctx_hooks.conversation.model import ToolCall
from ctx_hooks.flow import engine
from ctx_hooks.formats import MessageReader
from ctx_hooks.runtime.deadline import Deadline, Timings
from ctx_hooks.testing.conversations import source_text
from ctx_hooks.tokens.budget import Budget
from ctx_hooks.tokens.counter import Counter

STEPS = 120


def decided(fmt, items, window_tokens):
    target = to(window_tokens)
    return engine.decide(Request(fmt, {FIELDS[fmt]: items}), target, Limits(target.window), Deadline(), Timings())


def agent(fmt, seed, window_tokens):
    """Let an agent read files, some of them again, and edit some.

    Return how often it read again what it saw no more and nobody had changed, and how often that is found.
    """
    draw = random.Random(seed)
    items, texts, shown = [spoken(fmt, "user", "Review the project and note every risk.")], {}, ""
    truth = found = 0
    for n in range(STEPS):
        kind = draw.choices(["new", "again", "edit"], [5, 4, 1])[0] if texts else "new"
        path = f"src/part_{n}/file_{n}.py" if kind == "new" else draw.choice(list(texts))
        if kind == "edit":
            name, arguments, result = "edit_file", {"path": path, "old": "a", "new": f"b{n}"}, "Done."
            texts[path] = ""  # read again, it is another text
        else:
            name, arguments = "read_file", dict(draw.sample([("path", path), ("limit", 200)], 2))
            truth += bool(texts.get(path)) and texts[path] not in shown
            result = texts[path] = texts.get(path) or f"file {n}: " + source_text(draw, draw.randrange(500, 3_000))
        items = [*items, *tool_round(fmt, [(f"call_{n}", result)], name=name, arguments=arguments)]
        done = decided(fmt, items, window_tokens)
        found += sum(done.attempt.rereads.values())
        shown = json.dumps(done.decision.changes.get(FIELDS[fmt], items)).replace("\\n", "\n")
    return truth, found


@every_format
def test_each_reread_is_found_and_no_other(fmt):
    truth, found = agent(fmt, 1, 8_000)
    assert truth > 20
    assert abs(found - truth) <= 0.02 * truth


@every_format
def test_whole_session_has_no_rereads(fmt):
    assert agent(fmt, 7, 10_000_000) == (0, 0)


def history(*rounds):
    counter = Counter("o200k_base")
    reader = MessageReader("openai-chat", [{"role": "user", "content": "Go on."}, *chain.from_iterable(rounds)])
    return history_of(reader, message_stats(reader, counter), counter), Thresholds(Budget(900, 8_000, counter), 400)


OLD = called("red " * 500, "old", "read_file", {"path": "a/x.py"})
FILL = [called("blue " * 500, f"c{n}", "grep", {"pattern": str(n)}) for n in range(3)]
AGAIN = called("red " * 500, "new", "read_file", '{"path":  "a/x.py"}')


@pytest.mark.parametrize(("rounds", "found"), [
    ([OLD, *FILL, AGAIN], 1),
    ([OLD, *FILL, called("Done.", "e", "edit_file", {"path": "/srv/ann/a/x.py"}), AGAIN], 0),
    ([OLD, *FILL, called("Done.", "e", "edit_file", {"path": "a/y.py"}), AGAIN], 1),
    ([OLD, *FILL, called("", "e", "bash", {"command": "echo 1 > a/x.py"}), AGAIN], 0),
    ([OLD, *FILL, AGAIN[:1]], 0),
    ([OLD[:1], *FILL, AGAIN], 0),
    ([called("red " * 500, "old", "read_file", {"path": "b"}), *FILL, AGAIN], 0),
    ([called("Done. " * 500, "old", "write_file", {"path": "a"}), *FILL,
      called("Done.", "w", "write_file", {"path": "a"})], 0),
    ([called("red " * 500, "old", "get_seat", {"id": 1}), *FILL, called("red", "w", "get_seat", {"id": 1})], 1),
    ([called("red " * 500, "old", "get_seat", {"id": 1}), *FILL, called("ok", "b", "book_seat", {"id": 1}),
      called("red", "w", "get_seat", {"id": 1})], 0),
], ids=["read again", "edited", "another edited", "written by a command", "not answered yet", "never answered",
        "another file",
        "written again", "looked up again", "looked up after an act"])  # fmt: skip
def test_only_compaction_makes_a_reread(rounds, found):
    assert sum(rereads(*history(*rounds), NO_SUMMARIES).values()) == found


@pytest.mark.parametrize(
    "text", ["\ud800", "[" * 100_000, '{"a": ' * 500 + "1" + "}" * 500, "x" * 1_000_000, '{"a": "\\ud800"}', ""]
)
def test_digest_tells_calls_apart_whatever_their_layout(text):
    digests = [
        call_digest(ToolCall("i", name, given)) for name, given in (("read", text), ("read", text + "x"), ("grep", text))
    ]
    assert len(set(digests)) == 3
    one, other = (ToolCall("i", "read", given) for given in ('{"a": 1, "b": {"c": 2, "d": 3}}', '{"b":{"d":3,"c":2},"a":1}'))
    assert call_digest(one) == call_digest(other)
