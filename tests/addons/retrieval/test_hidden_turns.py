"""The provider's own messages stand in place of what the client was shown, in its own conversation alone."""

import copy
import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ctx_hooks.addons.retrieval import hidden_turns
from ctx_hooks.addons.retrieval.conversation_digest import heard
from ctx_hooks.addons.retrieval.hidden_turns import HiddenTurn, read, written
from ctx_hooks.testing import sign, violations

TOOL = "ctx_retrieve"
MARKER = {"type": "ephemeral"}
ASKED = {"role": "user", "content": "What is in the file?"}
NEXT = {"role": "user", "content": "And then?"}
THOUGHT = {"type": "thinking", "thinking": "hm", "signature": sign("hm")}


def spliced(messages, turns):
    return hidden_turns.spliced(messages, heard(messages).anchors, turns)


def call(name, call_id, fmt):
    if fmt == "anthropic":
        return {"type": "tool_use", "id": call_id, "name": name, "input": {}}
    if fmt == "openai-responses":
        return {"type": "function_call", "id": f"fc_rs_1_{call_id}", "call_id": call_id, "name": name, "arguments": "{}"}
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": "{}"}}


def result(call_id, text, fmt):
    if fmt == "anthropic":
        return {"type": "tool_result", "tool_use_id": call_id, "content": text}
    if fmt == "openai-responses":
        return {"type": "function_call_output", "call_id": call_id, "output": text}
    return {"role": "tool", "tool_call_id": call_id, "content": text}


def thought(number):
    summary = [{"type": "summary_text", "text": "hm"}]
    return {"type": "reasoning", "id": f"rs_{number}", "summary": summary, "encrypted_content": sign("hm")}


def said(text, *calls, fmt):
    """Return what an assistant says in one answer, with thinking first where the format sends it back."""
    if fmt == "anthropic":
        return [{"role": "assistant", "content": [THOUGHT, {"type": "text", "text": text}, *calls]}]
    if fmt == "openai-responses":
        content = [{"type": "output_text", "text": text, "annotations": []}]
        message = {"type": "message", "id": "msg_1", "role": "assistant", "content": content, "status": "completed"}
        return [thought(1 if calls else 2), message, *calls]
    return [{"role": "assistant", "content": text, **({"tool_calls": list(calls)} if calls else {})}]


def results(*found, fmt):
    return [{"role": "user", "content": list(found)}] if fmt == "anthropic" else list(found)


TEXTS = ("I look.", "It is 4711.")
SHOWN = {
    "anthropic": [{"role": "assistant", "content": [THOUGHT, *({"type": "text", "text": text} for text in TEXTS)]}],
    "openai-chat": [{"role": "assistant", "content": "\n\n".join(TEXTS)}],
    "openai-responses": [item for text in TEXTS for item in said(text, fmt="openai-responses")],
}
every_format = pytest.mark.parametrize("fmt", SHOWN)
every_format_of_messages = pytest.mark.parametrize("fmt", ["anthropic", "openai-chat"])


def turn_of(fmt):
    """Return the provider's messages that SHOWN stands for."""
    hidden = said("I look.", call(TOOL, "hidden", fmt), fmt=fmt)
    return HiddenTurn(
        heard([ASKED, *SHOWN[fmt]]).digest.hexdigest(),
        [*hidden, *results(result("hidden", "4711", fmt), fmt=fmt), *said("It is 4711.", fmt=fmt)],
    )


def mixed(fmt):
    """Return a turn that calls the client's tool as well, what the client was shown, and what it sends back."""
    shown = said("I look.", call("read_file", "own", fmt), fmt=fmt)
    true = said("I look.", call("read_file", "own", fmt), call(TOOL, "hidden", fmt), fmt=fmt)
    turn = HiddenTurn(heard([ASKED, *shown]).digest.hexdigest(), true, [result("hidden", "4711", fmt)])
    return turn, [ASKED, *shown, *results(result("own", "the file", fmt), fmt=fmt)]


def is_valid(fmt, messages):
    if fmt == "openai-responses":
        return violations(fmt, {"input": messages, "store": False}) == []
    return violations(fmt, {"messages": messages, "tools": [{"name": TOOL}], "thinking": {"type": "enabled"}}) == []


