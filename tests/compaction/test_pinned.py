"""A message that the caller flags stays whole, whatever the budget; so does a provider's own compaction."""

import pytest
from strategies import every_format, items_of

import ctx_hooks
from ctx_hooks.compaction import last_resort
from ctx_hooks.formats import WIRE_FORMATS
from ctx_hooks.formats.wire_format import FLAGS
from ctx_hooks.policy.settings import Policy
from ctx_hooks.testing import agent_session, sign, violations
from ctx_hooks.tokens.budget import Budget
from ctx_hooks.tokens.counter import Counter

every_flag = pytest.mark.parametrize("flag", FLAGS)
WHERE = {"anthropic": "content", "gemini": "parts"}
"""The fields whose blocks may have the flag instead of the message."""


def flagged_session(fmt, flag, *, in_block=False, turns=40):
    """Return a session, and the index of one of its older results that has the flag."""
    messages = [dict(m) for m in items_of(agent_session(fmt, turns=turns))]
    place = next(i for i, m in enumerate(messages) if i > 5 and WIRE_FORMATS[fmt].read_message(m).results)
    if in_block:
        first, *rest = messages[place][WHERE[fmt]]
        messages[place][WHERE[fmt]] = [{**first, "context": {flag: True}}, *rest]
    else:
        messages[place]["context"] = {flag: True}
    return messages, place


@every_format
@every_flag
@pytest.mark.parametrize("target_tokens", [None, "auto"])
def test_a_flagged_result_stays_whole(fmt, flag, target_tokens):
    for in_block in (False, True) if fmt in WHERE else (False,):
        messages, place = flagged_session(fmt, flag, in_block=in_block)
        result = ctx_hooks.compress(messages, format=fmt, budget_tokens=6_000, target_tokens=target_tokens)
        assert result.changed
        assert messages[place] in result.messages


@every_format
@every_flag
def test_it_stays_whole_where_compression_takes_too_long(fmt, flag):
    messages, place = flagged_session(fmt, flag)
    outcome = last_resort.compress(WIRE_FORMATS[fmt].read(messages), Budget(4_000, 8_000, Counter("cl100k_base")))
    assert messages[place] in WIRE_FORMATS[fmt].write(outcome.conversation)


def test_a_large_result_that_is_flagged_arrives_whole():
    messages, place = flagged_session("openai-chat", "truncation_skip")
    messages[place]["content"] = "a line of the file\n" * 5_000
    limit = Policy(tool_results={"max_chars": 2_000})
    result = ctx_hooks.compress(messages, format="openai-chat", budget_tokens=30_000, target_tokens="auto", policy=limit)
    assert messages[place] in result.messages


SUMMARY = {"type": "compaction", "content": "They build a recipe app.", "signature": sign("They build a recipe app.")}
OWN = {
    "a message of its own": ("anthropic", {"role": "assistant", "content": [SUMMARY]}),
    "before an answer": (
        "anthropic",
        {"role": "assistant", "content": [SUMMARY, {"type": "text", "text": "Which fields?"}]},
    ),
    "before a user's words": ("anthropic", {"role": "user", "content": [SUMMARY, {"type": "text", "text": "Go on. " * 99}]}),
    "an item": ("openai-responses", {"type": "compaction", "encrypted_content": "gAAAA" * 400}),
    "a field of LiteLLM's": (
        "openai-chat",
        {"role": "assistant", "content": "", "provider_specific_fields": {"compaction_blocks": [SUMMARY]}},
    ),
}


@pytest.mark.parametrize("tokens", [6_000, 1_000, 200])
@pytest.mark.parametrize("place", OWN)
def test_what_a_provider_has_compacted_itself_stays_and_nothing_comes_before_it(place, tokens):
    """It is all that is left of what was said before: "If a later request leaves the block out, Claude gets no summary"."""
    fmt, own = OWN[place]
    session = agent_session(fmt, turns=20)
    sent = [own, *(items_of(session)[1:] if own.get("role") == "user" else items_of(session))]
    budget = Budget(tokens, 8_000, Counter("cl100k_base"))
    results = [ctx_hooks.compress(sent, format=fmt, budget_tokens=tokens, target_tokens=t).messages for t in (None, "auto")]
    results.append(ctx_hooks.compress(sent, format=fmt, policy=Policy(max_turns=1)).messages)
    results.append(WIRE_FORMATS[fmt].write(last_resort.compress(WIRE_FORMATS[fmt].read(sent), budget).conversation))
    assert "removed here" in str(results[-1])
    for messages in results:
        assert messages != sent
        assert messages[0] == own
        assert fmt != "anthropic" or violations(fmt, {**session, "messages": messages}) == []
