"""Recorded sessions: every budget is met and no rule is broken."""

import json

import pytest
from sessions import FILES, OWN

import ctx_hooks
from ctx_hooks import message_rules
from ctx_hooks.formats import WIRE_FORMATS

BUDGETS = [2_000, 4_000, 8_000] if FILES == OWN else [8_000, 16_000, 32_000]
"""Each of a file's first sessions has another one, in the next file it has the next one."""


@pytest.mark.parametrize(("n", "file"), enumerate(FILES), ids=lambda f: getattr(f, "stem", ""))
def test_real_session_meets_budget_and_rules(n, file):
    lines = file.read_text(encoding="utf-8").splitlines()
    for line, budget in zip(lines, BUDGETS[n % 3 :] + BUDGETS[: n % 3], strict=False):
        session = json.loads(line)
        messages, fmt = session["messages"], session["format"]
        while messages and messages[-1].get("role") == "assistant":
            messages = messages[:-1]
        result = ctx_hooks.compress(messages, format=fmt, budget_tokens=budget, tools=session.get("tools"))
        codec = WIRE_FORMATS[fmt]
        assert codec.write(codec.read(messages)) == messages
        assert result.fits or not result.changed or "protected" in result.reason
        if result.fits:
            assert result.tokens_after <= budget
        broken = {r.rule for r in message_rules.repair(codec.read(messages))[1]}
        assert {r.rule for r in message_rules.repair(codec.read(result.messages))[1]} <= broken
