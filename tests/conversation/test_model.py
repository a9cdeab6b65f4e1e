"""The neutral model is frozen: an edit is a new value, and what nothing has edited is the very object that was there."""

from dataclasses import replace

from ctx_hooks.conversation.conversation import Conversation
from ctx_hooks.conversation.model import Media, Message, Text, ToolCall, ToolResult

CALL = ToolCall("a", "read", '{"path": "a.py"}')
RESULT = ToolResult("a", (Text("first"), Media("image", 9), Text("second")))
TALK = Conversation(
    "openai-chat",
    (Message("user", (Text("Read it."),)), Message("assistant", (Text("Yes."), CALL)), Message("tool", (RESULT,))),
    ("system text",),
    1,
)


def test_edit_without_change_returns_the_same_object():
    message = TALK.messages[1]
    assert message.with_parts((Text("Yes."), CALL)) is message
    assert TALK.with_messages(tuple(TALK.messages)) is TALK
    assert message.with_parts((Text("No."), CALL)).edited


def test_part_knows_its_original_text():
    assert RESULT.original_text == "first\nsecond"
    assert replace(RESULT, parts=(Text("f"),), came_text=RESULT.original_text).original_text == "first\nsecond"
    assert Text("first").original_text == "first"
    assert Text("f", came_text="first").original_text == "first"
