"""A request's messages are read when they are asked for, each once, and as the whole conversation would be read."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import every_format, items_of, payloads

from ctx_hooks.errors import MalformedConversationError
from ctx_hooks.formats import WIRE_FORMATS, MessageReader
from ctx_hooks.testing import agent_session


def reader_of(fmt, **fields):
    return MessageReader(fmt, items_of(agent_session(fmt, turns=3)), **fields)


@every_format
@settings(max_examples=10)
@given(data=st.data())
def test_messages_read_singly_equal_the_whole(fmt, data):
    messages = data.draw(payloads(fmt))
    reader = MessageReader(fmt, messages, ("system text",), 1)
    whole = WIRE_FORMATS[fmt].read(messages)
    assert tuple(map(reader.message, range(len(messages)))) == whole.messages
    start = data.draw(st.integers(0, len(messages)))
    part = reader.conversation(start, len(messages))
    assert part.messages == whole.messages[start:]
    assert (part.format, part.preamble, part.preamble_markers) == (fmt, ("system text",), 1)
    assert WIRE_FORMATS[fmt].write(reader.conversation()) == messages


@every_format
def test_a_message_is_read_once(fmt):
    reader = reader_of(fmt)
    first = reader.conversation()
    assert all(a is b for a, b in zip(first.messages, reader.conversation().messages, strict=True))


def test_what_is_not_asked_for_is_not_read():
    reader = MessageReader("openai-chat", [{"role": "user", "content": "Hi"}, "no message"])
    assert reader.message(0).text == "Hi"
    assert len(reader.conversation(0, 1).messages) == 1
    with pytest.raises(MalformedConversationError, match=r"messages\[1\]"):
        reader.message(1)
