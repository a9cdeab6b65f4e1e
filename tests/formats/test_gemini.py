"""Google's contents: whose response is whose, what is signed, and how a cut result is written."""

import json

import pytest

import ctx_hooks
from ctx_hooks.formats import gemini
from ctx_hooks.testing import violations
from ctx_hooks.testing.gemini import sign

LONG = "\n".join(f"line {n} of the file says little" for n in range(2_000))


def call(name="read_file", own_id=None, **args):
    return {"functionCall": {**({"id": own_id} if own_id else {}), "name": name, "args": args}}


def response(text, name="read_file", own_id=None):
    return {"functionResponse": {**({"id": own_id} if own_id else {}), "name": name, "response": {"output": text}}}


def exchange(calls, responses):
    return [
        {"role": "user", "parts": [{"text": "go"}]},
        {"role": "model", "parts": calls},
        {"role": "user", "parts": responses},
    ]


def pairs(contents):
    """Return for each response of the last content the arguments of the call that it answers."""
    _, asked, answered = gemini.WIRE.read(contents).messages
    arguments = {c.id: c.arguments for c in asked.calls}
    return [(arguments.get(r.call_id), r.text) for r in answered.results]


@pytest.mark.parametrize(("calls", "responses"), [
    ([call(n=1), call(n=2)], [response("1"), response("2")]),
    ([call(n=1, own_id="a"), call(n=2, own_id="b")], [response("2", own_id="b"), response("1", own_id="a")]),
    ([call(n=1), call(n=2)], [response("1", own_id="cli-1"), response("2", own_id="cli-2")]),
    ([call(n=1, own_id="a"), call(n=2, own_id="b")], [response("1"), response("2")]),
    ([call(n=1), call("other", n=2)], [response("2", "other"), response("1")]),
], ids=["order", "ids", "ids of the client alone", "ids of the model alone", "names"])  # fmt: skip
def test_response_answers_its_id_or_its_function(calls, responses):
    contents = exchange(calls, responses)
    assert all(json.loads(arguments)["n"] == int(text) for arguments, text in pairs(contents))
    assert not ctx_hooks.repair(contents, format="gemini").changed


def test_names_made_up_here_are_never_written():
    contents = exchange([call(n=1)], [response(LONG, own_id="cli-1")])
    contents = [*contents, {"role": "model", "parts": [{"text": "Seen."}]}, {"role": "user", "parts": [{"text": "And?"}]}]
    sent = ctx_hooks.compress(contents, format="gemini", budget_tokens=800).messages
    (answer,) = (p["functionResponse"] for c in sent for p in c["parts"] if "functionResponse" in p)
    assert len(answer["response"]["output"]) < len(LONG), "it was cut"
    assert {**answer, "response": None} == {"id": "cli-1", "name": "read_file", "response": None}
    assert "#" not in json.dumps([p for c in sent for p in c["parts"] if "functionCall" in p])


def test_missing_response_has_its_calls_name_and_id():
    contents = exchange([call("f", own_id="a"), call("g")], [response("1", "f", own_id="a")])
    repaired = ctx_hooks.repair(contents, format="gemini").messages
    answers = [p["functionResponse"] for p in repaired[2]["parts"]]
    assert [(a["name"], a.get("id")) for a in answers] == [("f", "a"), ("g", None)]
    assert "error" in answers[1]["response"]
    assert violations("gemini", {"contents": repaired}) == []


def test_words_before_responses_become_a_turn_behind():
    contents = exchange([call(n=1)], [{"text": "quick!"}])
    repaired = ctx_hooks.repair([*contents, {"role": "user", "parts": [response("1")]}], format="gemini").messages
    assert repaired == [*contents[:2], {"role": "user", "parts": [response("1")]}, contents[2]]


@pytest.mark.parametrize("spelling", ["thoughtSignature", "thought_signature"])
def test_signed_part_is_whole_or_gone(spelling):
    """Google: "Function call is missing a thought_signature in functionCall parts."."""
    contents = []
    for n in range(20):
        asked = call("write_file", path=f"src/part_{n}.py", content=LONG)
        said = {"text": f"Part {n}. " + "Some more words on it. " * 2_000}
        signed = [{**part, spelling: sign(part)} for part in (said, asked)]
        contents += exchange(signed, [response("done", "write_file")])
    contents.append({"role": "user", "parts": [{"text": "What is next?"}]})
    before = [p for c in contents for p in c["parts"] if spelling in p]
    for budget in (4_000, 100_000, 300_000):
        result = ctx_hooks.compress(contents, format="gemini", budget_tokens=budget)
        assert result.fits
        sent = [p for c in result.messages for p in c["parts"]]
        assert all(p in before for p in sent if spelling in p or "functionCall" in p)
        assert violations("gemini", {"contents": result.messages}) == []


@pytest.mark.parametrize(("given", "written"), [
    ({"result": "long"}, {"result": "cut"}), ({"stdout": "long", "exit_code": 1}, {"output": "cut"}),
    ({"rows": [1, 2]}, {"rows": "cut"}), (["long"], {"output": "cut"}),
], ids=str)  # fmt: skip
def test_cut_result_has_its_own_key_or_googles(given, written):
    answer = {"functionResponse": {"name": "f", "response": given}}
    (_, _, message) = (conversation := gemini.WIRE.read(exchange([call("f")], [answer]))).messages
    result = message.results[0]
    cut = type(result)(result.call_id, (ctx_hooks.conversation.model.Text("cut"),), raw=result.raw)
    sent = gemini.WIRE.write(conversation.with_messages((message.with_parts((cut,)),)))
    assert sent[0]["parts"] == [{"functionResponse": {"name": "f", "response": written}}]


def test_response_to_an_earlier_call_is_moved():
    """The last call has an id of its own, which the response does not name: that one is moved, this one has none."""
    contents = [
        {"role": "user", "parts": [{"text": "go"}]},
        {"role": "model", "parts": [call(own_id="first", path="a.py")]},
        {"role": "model", "parts": [call(own_id="second", path="b.py")]},
        {"role": "user", "parts": [response("text of a.py", own_id="first")]},
        {"role": "user", "parts": [{"text": "and?"}]},
    ]
    repaired = ctx_hooks.repair(contents, format="gemini").messages
    answers = [p["functionResponse"] for content in repaired for p in content["parts"] if "functionResponse" in p]
    assert [(a["id"], a["response"].get("output")) for a in answers] == [("first", "text of a.py"), ("second", None)]
    assert not list(violations("gemini", {"contents": repaired}))
