"""The answers of a request become one without the calls of a hidden tool, in the same way whole and streamed."""

import asyncio
import copy
import json
from itertools import pairwise

import assembled
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctx_hooks.addons.retrieval.answer_forms import ShownStream, data_of, event_bytes
from ctx_hooks.addons.retrieval.hidden_calls import FORMS
from ctx_hooks.addons.retrieval.hidden_calls.answers import results_of
from ctx_hooks.testing import Call, Reply, streams, violations

TOOL = "ctx_retrieve"
CHAT, RESPONSES = FORMS["openai-chat"], FORMS["openai-responses"]
TOGETHER = {"openai-chat": assembled.chat, "anthropic": assembled.messages, "openai-responses": assembled.responses}
ENCRYPTED = {"include": ["reasoning.encrypted_content"]}
PAYLOAD = {"model": "served", "stream_options": {"include_usage": True}, **ENCRYPTED}
every_format = pytest.mark.parametrize("fmt", FORMS)

words = st.lists(st.sampled_from(["alpha", "beta", "結果"]), min_size=1, max_size=3).map(" ".join)
hidden_call = st.builds(Call, st.just(TOOL), st.fixed_dictionaries({"handle": words}))
other_call = st.builds(Call, st.just("read_file"), st.fixed_dictionaries({"path": words}))
waiting = st.builds(
    Reply, text=st.just("") | words, calls=st.lists(hidden_call, min_size=1, max_size=2), thinking=st.just("") | words
)
last = st.builds(Reply, text=words, calls=st.lists(hidden_call | other_call, max_size=3), thinking=st.just("") | words)
answered = st.builds(lambda before, end: [*before, end], st.lists(waiting, max_size=3), last)


def events_of(fmt, reply, tokens=100):
    async def sent():
        if fmt == "openai-responses":
            return [text async for text in streams.response_stream(streams.whole(fmt, PAYLOAD, reply, tokens, 0))]
        return [text async for text in streams.stream(fmt, PAYLOAD, reply, tokens, 0)]

    return [data for text in asyncio.run(sent()) if (data := data_of(text.encode())) is not None]


def shown_of(fmt, *rounds):
    """Return the stream of these events as a client gets it, and the turns behind it."""
    stream = FORMS[fmt]()
    seen, turns = [], []
    for i, events in enumerate(rounds):
        if i:
            stream.go_on()
        seen += [s for event in events if (s := stream.seen(event)) is not None]
        turns.append(stream.turn())
    return [*seen, *stream.end()], turns


def shown(fmt, replies):
    return shown_of(fmt, *(events_of(fmt, reply) for reply in replies))


def comparable(value):
    """Return an answer without its ids, and with texts as the fake provider's streams space them."""
    if isinstance(value, dict):
        own = ("id", "call_id", "created", "object", "model", "index", "type")
        return {k: comparable(v) for k, v in value.items() if k not in own}
    if isinstance(value, (list, tuple)):
        return [comparable(v) for v in value]
    return "".join(value.split()) if isinstance(value, str) else value


@every_format
@given(answered)
@settings(max_examples=20)
def test_streamed_and_whole_answers_become_the_same(fmt, replies):
    events, turns = shown(fmt, replies)
    wholes = [streams.whole(fmt, PAYLOAD, reply, 100, 0) for reply in replies]
    joined = FORMS[fmt].joined(wholes)
    if fmt == "openai-chat":
        joined["choices"][0]["message"]["content"] = joined["choices"][0]["message"]["content"] or ""
        joined = {name: joined[name] for name in ("choices", "usage")}
    assert comparable(TOGETHER[fmt](events)) == comparable(joined)
    of_whole = [FORMS[fmt].turn_of(whole) for whole in wholes]
    assert [comparable(t.messages) for t in turns] == [comparable(t.messages) for t in of_whole]
    assert [(len(t.hidden), t.waits) for t in turns] == [(len(t.hidden), t.waits) for t in of_whole]
    assert TOOL not in json.dumps(events) + json.dumps(joined)


