"""Any Responses item with a long text shrinks or leaves with its own, whatever its type, and the result is always legal."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from responses_items import KINDS, conversations, made, said, session, text_of, user

import ctx_hooks
from ctx_hooks.compaction import last_resort
from ctx_hooks.formats import WIRE_FORMATS
from ctx_hooks.testing import violations
from ctx_hooks.tokens.budget import Budget
from ctx_hooks.tokens.counter import Counter

BUDGET = 6_000
STAYS = ("encrypted_content", "fingerprint", "id", "call_id", "type", "status")
every_kind = pytest.mark.parametrize("kind", KINDS)


def compressed(items, budget=BUDGET, **policy):
    return ctx_hooks.compress(items, format="openai-responses", budget_tokens=budget, **policy)


def key_of(item):
    return item.get("call_id") or item.get("id"), item.get("type")


def same_form(was, now):
    """Whether an item kept its structure; a list of blocks may lose blocks, as those of any message."""
    for name in ("output", "content"):
        blocks = was.get(name)
        if isinstance(blocks, list) and all(isinstance(b, dict) and "text" in b for b in blocks):
            was, now = ({**item, name: None} for item in (was, now))
    return matches(was, now)


def matches(was, now, name=""):
    """Whether two values differ in long texts only."""
    if isinstance(was, str) and len(was) >= 200 and name not in STAYS:
        return isinstance(now, str)
    if isinstance(was, dict):
        return was.keys() == now.keys() and all(matches(inner, now[key], key) for key, inner in was.items())
    if isinstance(was, list):
        return len(was) == len(now) and all(matches(old, new, name) for old, new in zip(was, now, strict=True))
    return was == now


def assert_lawful(items, sent):
    assert violations("openai-responses", {"input": sent}, items) == []
    came = {key_of(item): item for item in items if key_of(item)[0]}
    for item in sent:
        if key_of(item) in came:
            assert same_form(came[key_of(item)], item), (came[key_of(item)], item)
    for name in ("encrypted_content", "fingerprint"):
        known = [item[name] for item in items if name in item]
        assert all(item[name] in known for item in sent if name in item)


@every_kind
def test_twelve_calls_of_any_kind_fit(kind):
    items = session(kind)
    result = compressed(items)
    assert result.fits, result.tokens_after
    assert_lawful(items, result.messages)


@every_kind
def test_newest_call_of_any_kind_keeps_form(kind):
    items = [user("Begin."), *made(kind, text_of(24_000))]
    result = compressed(items, 3_000)
    assert_lawful(items, result.messages)
    assert [key_of(i) for i in result.messages] == [key_of(i) for i in items]


@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large], deadline=None)
@given(items=conversations())
def test_any_items_stay_lawful_and_fit(items):
    before = json.dumps(items)
    assert violations("openai-responses", {"input": items}, items) == []
    result = compressed(items)
    assert json.dumps(items) == before
    assert_lawful(items, result.messages)
    assert result.fits or items[-1].get("role") != "user", result.tokens_after
    codec = WIRE_FORMATS["openai-responses"]
    assert [codec.write_message(m) for m in codec.read(items).messages] == items


def test_reasoning_and_its_hosted_items_leave_together():
    items = [user("Begin.")]
    for n in range(12):
        thought = f"rs_{n}"
        items.append({"type": "reasoning", "id": thought, "summary": [], "encrypted_content": "gAAAA" + "x" * 400})
        items += made("web_search_call", "cache", number=n, thought=thought)
        items += [said(text_of(4_000, n), number=n, thought=thought), user("And?")]
    result = compressed(items, 1_500)
    assert result.fits
    assert len(result.messages) < len(items)
    assert_lawful(items, result.messages)


STATE = [
    {"type": "item_reference", "id": "msg_1"},
    {"id": "msg_2"},
    {"type": "image_generation_call", "id": "ig_1"},
    {"type": "compaction", "id": "cmp_1", "encrypted_content": "z" * 400},
    {"type": "configuration_update", "reasoning": {"effort": "low"}},
    {"type": "compaction_trigger"},
]


@pytest.mark.parametrize("item", STATE, ids=lambda item: item.get("type", "no type"))
def test_items_of_the_providers_state_stay(item):
    items = session("shell_call")
    at = len(items) if item.get("type") == "compaction_trigger" else 5
    items.insert(at, item)
    result = compressed(items)
    assert item in result.messages
    assert violations("openai-responses", {"input": result.messages}, items) == []


def test_outputs_of_referenced_calls_are_no_orphans():
    referred = [{"type": "item_reference", "id": "fc_1"}, {"type": "function_call_output", "call_id": "c1", "output": "42"}]
    items = [*referred, *session("function_call")]
    result = compressed(items)
    assert result.fits
    assert result.messages[:2] == referred


@pytest.mark.parametrize("named", ["reasoning", "call", "both"])
def test_results_beside_references_shrink_and_stay(named):
    """The AI SDK sends stored calls and reasoning as references, and only the results in full."""
    items = [user("Begin.")]
    for n in range(12):
        ask, answer = made("function_call", text_of(8_000, n), number=n)
        thought = {"type": "item_reference", "id": f"rs_{n}"}
        items += {"reasoning": [thought, ask], "call": [{"type": "item_reference", "id": ask["id"]}]}.get(
            named, [thought, {"type": "item_reference", "id": ask["id"]}]
        )
        items.append(answer)
    items.append(user("And now?"))
    sent = compressed(items, 6_000)
    assert sent.fits
    kept = [key_of(item) for item in sent.messages if key_of(item)[0]]
    assert kept == [key_of(item) for item in items if key_of(item)[0]]
    assert_lawful(items, sent.messages)
    codec = WIRE_FORMATS["openai-responses"]
    budget = Budget(6_000, window_tokens=6_000, counter=Counter("o200k_base"))
    left = codec.write(last_resort.compress(codec.read(items), budget).conversation)
    assert [key_of(item) for item in left if key_of(item)[0]] == kept
