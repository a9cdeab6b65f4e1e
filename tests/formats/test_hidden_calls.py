"""The answers of a request become one without the calls of a hidden tool, in the same way whole and streamed."""

from __future__ import annotations

import asyncio
import copy
import json
from itertools import pairwise

import assembled
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctx_hooks.formats import hidden_calls_chat, hidden_calls_messages
from ctx_hooks.formats.event_stream import EventBuffer, data_of, event_bytes
from ctx_hooks.testing import Call, Reply, streams

TOOL = "ctx_retrieve"
FORMS = {"openai-chat": hidden_calls_chat, "anthropic": hidden_calls_messages}
TOGETHER = {"openai-chat": assembled.chat, "anthropic": assembled.messages}
PAYLOAD = {"model": "served", "stream_options": {"include_usage": True}}
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
        return [text async for text in streams.stream(fmt, PAYLOAD, reply, tokens, 0)]

    return [data for text in asyncio.run(sent()) if (data := data_of(text.encode())) is not None]


def shown(fmt, replies):
    """Return the stream of all replies as a client gets it, and the turns behind it."""
    stream = FORMS[fmt].stream(TOOL)
    seen, turns = [], []
    for i, reply in enumerate(replies):
        if i:
            stream.go_on()
        seen += [s for event in events_of(fmt, reply) if (s := stream.seen(event)) is not None]
        turns.append(stream.turn())
    return [*seen, *stream.end()], turns


def comparable(value):
    """Return an answer without its ids, and with texts as the fake provider's streams space them."""
    if isinstance(value, dict):
        return {k: comparable(v) for k, v in value.items() if k not in ("id", "created", "object", "model", "index", "type")}
    if isinstance(value, list):
        return [comparable(v) for v in value]
    return "".join(value.split()) if isinstance(value, str) else value


@every_format
@given(answered)
@settings(max_examples=60, deadline=None)
def test_streamed_answers_are_put_together_to_what_whole_answers_are_joined_to(fmt, replies):
    events, turns = shown(fmt, replies)
    wholes = [streams.whole(fmt, PAYLOAD, reply, 100, 0) for reply in replies]
    joined = FORMS[fmt].joined(wholes, TOOL)
    if fmt == "openai-chat":
        joined["choices"][0]["message"]["content"] = joined["choices"][0]["message"]["content"] or ""
        joined = {name: joined[name] for name in ("choices", "usage")}
    assert comparable(TOGETHER[fmt](events)) == comparable(joined)
    of_whole = [FORMS[fmt].turn_of(whole, TOOL) for whole in wholes]
    assert [comparable(t.message) for t in turns] == [comparable(t.message) for t in of_whole]
    assert [(len(t.hidden), t.has_other_calls, t.waits) for t in turns] == [
        (len(t.hidden), t.has_other_calls, t.waits) for t in of_whole
    ]
    assert TOOL not in json.dumps(events) + json.dumps(joined)


@every_format
@given(st.builds(Reply, text=words, calls=st.lists(other_call, max_size=2), thinking=st.just("") | words))
@settings(max_examples=20, deadline=None)
def test_of_a_stream_that_hides_nothing_every_event_is_the_very_one_that_came(fmt, reply):
    stream = FORMS[fmt].stream(TOOL)
    events = events_of(fmt, reply)
    before = copy.deepcopy(events)
    seen = [s for event in events if (s := stream.seen(event)) is not None]
    assert all(any(s is event for event in events) for s in seen)
    assert [*seen, *stream.end()] == before
    assert events == before


@every_format
def test_text_and_thinking_are_not_withheld(fmt):
    """The end alone is: why the answer ended, and the usage behind that."""
    stream = FORMS[fmt].stream(TOOL)
    seen = [stream.seen(event) for event in events_of(fmt, Reply("one two three", thinking="hm"))]
    assert seen.index(None) == len(seen) - 2
    assert len(stream.end()) == 2


@every_format
def test_an_answer_whose_calls_are_all_hidden_ends_as_one_without_calls(fmt):
    reason = {"openai-chat": "stop", "anthropic": "end_turn"}[fmt]
    reply = Reply("text", calls=[Call(TOOL, {})])
    whole = FORMS[fmt].joined([streams.whole(fmt, PAYLOAD, reply, 1, 0)], TOOL)
    events, _ = shown(fmt, [reply])
    assert (whole if fmt == "anthropic" else whole["choices"][0])[
        f"{'stop' if fmt == 'anthropic' else 'finish'}_reason"
    ] == reason
    assert json.dumps(events).count(f'_reason": "{reason}"') == 1


