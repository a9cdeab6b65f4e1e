"""The provider's own items stand in place of those that a client of Responses was shown, in its own conversation alone."""

import copy
import json

import pytest

from ctx_hooks.formats import hidden_turns
from ctx_hooks.formats.conversation_digest import heard, said_in
from ctx_hooks.formats.hidden_turns import HiddenTurn, read, written
from ctx_hooks.testing import sign, violations

ASKED = {"role": "user", "content": [{"type": "input_text", "text": "What is in the file?"}]}
NEXT = {"type": "message", "role": "user", "content": "And then?"}


def spliced(messages, turns):
    return hidden_turns.spliced(messages, heard(messages).anchors, turns)


def key_of(messages, *before):
    return heard(messages, before).key


def thought(number):
    summary = [{"type": "summary_text", "text": "hm"}]
    return {"type": "reasoning", "id": f"rs_{number}", "summary": summary, "encrypted_content": sign("hm")}


def said(text):
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"type": "message", "id": "msg_1", "role": "assistant", "content": content, "status": "completed"}


def call(name, call_id, number):
    return {"type": "function_call", "id": f"fc_rs_{number}_1", "call_id": call_id, "name": name, "arguments": "{}"}


def result(call_id, text):
    return {"type": "function_call_output", "call_id": call_id, "output": text}


SHOWN = [thought(1), said("I look."), thought(2), said("It is 4711.")]
OWN = [
    thought(1), said("I look."), call("ctx_retrieve", "hidden", 1), result("hidden", "4711"), thought(2),
    said("It is 4711."),
]  # fmt: skip
TURN = HiddenTurn(said_in([ASKED, *SHOWN]).anchor, OWN)
MIXED = [thought(1), said("I look."), call("read_file", "own", 1)]
MIXED_TURN = HiddenTurn(
    said_in([ASKED, *MIXED]).anchor, [*MIXED, call("ctx_retrieve", "hidden", 1)], [result("hidden", "4711")]
)


def is_valid(items):
    return violations("openai-responses", {"input": items, "store": False}) == []


def test_an_answer_that_hides_something_is_replaced_by_what_the_provider_said():
    items = [ASKED, *SHOWN, NEXT]
    before = copy.deepcopy(items)
    whole = spliced(items, [read(written(TURN))])
    assert whole == [ASKED, *OWN, NEXT]
    assert is_valid(whole)
    assert items == before


def test_hidden_results_stand_beside_the_clients():
    for more in ([], [said("Done."), NEXT]):
        whole = spliced([ASKED, *MIXED, result("own", "the file"), *more], [MIXED_TURN])
        assert is_valid(whole)
        assert json.dumps(whole).count('"4711"') == 1
        assert whole[len(whole) - len(more) :] == more


def test_what_is_in_place_stays_as_it_is():
    for turn, items in ((TURN, [ASKED, *SHOWN, NEXT]), (MIXED_TURN, [ASKED, *MIXED, result("own", "the file")])):
        whole = spliced(items, [turn])
        assert whole != items
        assert spliced(whole, [turn]) == whole


WAYS = {
    "without ids": [{name: value for name, value in item.items() if name != "id"} for item in SHOWN],
    "without reasoning": [item for item in SHOWN if item["type"] == "message"],
    "as plain texts": [{"role": "assistant", "content": text} for text in ("I look.", "It is 4711.")],
    "as one text": [{"role": "assistant", "content": "I look.\nIt is 4711."}],
    "with reasoning at its end": [*SHOWN, thought(3)],
}


@pytest.mark.parametrize("way", WAYS)
def test_an_answer_is_found_however_clients_send_it_back(way):
    assert spliced([ASKED, *WAYS[way], NEXT], [TURN]) == [ASKED, *OWN, NEXT]


@pytest.mark.parametrize("items", [
    [NEXT, *SHOWN, NEXT], [ASKED, *SHOWN[:2], NEXT], [ASKED, *SHOWN, said("And more."), NEXT],
    [ASKED, result("another", "4711"), *SHOWN, NEXT],
    [{"role": "developer", "content": "The customer is Eve."}, ASKED, *SHOWN, NEXT],
    [{"type": "item_reference", "id": "msg_0"}, ASKED, *SHOWN, NEXT],
    [{"type": "compaction", "encrypted_content": "all before"}, ASKED, *SHOWN, NEXT],
], ids=["another question", "half of the answer", "an answer with more", "behind another result", "another system text",
        "behind an item that is kept", "behind a compaction"])  # fmt: skip
def test_another_conversation_gets_nothing(items):
    assert list(spliced(items, [TURN])) == items


def test_items_are_found_only_behind_the_same_result_of_the_same_call():
    call_of = [thought(1), {**call("read_file", "functions.read:0", 1), "arguments": '{"path": "a.py"}'}]
    messages = [ASKED, *call_of, result("functions.read:0", "line 1 of Alice"), *SHOWN]
    turn = HiddenTurn(heard(messages).said.anchor, OWN)
    again = json.loads(json.dumps(messages).replace('"fc_rs_1_1"', "null"))
    assert spliced(again, [turn])[-len(OWN) :] == OWN
    for before, after in (
        ("Alice", "Bob"),
        ("a.py", "b.py"),
        ("functions.read:0", "functions.read:1"),
        ("read_file", "see"),
    ):
        others = json.loads(json.dumps(messages).replace(before, after))
        assert spliced(others, [turn]) is others