@every_format
def test_an_answer_that_hides_something_is_replaced_by_what_the_provider_said(fmt):
    messages = [ASKED, *SHOWN[fmt], NEXT]
    before = copy.deepcopy(messages)
    turn = turn_of(fmt)
    whole = spliced(messages, [read(written(turn))])
    assert whole == [ASKED, *turn.messages, NEXT]
    assert is_valid(fmt, whole)
    assert messages == before


@every_format
def test_what_is_in_place_stays_as_it_is(fmt):
    for turn, messages in ((turn_of(fmt), [ASKED, *SHOWN[fmt], NEXT]), mixed(fmt)):
        whole = spliced(messages, [turn])
        assert whole != messages
        assert spliced(whole, [turn]) == whole


@every_format
def test_hidden_results_stand_beside_the_clients(fmt):
    turn, messages = mixed(fmt)
    for more in ([], [*said("Done.", fmt=fmt), NEXT]):
        whole = spliced([*messages, *more], [turn])
        assert is_valid(fmt, whole)
        assert json.dumps(whole).count('"4711"') == 1
        assert whole[len(whole) - len(more) :] == more


def test_hidden_results_come_before_what_a_client_says_behind_its_own():
    """Anthropic: "tool_result blocks must come before any other content"."""
    turn, (asked, shown, behind) = mixed("anthropic")
    says = {"type": "text", "text": "Go on."}
    whole = spliced([asked, shown, {**behind, "content": [*behind["content"], says]}], [turn])
    assert is_valid("anthropic", whole)
    assert whole[-1]["content"][-1] == says


def test_thinking_at_the_end_of_a_turn_gets_no_marker():
    text = {"type": "text", "text": "It is 4711."}
    shown = {"role": "assistant", "content": [{**text, "cache_control": MARKER}]}
    turn = HiddenTurn(heard([ASKED, shown]).digest.hexdigest(), [{"role": "assistant", "content": [text, THOUGHT]}])
    (_, replaced, _) = spliced([ASKED, shown, NEXT], [turn])
    assert replaced["content"] == [{**text, "cache_control": MARKER}, THOUGHT]


@every_format
def test_an_answer_is_found_behind_a_question_in_one_message_or_two(fmt):
    """The servers join neighbours of one role, and so do some clients."""
    halves = [{"role": "user", "content": text} for text in ("What is ", "in the file?")]
    assert '"4711"' in json.dumps(spliced([*halves, *SHOWN[fmt], NEXT], [turn_of(fmt)]))


@every_format_of_messages
def test_half_of_an_answer_is_not_replaced_by_the_whole(fmt):
    """A client that divides an answer in two would have its first half twice."""
    halves = [{"role": "assistant", "content": text} for text in ("I look.", "It is 4711.")]
    messages = [ASKED, *halves, NEXT]
    assert list(spliced(messages, [turn_of(fmt)])) == messages


@every_format_of_messages
def test_where_the_client_sends_no_result_the_hidden_ones_are_there_nevertheless(fmt):
    turn, messages = mixed(fmt)
    for more in ([], [NEXT], [{"role": "assistant", "content": "I go on."}]):
        whole = spliced([*messages[:-1], *more], [turn])
        assert json.dumps(whole).count('"4711"') == 1
        assert all(m in whole or "And then?" in json.dumps(whole) for m in more)


