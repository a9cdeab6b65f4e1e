"""The public functions: a budget is met, what is protected stays, and bad input has one name."""

import json
import os
import subprocess
import sys
from functools import partial

import pytest
from strategies import called, every_format, items_of

import ctx_hooks
from ctx_hooks.errors import ArgumentError, CtxHooksError
from ctx_hooks.testing import agent_session, violations


def call_and_result(text, n=0):
    return called(text, f"c{n}", "run", {"command": f"job {n}"})


@every_format
def test_compression_uses_its_budget(fmt):
    items = items_of(agent_session(fmt, turns=60, result_chars=4_000))
    for budget in range(6_000, 20_000, 4_000):
        result = ctx_hooks.compress(items, format=fmt, budget_tokens=budget)
        assert 0.85 * budget <= result.tokens_after <= budget


@pytest.mark.parametrize("messages", [
    [
        {"role": "user", "content": "look"},
        *call_and_result(json.dumps({"rows": [{"id": i, "v": "x" * 20} for i in range(60_000)]})),
        {"role": "user", "content": "and now?"},
    ],
    [{"role": ("user", "assistant")[i % 2], "content": f"turn {i} says little"} for i in range(1_001)],
    [
        {"role": "user", "content": "先看日志"}, *call_and_result("数据库连接超时,请检查网络配置。\n" * 4_000),
        {"role": "user", "content": "总结一下"},
    ],
    [
        {"role": "user", "content": "small"}, {"role": "assistant", "content": "a"},
        {"role": "user", "content": "paste: " + "word soup\n" * 60_000}, {"role": "assistant", "content": "b"},
        {"role": "user", "content": "small again"},
    ],
    [{"role": "user", "content": "\ud800 odd"}, *call_and_result("y" * 10_000_000)],
], ids=["one-line JSON of 2 MB", "a thousand tiny turns", "CJK", "one giant paste", "newest loop of 10 MB"])  # fmt: skip
def test_extreme_shapes_meet_their_budget(messages):
    result = ctx_hooks.compress(messages, format="openai-chat", budget_tokens=3_000)
    assert result.fits, result.reason
    assert result.tokens_after <= 3_000
    assert violations("openai-chat", {"messages": result.messages}) == []


def test_protected_text_stays_above_budget():
    request = "the user's own words " * 2_000
    result = ctx_hooks.compress([{"role": "user", "content": request}], format="openai-chat", budget_tokens=1_000)
    assert not result.fits
    assert "1000" in result.reason
    assert result.tokens_after == result.tokens_before
    assert result.messages[0]["content"] == request


@pytest.mark.parametrize("messages", [None, "text", [1], [["role"]], {"role": "user"}], ids=str)
@pytest.mark.parametrize(
    "function", [ctx_hooks.repair, partial(ctx_hooks.compress, budget_tokens=9)], ids=["repair", "compress"]
)
def test_bad_input_raises_own_error(function, messages):
    with pytest.raises(CtxHooksError):
        function(messages, format="anthropic")


@pytest.mark.parametrize(("given", "expected"), [
    ({"format": "openai"}, "openai-chat, "), ({"budget_tokens": -1}, "budget_tokens is -1; expected a positive"),
    ({"target_tokens": "half"}, "target_tokens"), ({"window_tokens": 0}, "window_tokens"),
], ids=str)  # fmt: skip
def test_wrong_arguments_name_expected_values(given, expected):
    with pytest.raises(ArgumentError, match=expected):
        ctx_hooks.compress([], **{"format": "openai-chat", **given})


ALONE = """
import sys
seen = []
sys.addaudithook(lambda event, _: event.startswith("socket.") and event != "socket.__new__" and seen.append(event))
import ctx_hooks
from ctx_hooks.testing import agent_session
messages = agent_session("openai-chat")["messages"]
found = ctx_hooks.compress(messages, format="openai-chat", budget_tokens=4_000, model="gpt-4o")
assert found.changed and "litellm" not in sys.modules
sys.exit(str(seen) if seen else 0)
"""


def test_compression_needs_no_litellm_and_no_connection(tmp_path):
    variables = {"PATH": "", "TMPDIR": str(tmp_path)}  # no folder with vocabularies of an earlier run
    variables |= {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}
    done = subprocess.run([sys.executable, "-c", ALONE], check=False, capture_output=True, text=True, env=variables)
    assert (done.returncode, done.stderr) == (0, "")


def test_policy_applies_without_proxy():
    """Turns and repair: what an operator writes is not passed over."""
    talk = [{"role": ("user", "assistant")[n % 2], "content": f"turn {n}"} for n in range(9)]
    newest = ctx_hooks.compress(talk, format="openai-chat", budget_tokens=5_000, policy=ctx_hooks.Policy(max_turns=2))
    assert [m["content"] for m in newest.messages] == ["turn 6", "turn 7", "turn 8"]
    assert newest.changed
    orphan = {"role": "tool", "tool_call_id": "nobody", "content": "orphan " * 50}
    broken = [*({**m, "content": m["content"] * 300} for m in talk), orphan, {"role": "user", "content": "go on"}]
    for target in (None, "auto"):
        result = ctx_hooks.compress(broken, format="openai-chat", budget_tokens=900, target_tokens=target)
        assert not any(m["role"] == "tool" for m in result.messages)


@pytest.mark.parametrize(("given", "policy"), [(9_000, 3_000), (3_000, 9_000), (None, 3_000)])
def test_policys_cap_applies_to_given_window(given, policy):
    messages = [{"role": "user", "content": f"Remark {n}. " * 20} for n in range(400)]
    capped = ctx_hooks.Policy(window_tokens=policy)
    result = ctx_hooks.compress(messages, format="openai-chat", window_tokens=given, policy=capped)
    assert result == ctx_hooks.compress(messages, format="openai-chat", window_tokens=3_000, policy=capped)
    assert result.tokens_after <= 3_000
