"""Every tool call has its result, and every result has its call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_hooks.message_rules.call_pairs import call_id_of, pairs_of
from ctx_hooks.message_rules.pairing_layouts import LAYOUTS
from ctx_hooks.message_rules.rule import Repair, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctx_hooks.conversation.model import Conversation


class CallsAnswered(Rule):
    """A call's results stand where the format wants them, one per call.

    OpenAI chat: "An assistant message with 'tool_calls' must be followed by tool messages responding to each
    'tool_call_id'." and "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."
    Anthropic: "`tool_use` ids were found without `tool_result` blocks immediately after", "unexpected `tool_use_id` found
    in `tool_result` blocks", "each tool_use must have a single result".
    Responses: "No tool output found for function call", "No tool call found for function call output with call_id".
    Google: "Please ensure that function response turn comes immediately after a function call turn. And the number of
    function response parts should be equal to number of function call parts of the function call turn."

    Ids may repeat across turns (agent logs do that): a result belongs to the nearest unanswered call before it.
    """

    name = "calls_answered"

    def repair(self, conversation: Conversation, *, continues: bool) -> tuple[Conversation, tuple[Repair, ...]]:
        """Move misplaced results behind their call, drop orphans and doubles, add a result for a call without one."""
        repairs = tuple(self._repairs(conversation, continues))
        if not repairs:
            return conversation, ()
        arranged = LAYOUTS[conversation.format].arranged(conversation, pairs_of(conversation.messages), continues)
        return conversation.with_messages(tuple(arranged)), repairs

    def _repairs(self, conversation: Conversation, continues: bool) -> Iterator[Repair]:  # noqa: FBT001 - as given
        messages = conversation.messages
        pairs = pairs_of(messages)
        for i, k in pairs.unanswered:
            call = messages[i].parts[k]
            yield Repair(self.name, i, "added", f"call {getattr(call, 'id', '')!r} has no result")
        for i, k in () if continues else pairs.orphans:
            yield Repair(self.name, i, "dropped", f"result {call_id_of(messages[i].parts[k])!r} has no call")
        for i, k in pairs.doubles:
            yield Repair(self.name, i, "dropped", f"second result for call {call_id_of(messages[i].parts[k])!r}")
        in_place = LAYOUTS[conversation.format].in_place(conversation)
        for call_at, (i, k) in pairs.answer.items():
            if not in_place(call_at, (i, k)):
                yield Repair(self.name, i, "moved", f"result {call_id_of(messages[i].parts[k])!r} is not behind its call")
