"""The time of whatever reads a text grows at most linearly with it, whatever the text."""

import time

import pytest
from hostile_texts import behind_header, kinds

from ctx_hooks.addons.summaries.check import unknown_names
from ctx_hooks.compaction import tool_texts
from ctx_hooks.compaction.selection import bm25, segments
from ctx_hooks.compaction.steps.results import on_arrival
from ctx_hooks.conversation.model import Message, Text, ToolCall, ToolResult
from ctx_hooks.runtime import content_cache
from ctx_hooks.texts.identifiers import identifiers
from ctx_hooks.texts.pieces import error_lines
from ctx_hooks.tokens.budget import Budget
from ctx_hooks.tokens.counter import Counter

CHARS = 40_000
MOST_SECONDS = 3.0
"""For one reader: 30 times what the slowest takes, an eighth of what all pairs of characters take at 30 ns each."""

BUDGET = Budget(4_000, 4_000, Counter("o200k_base"))


def called(text):
    call, result = ToolCall("c", "read", "{}"), ToolResult("c", (Text(text),))
    return [Message("assistant", (call,)), Message("tool", (result,))]


READERS = {
    "cut": lambda text: on_arrival(called(text).__getitem__, 1, BUDGET), "identifiers": identifiers,
    "unknown names": lambda text: unknown_names(text, [text, "nothing of it"]), "segments": segments.segments,
    "stems": bm25.stems,
    "error lines": lambda text: list(error_lines(text)), "a call's digest": tool_texts.digest,
    "tokens": Counter("o200k_base").text,
}  # fmt: skip


def seconds(read, text):
    """Return the processor time of one reading: what else runs on the machine does not count."""
    content_cache.clear_all()
    started = time.thread_time()
    read(text)
    return time.thread_time() - started


@pytest.mark.parametrize("kind", kinds.values(), ids=kinds)
def test_no_text_takes_quadratic_time(kind):
    for text in (kind(CHARS), behind_header(kind)(CHARS)):
        assert [name for name, read in READERS.items() if seconds(read, text) > MOST_SECONDS] == []