def sent_back(fmt):
    """Return SHOWN as clients send it back, each in another way."""
    shown, *_ = copy.deepcopy(SHOWN[fmt])
    if fmt == "openai-responses":
        return {
            "without ids": [{name: value for name, value in item.items() if name != "id"} for item in SHOWN[fmt]],
            "without reasoning": [item for item in SHOWN[fmt] if item["type"] == "message"],
            "as plain texts": [{"role": "assistant", "content": text} for text in TEXTS],
            "as one text": [{"role": "assistant", "content": "\n".join(TEXTS)}],
            "with reasoning at its end": [*SHOWN[fmt], thought(3)],
        }
    if fmt == "openai-chat":
        text = shown["content"]
        found = {
            "as a block": {"content": [{"type": "text", "text": text}]},
            "with a marker": {"content": [{"type": "text", "text": text, "cache_control": MARKER}]},
            "stripped": {"content": f"{text} \n"},
            "with fields of its own": {"refusal": None, "tool_calls": None, "name": None},
        }
    else:
        thinking, *texts = shown["content"]
        found = {
            "without thinking": {"content": texts},
            "with a marker": {"content": [thinking, texts[0], {**texts[1], "cache_control": MARKER}]},
            "as one text": {"content": "I look.It is 4711."},
            "as one block": {"content": [{"type": "text", "text": "I look.\n\nIt is 4711."}]},
            "with fields of its own": {"id": "msg_1", "content": [thinking, *({**t, "citations": None} for t in texts)]},
        }
    return {way: [{**shown, **changed}] for way, changed in found.items()}


WAYS = [(fmt, way) for fmt in SHOWN for way in sent_back(fmt)]


@pytest.mark.parametrize(("fmt", "way"), WAYS)
def test_an_answer_is_found_however_clients_send_it_back(fmt, way):
    messages = [ASKED, *sent_back(fmt)[way], NEXT]
    whole = spliced(messages, [turn_of(fmt)])
    assert is_valid(fmt, whole)
    assert '"4711"' in json.dumps(whole)
    assert json.dumps(whole).count('"cache_control"') == json.dumps(messages).count('"cache_control"')
    blocks = [b for m in whole for b in m.get("content") or () if isinstance(b, dict)]
    assert not any("cache_control" in b and "thinking" in b for b in blocks)


def leaves(value, path=()):
    """Yield the path of each text that was sent, but for the thinking, which clients leave out."""
    if isinstance(value, str):
        yield path
    elif isinstance(value, (list, dict)) and value not in (THOUGHT, MARKER):
        for name in value if isinstance(value, dict) else range(len(value)):
            if name not in ("role", "type"):
                yield from leaves(value[name], (*path, name))


def with_leaf(value, path, text):
    if not path:
        return text
    changed = copy.copy(value)
    changed[path[0]] = with_leaf(value[path[0]], path[1:], text)
    return changed


def session(fmt):
    """Return a session with all that a client sends before an answer that hides something."""
    system = {"role": "system", "content": "The customer is Ada."}
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QUJD"}}
    shown = {"role": "user", "name": "Ann", "content": [{"type": "text", "text": "See this."}, image]}
    (calls,) = said("I read.", call("read_file", "functions.read:0", fmt), fmt=fmt)
    if fmt == "anthropic":
        calls["content"][-1]["input"] = {"path": "a.py", "id": "7", "at": [{"line": "12"}]}
        found = result("functions.read:0", [{"type": "text", "text": "line 1 of Alice"}, image], fmt)
    else:
        calls["tool_calls"][0]["function"]["arguments"] = '{"path": "a.py"}'
        found = result("functions.read:0", "line 1 of Alice", fmt)
    return [system, shown, calls, *results(found, fmt=fmt), *SHOWN[fmt]]


@every_format_of_messages
@given(data=st.data())
def test_nothing_is_put_into_a_conversation_that_differs_in_anything_that_was_sent(fmt, data):
    messages = session(fmt)
    turn = HiddenTurn(heard(messages).digest.hexdigest(), turn_of(fmt).messages)
    assert '"4711"' in json.dumps(spliced(messages, [turn]))
    path = data.draw(st.sampled_from(list(leaves(messages))))
    before = messages
    for name in path:
        before = before[name]
    text = data.draw(st.text().filter(lambda text: "".join(text.split()) != "".join(before.split())))
    others = with_leaf(messages, path, text)
    assert spliced(others, [turn]) is others


@every_format_of_messages
def test_an_anchor_is_of_one_who_asks_and_of_one_system_text(fmt):
    messages = session(fmt)
    before = {"role": "asker", "asker": ["ann", ""], "system": "The customer is Ada."}
    others = [{**before, "asker": ["bob", ""]}, {**before, "system": "The customer is Eve."}, {}]
    assert len({heard(messages, heard([who])).anchors[-1] for who in (before, *others)}) == 4


