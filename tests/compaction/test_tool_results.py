"""A cut result keeps what is no text of it, and belongs to the nearest call before it."""

from ctx_hooks.compaction.tool_results import call_names, with_text
from ctx_hooks.conversation.model import Media, Message, Text, ToolCall, ToolResult

LONG = "a line that says little\n" * 50


def result(text=LONG, **fields):
    return ToolResult("c0", (Text(text),), **fields)


def test_a_cut_result_keeps_its_media_and_knows_what_it_came_with():
    image = Media("image", 9)
    cut = with_text(ToolResult("a", (Text("first"), image, Text("second"))), "short")
    assert cut.parts == (Text("short"), image)
    assert cut.is_cut
    assert cut.original_text == "first\nsecond"


def test_a_result_belongs_to_the_nearest_call_before_it_with_its_id():
    messages = (
        Message("assistant", (ToolCall("a", "read", "1"),)),
        Message("tool", (result("x"), ToolResult("a", ()))),
        Message("assistant", (ToolCall("a", "write", "2"),)),
        Message("tool", (ToolResult("a", ()),)),
    )
    assert call_names(messages) == {(1, 0): ("", ""), (1, 1): ("read", "1"), (3, 0): ("write", "2")}
