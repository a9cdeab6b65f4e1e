"""A conversation in which something was retrieved goes to any deployment, whether anything is cut from it there or not."""

import pytest

from ctx_hooks.policy.settings import Policy, Settings
from ctx_hooks.request.request import Request
from ctx_hooks.request.target import Target
from ctx_hooks.serving.request_flow import RequestFlow
from ctx_hooks.testing import violations
from ctx_hooks.tokens.window import Window

TOOL = "ctx_retrieve"
ASKED = {"role": "user", "content": "What was it?"}
CALL = {"id": "call_1", "type": "function", "function": {"name": TOOL, "arguments": "{}"}}
SPOKEN = {
    "openai-chat": [
        {"role": "assistant", "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "call_1", "content": "this"},
    ],
    "anthropic": [
        {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": TOOL, "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "this"}]},
        {"role": "assistant", "content": "It was this."},
    ],
    "openai-responses": [
        {"type": "function_call", "call_id": "call_1", "name": TOOL, "arguments": "{}"},
        {"type": "function_call_output", "call_id": "call_1", "output": "this"},
    ],
}


async def sent(fmt, items, policy, **fields):
    field = "input" if fmt == "openai-responses" else "messages"
    request = {"model": "m", "max_tokens": 100, "store": False, field: items, **fields}
    to = Target("anthropic/x", "d", Window(200_000, "policy"), policy, "")
    return await RequestFlow(Settings()).before_attempt(Request(fmt, request), to)


@pytest.mark.parametrize("fmt", SPOKEN)
async def test_a_request_with_calls_of_the_tool_and_no_tools_defines_it(fmt):
    """Anthropic's would be refused without, which others translate to."""
    items = [ASKED, *SPOKEN[fmt], ASKED]
    always = await sent(fmt, items, Policy(retrieval="always"))
    assert TOOL in str(always["tools"])
    if fmt == "anthropic":
        assert violations(fmt, {k: v for k, v in always.items() if k != "store"}) == []
    own = [{"type": "function", "name": "read_file"}]
    assert (await sent(fmt, items, Policy(retrieval="always"), tools=own))["tools"] == own
    for others, policy in ((items, Policy(retrieval=True)), ([ASKED], Policy(retrieval="always"))):
        assert "tools" not in await sent(fmt, others, policy)
