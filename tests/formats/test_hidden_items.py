"""The provider's own items stand in place of those that a client of Responses was shown, in its own conversation alone."""

from __future__ import annotations

import copy
import json

import pytest

from ctx_hooks.formats.hidden_turns import HiddenTurn, conversation_key, read, said_in, spliced, written
from ctx_hooks.testing import sign, violations

ASKED = {"role": "user", "content": [{"type": "input_text", "text": "What is in the file?"}]}
NEXT = {"type": "message", "role": "user", "content": "And then?"}


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
    thought(1),
    said("I look."),
    call("ctx_retrieve", "hidden", 1),
    result("hidden", "4711"),
    thought(2),
    said("It is 4711."),
]
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
    whole = spliced(items, read(written([TURN])))
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


@pytest.mark.parametrize(
    "items",
    [
        [NEXT, *SHOWN, NEXT],
        [ASKED, *SHOWN[:2], NEXT],
        [ASKED, *SHOWN, said("And more."), NEXT],
        [ASKED, result("another", "4711"), *SHOWN, NEXT],
    ],
    ids=["another question", "half of the answer", "an answer with more", "behind another result"],
)
def test_another_conversation_gets_nothing(items):
    assert list(spliced(items, [TURN])) == items


def test_a_conversation_has_one_key_from_its_first_request_on():
    first = conversation_key([{"role": "developer", "content": "It is nine."}, ASKED])
    assert conversation_key([ASKED, *SHOWN, NEXT]) == conversation_key([ASKED, *SHOWN[1:], NEXT]) == first
    assert conversation_key([ASKED, *MIXED, result("own", "the file"), *SHOWN]) == first
