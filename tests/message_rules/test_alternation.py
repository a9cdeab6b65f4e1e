"""A conversation whose roles alternated alternates when it was compressed; one that did not is left as it is."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import items_of, payloads, spoken, texts

import ctx_hooks
from ctx_hooks import message_rules
from ctx_hooks.formats import WIRE_FORMATS
from ctx_hooks.message_rules import alternation
from ctx_hooks.testing import agent_session, violations

FORMATS = ("openai-chat", "anthropic", "openai-responses")
"""Those that are translated for the templates of which the rule is; of Gemini's contents see below."""
every_format = pytest.mark.parametrize("fmt", FORMATS)
every_mode = pytest.mark.parametrize("target_tokens", [None, "auto"])
thorough = settings(max_examples=8)
dialogues = st.lists(st.one_of(texts, st.just("ok")), min_size=5, max_size=41).filter(lambda t: len(t) % 2)


def refused(messages):
    """Return whether a template of Gemma, Mistral or Llama 2 raises: written as they are, apart from the plugin's own."""
    index = 0
    for message in messages:
        calls = message.get("tool_calls") or message.get("type", "").startswith("function_call")
        blocks = message.get("content") if isinstance(message.get("content"), list) else []
        calls = calls or any(b.get("type") in ("tool_use", "tool_result") for b in blocks)
        if message.get("role") in ("tool", "system") or calls or message.get("type") == "reasoning":
            continue
        if (message["role"] == "user") != (index % 2 == 0):
            return True
        index += 1
    return False


def neighbours(messages):
    """Return whether two messages of one role stand beside each other, system text aside."""
    roles = [m.get("role") for m in messages if m.get("role") not in ("system", None)]
    return any(a == b != "tool" for a, b in pairwise(roles))


def written(fmt, said):
    messages = [{"role": ("user", "assistant")[n % 2], "content": text} for n, text in enumerate(said)]
    return messages if fmt == "anthropic" else [{"role": "system", "content": "Be brief."}, *messages]


@every_format
@every_mode
@thorough
@given(said=dialogues, budget=st.integers(60, 800))
def test_a_dialogue_goes_on_alternating(fmt, target_tokens, said, budget):
    messages = written(fmt, said)
    assert not refused(messages)
    sent = ctx_hooks.compress(messages, format=fmt, budget_tokens=budget, target_tokens=target_tokens).messages
    assert not refused(sent)
    assert not neighbours(sent)


@every_format
@every_mode
@thorough
@given(data=st.data(), budget=st.integers(60, 800))
def test_no_template_refuses_what_it_accepted_before(fmt, target_tokens, data, budget):
    messages = data.draw(payloads(fmt))
    sent = ctx_hooks.compress(messages, format=fmt, budget_tokens=budget, target_tokens=target_tokens).messages
    assert refused(messages) or not refused(sent)


def test_messages_that_did_not_alternate_stay_so():
    messages = [{"role": "user", "content": f"note {n} " + "and more " * 40} for n in range(30)]
    sent = ctx_hooks.compress(messages, format="openai-chat", budget_tokens=600).messages
    assert {m["role"] for m in sent} == {"user"}


@every_format
def test_repair_that_drops_message_keeps_turns(fmt):
    messages = [
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": "two"},
        {"role": "user", "content": " "},
        {"role": "assistant", "content": "four"},
        {"role": "user", "content": "five"},
    ]
    conversation, _ = message_rules.repair(WIRE_FORMATS[fmt].read(messages))
    assert not refused(WIRE_FORMATS[fmt].write(conversation))


@every_mode
@thorough
@given(data=st.data(), said=dialogues, budget=st.integers(60, 800))
def test_contents_of_gemini_keep_their_turns(target_tokens, data, said, budget):
    """Google: "Please ensure that multiturn requests alternate between user and model."."""
    contents = [spoken("gemini", ("user", "assistant")[n % 2], text) for n, text in enumerate(said)]
    sent = ctx_hooks.compress(contents, format="gemini", budget_tokens=budget, target_tokens=target_tokens).messages
    assert sent[0]["role"] == "user"
    assert not neighbours(sent)
    assert any(part["text"].endswith(said[-1]) for part in sent[-1]["parts"]), "what is quoted for it may stand behind it"
    contents = data.draw(payloads("gemini"))
    sent = ctx_hooks.compress(contents, format="gemini", budget_tokens=budget, target_tokens=target_tokens).messages
    assert violations("gemini", {"contents": sent}) == []


CALL = {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]}
ANSWER = {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"output": "o"}}}]}


@pytest.mark.parametrize(("said", "gone"), [
    (("user", "user", "assistant", "user", CALL, ANSWER), {3}),
    (("user", "assistant", "user", CALL, ANSWER, "assistant"), {1, 2, 5}),
], ids=["the word between two of the model's turns", "the model's last word"])  # fmt: skip
def test_no_placeholder_stands_before_a_gemini_call(said, gone):
    contents = [turn if isinstance(turn, dict) else spoken("gemini", turn, f"word {n}") for n, turn in enumerate(said)]
    before = WIRE_FORMATS["gemini"].read(contents)
    kept = alternation.kept(before, before.with_messages(tuple(m for i, m in enumerate(before.messages) if i not in gone)))
    assert violations("gemini", {"contents": WIRE_FORMATS["gemini"].write(kept)}) == []


@pytest.mark.parametrize("fmt", WIRE_FORMATS)
def test_no_user_follows_a_result_where_none_did(fmt):
    """Mistral: "Unexpected role 'user' after role 'tool'"."""
    session = items_of(agent_session(fmt, turns=60))
    first = next(i for i, item in enumerate(session) if item.get("role") == "user")
    messages = [*session[: first + 1], *session[first:]]
    for length in range(first + 4, len(messages)):
        sent = ctx_hooks.compress(messages[:length], format=fmt, budget_tokens=8_000, target_tokens="auto").messages
        read = WIRE_FORMATS[fmt].read(sent).messages
        roles = ["tool" if m.results and not m.text.strip() else m.role for m in read]
        assert ("tool", "user") not in pairwise(roles)
