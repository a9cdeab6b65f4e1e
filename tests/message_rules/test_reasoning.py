"""What a message carried because its provider wants it back is on it after a compaction, at least in its shortest form."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import FIELDS, every_format, items_of, payloads

import ctx_hooks
from ctx_hooks import Policy
from ctx_hooks.message_rules.reasoning import wants_reasoning
from ctx_hooks.policy.settings import PRESETS
from ctx_hooks.testing import agent_session, violations

WANTING = [
    "deepseek/deepseek-v4-pro", "fireworks_ai/accounts/fireworks/models/deepseek-v4-pro", "deepseek/deepseek-flash",
    "deepseek/deepseek-reasoner", "volcengine/deepseek-v3-2-251201", "hosted_vllm/deepseek-ai/DeepSeek-V3.2",
    "bedrock/deepseek.v3.2", "moonshot/kimi-k2-thinking", "moonshot/kimi-k2.5", "fireworks_ai/kimi-k2p5", "openai/k2p5",
    "moonshot/k3-256k", "anthropic/kimi-k10", "kimi-for-coding", "bedrock/moonshot.kimi-k2-thinking", "openai/MiMo-V2.5-Pro",
]  # fmt: skip
OTHERS = [
    "openai/gpt-5", "deepseek/deepseek-chat", "hosted_vllm/deepseek-ai/DeepSeek-R1", "ollama/deepseek-coder-v2",
    "volcengine/deepseek-v3-250324", "nvidia_nim/deepseek-ai/deepseek-v3.1", "deepseek-vl2",
    "moonshot/kimi-k2-0905-preview", "moonshot/moonshot-v1-128k", "anthropic/claude-opus-4-5",
]  # fmt: skip
FIELDS_OF_CHAT = ("reasoning_content", "reasoning", "reasoning_details", "thinking_blocks")


def test_models_that_want_reasoning_are_known():
    assert [model for model in WANTING if not wants_reasoning(model)] == []
    assert [model for model in OTHERS if wants_reasoning(model)] == []


policies = st.sampled_from([Policy(), *(Policy(**fields) for fields in PRESETS.values())])


def compressed(fmt, session, budget):
    result = ctx_hooks.compress(items_of(session), format=fmt, budget_tokens=budget, model=session["model"])
    assert result.changed
    assert violations(fmt, {**session, FIELDS[fmt]: result.messages}) == []
    return result.messages


@pytest.mark.parametrize(("model", "left"), [("kimi-k2.6", {"…"}), ("hosted_vllm/qwen3", {None})])
def test_older_reasoning_is_one_character_or_gone(model, left):
    session = agent_session("openai-chat", turns=12, thinking=True, model=model)
    sent = compressed("openai-chat", session, 4_000)
    assert {m.get("reasoning_content") for m in sent if m.get("tool_calls")} == left


def test_answers_without_calls_keep_reasoning_too():
    """DeepSeek V4 wants it on every answer of a conversation with calls: MoonshotAI/kimi-cli#2141, vercel/ai#14740."""
    messages = [{"role": "user", "content": "Begin."}]
    for n in range(40):
        thought = "Let me think. " * 40
        messages += [
            {"role": "assistant", "content": f"Answer {n}. " * 40, "reasoning_content": thought},
            {"role": "user", "content": f"And {n}?"},
        ]
    sent = compressed("openai-chat", {"messages": messages, "model": "deepseek-v4-pro"}, 3_000)
    assert len(sent) > 4
    assert all(m.get("reasoning_content") for m in sent if m["role"] == "assistant")


def test_newest_turn_keeps_its_reasoning_whole():
    session = agent_session("openai-chat", turns=10, thinking=True, model="kimi-k2.6")
    newest = agent_session("openai-chat", turns=2, seed=5, thinking=True)["messages"][2:-1]
    session["messages"] += newest
    sent = compressed("openai-chat", session, 4_000)
    kept, came = ([m["reasoning_content"] for m in ms if m.get("tool_calls")] for ms in (sent[-4:], newest))
    assert kept == came


@pytest.mark.parametrize("model", ["openai/kimi-k2.6", "hosted_vllm/deepseek-v4-pro", "anthropic/claude-opus-4-5"])
@pytest.mark.parametrize("signature", [None, "", "signed"])
def test_thinking_blocks_stay_where_they_are_wanted(model, signature):
    """LiteLLM joins the texts of `thinking` blocks into `reasoning_content` for a chat server."""
    session = agent_session("anthropic", turns=14, thinking=True, model=model)
    for block in (b for m in session["messages"] if m["role"] == "assistant" for b in m["content"]):
        if block["type"] == "thinking":
            block["thinking"] += " Let me think about it." * 30
            block.pop("signature") if signature is None else block.update(signature=signature)
    answers = [m["content"] for m in compressed("anthropic", session, 4_000) if m["role"] == "assistant"]
    calling = [content for content in answers if any(b["type"] == "tool_use" for b in content)]
    assert calling
    for content in calling:
        told = [b["thinking"] for b in content if b["type"] == "thinking"]
        if "claude" in model:
            assert told == []
        elif signature:
            assert len(told[0]) > 100, "it is whole"
        else:
            assert told == ["…"]


def carrying(fmt, items):
    """Return by call id whether the answer with the call carries what its provider wants back; no id that occurs twice."""
    found, twice, reasons = {}, set(), False
    for item in items:
        if fmt == "openai-chat":
            ids, has = [c["id"] for c in item.get("tool_calls") or ()], any(map(item.get, FIELDS_OF_CHAT))
        elif fmt == "anthropic":
            blocks = item["content"] if isinstance(item["content"], list) else []
            ids, has = [b["id"] for b in blocks if b["type"] == "tool_use"], any(b.get("thinking") for b in blocks)
        elif fmt == "openai-responses":
            reasons = item.get("type") == "reasoning" or (
                reasons and "role" not in item and item.get("type") != "function_call_output"
            )
            ids, has = [item["call_id"]] if item.get("type") == "function_call" else [], reasons
        else:
            signed = [(p["functionCall"], "thoughtSignature" in p) for p in item["parts"] if "functionCall" in p]
            ids, has = [call["id"] for call, _ in signed if "id" in call], any(has for _, has in signed)
        twice |= found.keys() & set(ids)
        found |= dict.fromkeys(ids, has)
    return {call_id: has for call_id, has in found.items() if call_id not in twice}


@every_format
@settings(max_examples=60, deadline=None)
@given(data=st.data(), model=st.sampled_from(WANTING), policy=policies, target=st.sampled_from([None, "auto"]))
def test_call_keeps_what_it_came_with(fmt, data, model, policy, target):
    items = data.draw(payloads(fmt))
    budget = data.draw(st.integers(60, 1_500))
    sent = ctx_hooks.compress(
        items, format=fmt, budget_tokens=budget, target_tokens=target, model=model, policy=policy
    ).messages
    came, left = carrying(fmt, items), carrying(fmt, sent)
    assert {call_id: came[call_id] for call_id in left.keys() & came.keys()} == {
        call_id: left[call_id] for call_id in left.keys() & came.keys()
    }