@every_format
@pytest.mark.parametrize("other", ["question", "answer", "call", "earlier answer"])
def test_another_conversation_gets_nothing(fmt, other):
    shown = [{"role": "assistant", "content": "It is 4712."}] if other == "answer" else SHOWN[fmt]
    asked = {"role": "user", "content": "What is in the other file?"} if other == "question" else ASKED
    between = [{"role": "assistant", "content": "What?"}, ASKED] if other == "earlier answer" else []
    turn = turn_of(fmt)
    messages = [asked, *between, *shown, NEXT]
    if other == "call":
        turn, messages = mixed(fmt)
        messages = json.loads(json.dumps(messages).replace('"own"', '"another"'))
    assert spliced(messages, [turn]) is messages


ITEMS = SHOWN["openai-responses"]


@pytest.mark.parametrize("items", [
    [ASKED, *ITEMS[:2], NEXT], [ASKED, *ITEMS, *said("And more.", fmt="openai-responses"), NEXT],
    [ASKED, result("another", "4711", "openai-responses"), *ITEMS, NEXT],
    [{"role": "developer", "content": "The customer is Eve."}, ASKED, *ITEMS, NEXT],
    [{"type": "item_reference", "id": "msg_0"}, ASKED, *ITEMS, NEXT],
    [{"type": "compaction", "encrypted_content": "all before"}, ASKED, *ITEMS, NEXT],
], ids=["half of the answer", "an answer with more", "behind another result", "another system text",
        "behind an item that is kept", "behind a compaction"])  # fmt: skip
def test_nor_do_other_items(items):
    assert list(spliced(items, [turn_of("openai-responses")])) == items


def test_items_are_found_only_behind_the_same_result_of_the_same_call():
    fmt = "openai-responses"
    asked = {**call("read_file", "functions.read:0", fmt), "arguments": '{"path": "a.py"}'}
    messages = [ASKED, thought(1), asked, result("functions.read:0", "line 1 of Alice", fmt), *ITEMS]
    turn = HiddenTurn(heard(messages).digest.hexdigest(), turn_of(fmt).messages)
    again = json.loads(json.dumps(messages).replace(json.dumps(asked["id"]), "null"))
    assert spliced(again, [turn])[-len(turn.messages) :] == turn.messages
    changes = {"Alice": "Bob", "a.py": "b.py", "functions.read:0": "functions.read:1", "read_file": "see"}
    for before, after in changes.items():
        others = json.loads(json.dumps(messages).replace(before, after))
        assert spliced(others, [turn]) is others


@given(
    st.text()
    | st.recursive(st.none() | st.text() | st.integers(), lambda v: st.lists(v) | st.dictionaries(st.text(), v)).map(
        json.dumps
    )
)
@example("[" * 100_000)
def test_a_record_that_is_broken_or_foreign_changes_nothing(text):
    messages = [ASKED, *SHOWN["openai-chat"], NEXT]
    assert read(text) is None
    entry = {"anchor": heard(messages[:2]).digest.hexdigest(), "messages": text, "results": []}
    assert read(json.dumps(entry)) is None


@given(
    st.lists(
        st.none()
        | st.text()
        | st.dictionaries(
            st.sampled_from(["role", "content", "tool_calls"]), st.none() | st.text() | st.lists(st.none() | st.text())
        )
    )
)
def test_whatever_stands_among_the_messages_is_left_there(messages):
    turn = HiddenTurn("0" * 32, [ASKED])
    assert spliced(messages, [turn]) is messages


def test_who_said_it_is_part_of_what_was_said():
    """Neighbours of one role speak as one."""
    said = {
        tuple(roles): heard([{"role": r, "content": t} for r, t in zip(roles, "abc", strict=True)]).digest.hexdigest()
        for roles in (["user"] * 3, ["user", "assistant", "user"], ["user", "assistant", "assistant"])
    }
    assert len(set(said.values())) == 3
    assert said["user", "user", "user"] == heard([{"role": "user", "content": "abc"}]).digest.hexdigest()
