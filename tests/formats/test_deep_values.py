"""A value that is nested too deeply to be read is text for every room, and is sent as it was."""

import json

import pytest
from strategies import every_format, spoken, tool_round

import ctx_hooks

LONG = "\n".join(f"row {n}: value {n * 7919 % 1000}" for n in range(400))
every_depth = pytest.mark.parametrize("depth", [99, 101, 255, 500])


def session(fmt, depth, rounds):
    value = "leaf"
    for _ in range(depth):
        value = {"a": value}
    exchanges = [m for n in range(rounds) for m in tool_round(fmt, [(f"c{n}", f"{n}: {LONG}")], arguments=value)]
    return [spoken(fmt, "user", "Go."), *exchanges, spoken(fmt, "user", "Go.")]


@every_format
@every_depth
def test_deep_arguments_are_compressed(fmt, depth):
    result = ctx_hooks.compress(session(fmt, depth, 6), format=fmt, budget_tokens=5_000)
    assert result.fits
    assert result.tokens_before > 10_000


@every_format
@every_depth
def test_deep_arguments_are_sent_unchanged(fmt, depth):
    sent = ctx_hooks.compress(session(fmt, depth, 1), format=fmt, budget_tokens=50_000).messages
    assert json.dumps(sent) == json.dumps(session(fmt, depth, 1))
