"""A fifth format is one module and four entries: it is read, counted, compacted, repaired and written like the others."""

import json

import pytest
from engine_requests import to

from ctx_hooks.attempts.request import request_of
from ctx_hooks.conversation.model import Message, Text, ToolCall, ToolResult
from ctx_hooks.flow.decision import Compressed, Untouched
from ctx_hooks.flow.request_flow import RequestFlow
from ctx_hooks.formats import FORMAT_OF_CALL_TYPE, WIRE_FORMATS
from ctx_hooks.formats.fields import compact_json
from ctx_hooks.formats.wire_format import WireFormat
from ctx_hooks.message_rules import RULES
from ctx_hooks.message_rules.pairing import ARRANGED, calls_answered

ROLES = {"me": "user", "it": "assistant", "tool": "tool"}
NAMES = {role: name for name, role in ROLES.items()}


def read_message(raw):
    calls = tuple(ToolCall(c["id"], c["name"], compact_json(c["with"]), raw=c) for c in raw.get("calls", ()))
    said = (Text(raw["says"]),)
    parts = (ToolResult(raw["of"], said),) if "of" in raw else (*said, *calls)
    return Message(ROLES[raw["who"]], parts, raw=raw)


def _result(message):
    return "".join(part.text for result in message.results for part in result.parts)


def write_message(message):
    return {**message.raw, "who": NAMES[message.role], "says": message.text or _result(message)}


def new_message(role, text):
    return Message(role, (Text(text),), raw={"who": NAMES[role], "says": text})


def tool_result(call, text, *, is_error):
    del is_error
    return Message("tool", (ToolResult(call.id, (Text(text),)),), raw={"who": "tool", "of": call.id, "says": text})


WIRE = WireFormat(
    name="talk", call_types=("atalk",), messages_field="talk", output_field="most_words", output_fields=("most_words",),
    read_message=read_message, write_message=write_message, tool_result=tool_result, new_message=new_message,
)  # fmt: skip


@pytest.fixture(autouse=True)
def _fifth(monkeypatch):
    monkeypatch.setitem(WIRE_FORMATS, "talk", WIRE)
    monkeypatch.setitem(FORMAT_OF_CALL_TYPE, "atalk", "talk")  # made of the formats when they are imported
    monkeypatch.setitem(RULES, "talk", (calls_answered,))
    monkeypatch.setitem(ARRANGED, "talk", ARRANGED["openai-chat"])


def session(turns):
    talk = [{"who": "me", "says": "Look for the slow step in every file."}]
    for n in range(turns):
        calls = [{"id": f"c{n}", "name": "read", "with": {"path": f"f{n}.py"}}]
        steps = "\n".join(f"step_{n}_{k} = run({k}, retries={k % 7})" for k in range(120))
        talk += [{"who": "it", "says": f"I read file {n}.", "calls": calls}, {"who": "tool", "of": f"c{n}", "says": steps}]
    talk += [{"who": "it", "says": "It is step 3."}, {"who": "me", "says": "Why?"}]
    return request_of("atalk", {"model": "m", "talk": talk, "most_words": 900})


async def test_longer_request_is_compacted_by_all_rules():
    assert isinstance(await RequestFlow().deciding.decide(session(2), to(20_000)), Untouched)
    decision = await RequestFlow().deciding.decide(session(30), to(20_000))
    assert isinstance(decision, Compressed)
    sent = decision.changes["talk"]
    assert decision.figures.tokens_after <= decision.figures.budget_tokens < decision.figures.tokens_before
    assert sent[0]["says"] == "Look for the slow step in every file."
    assert sent[-1] == {"who": "me", "says": "Why?"}
    assert {m["of"] for m in sent if "of" in m} == {c["id"] for m in sent for c in m.get("calls", ())}
    json.dumps(sent)


async def test_output_is_lowered_in_its_own_field():
    request = session(2).with_fields({**session(2).fields, "most_words": 90_000})
    decision = await RequestFlow().deciding.decide(request, to(20_000))
    assert isinstance(decision, Compressed)
    assert decision.changes.keys() == {"most_words"}
