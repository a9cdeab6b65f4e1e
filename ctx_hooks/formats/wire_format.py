"""All that is particular to a wire format beside how its messages are read: its fields and tools, LiteLLM's names for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ctx_hooks.conversation.model import Format, Message
    from ctx_hooks.formats.hidden_calls import HiddenCalls

SCHEMAS = ("functions", "response_format", "text", "output_format", "output_config")
"""Fields beside `tools` whose JSON schemas providers put into the prompt, and bill."""
OUTPUT_FIELDS = ("max_completion_tokens", "max_tokens", "max_output_tokens")


def as_it_is(value: Any) -> Any:
    """Return the value."""
    return value


def instead(_: Mapping[str, Any], changed: Mapping[str, Any]) -> dict[str, Any]:
    """Return changed options as changed fields: they stand among the fields of the request."""
    return dict(changed)


@dataclass(frozen=True, kw_only=True)
class WireFormat:
    """One wire format.

    Attributes:
        name: the format.
        call_types: LiteLLM's types of the calls whose requests carry a conversation in it.
        messages_field: the field of the messages.
        system_field: the field of the system text; "" where that is a message.
        output_fields: the options that limit the output, the first one asked of first.
        output_field: the one that is set where a request has none.
        output_holders: the fields that change where the output is lowered.
        route_ends: how the paths of its routes end, where the fields do not show that a request is in it.
        items: makes a list of messages of whatever the API takes for one in that field.
        options: returns where the options of a request stand, of its fields.
        with_options: returns the fields that change, of the fields and the options that change.
        counted: returns what is counted beside messages and tools, of the fields; by default system text and schemas.
        completed: returns a message with what only the items before it show, of the message, all items and its index.
        has_items: whether each part of a turn is an item of its own, which the provider may keep (Responses).
        router_method: the Router's method that asks again; "" where no further call is made.
        hidden_calls: how calls are hidden from its clients; None where they cannot be.
        tool: returns the definition of a tool, of its name, description and parameters.

    >>> WireFormat(name="openai-chat", call_types=("acompletion",), messages_field="messages").counted_values({"text": "x"})
    (None, None, None, 'x', None, None)
    """

    name: Format
    call_types: tuple[str, ...]
    messages_field: str
    system_field: str = ""
    output_fields: tuple[str, ...] = OUTPUT_FIELDS
    output_field: str = "max_tokens"
    output_holders: tuple[str, ...] = OUTPUT_FIELDS
    route_ends: tuple[str, ...] = ()
    items: Callable[[Any], Any] = as_it_is
    options: Callable[[Mapping[str, Any]], Mapping[str, Any]] = as_it_is
    with_options: Callable[[Mapping[str, Any], Mapping[str, Any]], dict[str, Any]] = instead
    counted: Callable[[Mapping[str, Any]], tuple[Any, ...]] | None = None
    completed: Callable[[Message, Sequence[Any], int], Message] | None = None
    has_items: bool = False
    router_method: str = ""
    hidden_calls: HiddenCalls | None = None
    tool: Callable[[str, str, Mapping[str, Any]], Mapping[str, Any]] | None = None

    def counted_values(self, fields: Mapping[str, Any]) -> tuple[Any, ...]:
        """Return what is sent and counted beside the messages and the tools."""
        if self.counted is not None:
            return self.counted(fields)
        return tuple(fields.get(name) for name in (self.system_field, *SCHEMAS))
