"""Any JSON value in any place of a request: read, repaired or refused with a typed error, and never anything else."""

import contextlib
from copy import deepcopy
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import CALL_TYPES, FIELDS

import ctx_hooks
from ctx_hooks.attempts.request import request_of
from ctx_hooks.attempts.target import Target
from ctx_hooks.errors import MalformedConversationError
from ctx_hooks.flow.request_flow import RequestFlow
from ctx_hooks.overflow.recognise import Overflow
from ctx_hooks.testing import agent_session
from ctx_hooks.tokens.budget import Window

SESSIONS = {
    fmt: agent_session(fmt, turns=5, result_chars=800, thinking=fmt in ("anthropic", "gemini")) for fmt in CALL_TYPES
}
TO = Target("openai/x", "deployment", Window(1_200, "policy"), ctx_hooks.Policy(), "call")
leaves = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.just("\ud800")
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["type", "role", "id", "x"]), inner),
    max_leaves=4,
)


def places(value):
    """Return each place in a JSON value: what holds it, and its key there."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place for key, held in inner for place in ((value, key), *places(held))]


@st.composite
def odd_requests(draw, fmt):
    payload = deepcopy(SESSIONS[fmt])
    for _ in range(draw(st.integers(1, 3))):
        listed = places(payload)
        holder, key = listed[draw(st.integers(0, len(listed) - 1))]
        holder[key] = draw(values)
    return payload


@pytest.mark.parametrize("fmt", CALL_TYPES)
@settings(max_examples=20)
@given(data=st.data())
def test_library_raises_only_its_own_error(fmt, data):
    payload = data.draw(odd_requests(fmt))
    messages = payload[FIELDS[fmt]]
    system = payload.get("system", payload.get("instructions", payload.get("systemInstruction")))
    for target in (None, "auto"):
        with contextlib.suppress(MalformedConversationError):
            ctx_hooks.compress(
                messages, format=fmt, budget_tokens=700, tools=payload.get("tools"), system=system, target_tokens=target
            )
    with contextlib.suppress(MalformedConversationError):
        ctx_hooks.repair(messages, format=fmt)


@pytest.mark.parametrize("fmt", CALL_TYPES)
@settings(max_examples=20)
@given(data=st.data())
async def test_plugin_decides_without_fault(fmt, data):
    payload = data.draw(odd_requests(fmt))
    request = request_of(CALL_TYPES[fmt], payload)
    if request is None:
        return
    runner = RequestFlow()
    for number in (0, 1, 3):
        decision = await runner.deciding.decide(request, replace(TO, attempt=number))
        assert not getattr(decision, "reason", "").startswith("failed")
        await runner.failed(TO.request_id, Overflow("input", "x"))