def test_the_texts_of_two_answers_stand_apart_in_a_chat_message():
    replies = [Reply("one", calls=[Call(TOOL, {})]), Reply("two")]
    events, _ = shown("openai-chat", replies)
    wholes = [streams.whole("openai-chat", PAYLOAD, reply, 1, 0) for reply in replies]
    for answer in (assembled.chat(events), hidden_calls_chat.joined(wholes, TOOL)):
        assert answer["choices"][0]["message"]["content"].replace(" ", "") == "one\n\ntwo"


@pytest.mark.parametrize("beside_signature", ["", "one two"], ids=["1.106", "1.100"])
def test_streamed_thinking_is_the_providers_own_whatever_stands_beside_its_signature(beside_signature):
    pieces = [
        {"thinking": "one "},
        {"thinking": "two"},
        {"thinking": beside_signature, "signature": "s"},
        {"thinking": "three"},
    ]
    stream = hidden_calls_chat.stream(TOOL)
    for piece in pieces:
        stream.seen({"id": "1", "choices": [{"delta": {"thinking_blocks": [{"type": "thinking", **piece}]}}]})
    first = {"type": "thinking", "thinking": "one two", "signature": "s"}
    assert stream.turn().message["thinking_blocks"] == [first, {"type": "thinking", "thinking": "three"}]


@every_format
def test_a_turn_that_is_cut_off_waits_for_nothing(fmt):
    """A call in front of the cut may be half of one."""
    field = {"openai-chat": ("finish_reason", "length"), "anthropic": ("stop_reason", "max_tokens")}[fmt]
    whole = streams.whole(fmt, PAYLOAD, Reply("text", calls=[Call(TOOL, {})]), 1, 0)
    (whole["choices"][0] if fmt == "openai-chat" else whole)[field[0]] = field[1]
    turn = FORMS[fmt].turn_of(whole, TOOL)
    assert turn.hidden
    assert not turn.waits
    assert TOOL not in json.dumps(FORMS[fmt].without(turn))
    assert json.dumps(FORMS[fmt].joined([whole], TOOL)).count(field[1]) == 1


@every_format
def test_arguments_that_are_no_object_reach_the_tool_as_they_are_and_the_provider_as_an_empty_one(fmt):
    _, (turn,) = shown(fmt, [Reply("text", calls=[Call(TOOL, '{"handle": ')])])
    assert turn.hidden[0].arguments == '{"handle": '
    assert '{\\"handle' not in json.dumps(turn.message)
    assert json.dumps(turn.message).count("{}") == 1


@every_format
def test_the_usage_of_several_answers_is_their_sum(fmt):
    events, _ = shown(fmt, [Reply("a", calls=[Call(TOOL, {})])] * 2 + [Reply("b")])
    usage = TOGETHER[fmt](events)["usage"]
    figures = {"openai-chat": ("prompt_tokens", "completion_tokens"), "anthropic": ("input_tokens", "output_tokens")}[fmt]
    assert [usage[name] for name in figures] == [300, 3 * streams.OUTPUT_TOKENS]


@given(st.lists(st.sampled_from(["text", "結果\\n", ""]), min_size=1, max_size=5), st.data())
@settings(max_examples=80, deadline=None)
def test_bytes_cut_anywhere_give_the_same_events_each_with_the_piece_that_ends_it(texts, data):
    ends = st.sampled_from([b"\n", b"\r\n", b"\r"])
    sent = [event_bytes({"type": "ping", "text": text}).replace(b"\n", data.draw(ends)) for text in texts]
    stream = b"".join(sent) + b"data: unfinished"
    cuts = sorted(data.draw(st.sets(st.integers(0, len(stream)), max_size=8)) | {0, len(stream)})
    buffer, found, passed = EventBuffer(), [], 0
    for start, end in pairwise(cuts):
        found += buffer.add(stream[start:end])
        passed = end
        whole = [event for i, event in enumerate(sent) if sum(map(len, sent[: i + 1])) <= passed]
        assert b"".join(found).startswith(b"".join(whole)[:-1])
    assert b"".join(found) + buffer.rest() == stream
    assert [data_of(event) for event in found if event.strip()] == [{"type": "ping", "text": text} for text in texts]