@every_format
@given(st.builds(Reply, text=words, calls=st.lists(other_call, max_size=2), thinking=st.just("") | words))
@settings(max_examples=8)
def test_stream_without_hidden_calls_is_unchanged(fmt, reply):
    stream = FORMS[fmt]()
    events = events_of(fmt, reply)
    before = copy.deepcopy(events)
    withheld = 1 if fmt == "openai-responses" else 2
    seen = [stream.seen(event) for event in events]
    assert seen[:-withheld] == events[:-withheld]
    assert seen[-withheld:] == [None] * withheld, "why the answer ended, and the usage, which two formats state behind that"
    assert [*filter(None, seen), *stream.end()] == before == events


def test_streamed_thinking_is_the_providers_own():
    pieces = [{"thinking": "one "}, {"thinking": "two"}, {"thinking": "", "signature": "s"}, {"thinking": "three"}]
    stream = CHAT()
    for piece in pieces:
        stream.seen({"id": "1", "choices": [{"delta": {"thinking_blocks": [{"type": "thinking", **piece}]}}]})
    first = {"type": "thinking", "thinking": "one two", "signature": "s"}
    assert stream.turn().messages[0]["thinking_blocks"] == [first, {"type": "thinking", "thinking": "three"}]


@every_format
@pytest.mark.parametrize("arguments", ['{"handle": ', '{"handle":' + "[" * 100_000], ids=["cut off", "nested"])
def test_provider_gets_broken_arguments_as_an_object(fmt, arguments):
    _, (turn,) = shown(fmt, [Reply("text", calls=[Call(TOOL, arguments)])])
    assert json.loads(turn.hidden[0].arguments) == {}
    assert '{\\"handle' not in json.dumps(turn.messages)
    assert json.dumps(turn.messages).count("{}") == 1


def test_unencrypted_reasoning_is_not_sent_back():
    """A client that does not ask for encrypted reasoning gets none, and the provider keeps none."""
    reply = Reply("text", calls=[Call(TOOL, {})], thinking="hm")
    for include, kinds in (({}, ["message", "function_call"]), (ENCRYPTED, ["reasoning", "message", "function_call"])):
        turn = RESPONSES.turn_of(streams.whole("openai-responses", include, reply, 1, 0))
        results = results_of(RESPONSES.format, turn.hidden, ["found"])
        sent = {"input": [*turn.messages, *results], "store": False}
        assert [item["type"] for item in turn.messages] == kinds
        assert violations("openai-responses", sent) == []


def test_answer_does_not_end_in_reasoning():
    """ "Item 'rs_...' of type 'reasoning' was provided without its required following item." """
    whole = streams.whole("openai-responses", PAYLOAD, Reply(calls=[Call(TOOL, {})], thinking="hm"), 1, 0)
    assert RESPONSES.joined([whole])["output"] == []


def test_silent_end_has_the_streamed_items():
    """As of servers whose last event has no items."""
    *events, end = events_of("openai-responses", Reply("text", calls=[Call(TOOL, {})]))
    silent = {**end, "response": {**end["response"], "output": []}}
    (*_, shown_end), (turn,) = shown_of("openai-responses", [*events, silent])
    assert [item["type"] for item in turn.messages] == ["message", "function_call"]
    assert [item["type"] for item in shown_end["response"]["output"]] == ["message"]


@pytest.mark.parametrize("silent", range(3))
def test_answer_without_usage_adds_nothing(silent):
    wholes = [streams.whole("openai-responses", PAYLOAD, Reply(calls=[Call(TOOL, {})]), 100, 0) for _ in range(3)]
    del wholes[silent]["usage"]
    usage = RESPONSES.joined(wholes)["usage"]
    assert (usage["input_tokens"], usage["output_tokens"]) == (200, 2 * streams.OUTPUT_TOKENS)


@pytest.mark.parametrize("lost", ["item_id", "sequence_number"])
def test_events_without_a_field_hide_the_call(lost):
    reply = Reply("text", calls=[Call("read_file", {}), Call(TOOL, {"handle": "x" * 99}), Call("read_file", {})])
    events = [{k: v for k, v in event.items() if k != lost} for event in events_of("openai-responses", reply)]
    fault = {"type": "error", "message": "overloaded"}
    shown, (turn,) = shown_of("openai-responses", [*events[:-1], fault, events[-1]])
    assert TOOL not in json.dumps(shown)
    assert "xxxx" not in json.dumps(shown)
    assert [item["type"] for item in turn.messages] == ["message", *3 * ["function_call"]]
    kept = [event for event in shown if event["type"] == "response.output_item.done"]
    assert [e["item"]["type"] for e in kept] == ["message", "function_call", "function_call"]
    assert fault in shown


REASONS = {
    "openai-chat": ("finish_reason", "length"), "anthropic": ("stop_reason", "max_tokens"),
    "openai-responses": ("status", "incomplete"),
}  # fmt: skip


ITEMS = ("custom_tool_call", "computer_call", "unheard_call")
FAULTS = [(fmt, fault) for fmt in REASONS for fault in ("cut off", ("", "own"), (None, "own"), ("own", "own"))]


@pytest.mark.parametrize(("fmt", "fault"), [*FAULTS, *(("openai-responses", kind) for kind in ITEMS)], ids=str)
def test_unfinished_or_mixed_turn_waits_for_nothing(fmt, fault):
    """A call before the cut may be half of one; a call needs its own id; the client answers the calls of other kinds."""
    form, (field, reason) = FORMS[fmt], REASONS[fmt]
    own = [Call("read_file", {})] if isinstance(fault, tuple) else []
    whole = streams.whole(fmt, {}, Reply("text", calls=[Call(TOOL, {}), *own]), 1, 0)
    if isinstance(fault, tuple):
        calls = [part for part in form.parts(whole) if part.get("type") in ("function", "tool_use", "function_call")]
        for part, call_id in zip(calls, fault, strict=True):
            part["call_id" if fmt == "openai-responses" else "id"] = call_id
    elif fault == "cut off":
        (whole["choices"][0] if fmt == "openai-chat" else whole)[field] = reason
        assert json.dumps(form.joined([whole])).count(f'"{reason}"') == 1
    else:
        whole["output"].append({"type": fault, "call_id": "own"})
    turn = form.turn_of(whole)
    assert (len(turn.hidden), turn.waits) == (1, False)
    assert TOOL not in json.dumps(form.joined([whole]))


@every_format
def test_broken_stream_shows_no_hidden_call(fmt):
    events = events_of(fmt, Reply("text", calls=[Call(TOOL, {"handle": "x" * 40})]))
    for end in range(len(events)):
        seen, (turn,) = shown_of(fmt, events[:end])
        assert TOOL not in json.dumps(seen)
        assert "xxxx" not in json.dumps(seen)
        assert not turn.waits or end == len(events) - 1, "what is behind the reason why it ended is its usage"


@pytest.mark.parametrize("fmt", ["openai-chat", "anthropic"])
def test_repeated_call_has_its_last_arguments(fmt):
    """The Router goes on to another one where a stream fails."""
    begun, whole = (
        events_of(fmt, Reply(calls=[Call(TOOL, arguments)])) for arguments in ('{"handle": "lost', {"handle": "x"})
    )
    broken = [
        e
        for e in begun
        if 'finish_reason": "' not in json.dumps(e) and e.get("type") not in ("message_delta", "message_stop")
    ]
    events, (turn,) = shown_of(fmt, [*broken, *whole])
    assert TOOL not in json.dumps(events)
    assert json.loads(turn.hidden[-1].arguments) == {"handle": "x"}
    assert turn.waits


@given(st.lists(st.sampled_from(["text", "結果\\n", ""]), min_size=1, max_size=5), st.data())
@settings(max_examples=30)
def test_bytes_cut_anywhere_give_the_same_events(texts, data):
    ends = st.sampled_from([b"\n", b"\r\n", b"\r"])
    sent = [event_bytes({"type": "ping", "text": text}).replace(b"\n", data.draw(ends)) for text in texts]
    stream = b"".join(sent) + b"data: unfinished"
    cuts = sorted(data.draw(st.sets(st.integers(0, len(stream)), max_size=8)) | {0, len(stream)})
    shown, found = ShownStream(FORMS["anthropic"]()), b""
    for start, end in pairwise(cuts):
        found += b"".join(shown.seen(stream[start:end]))
        whole = [event for i, event in enumerate(sent) if sum(map(len, sent[: i + 1])) <= end]
        assert found.startswith(b"".join(whole)[:-1]), "an event is shown with its last byte"
    assert found + b"".join(shown.end()) == stream


def test_deeply_nested_event_is_not_read():
    assert data_of(b"data: " + b"[" * 100_000 + b"\n\n") is None
