"""Everything specific to a wire format: reading and writing its messages, its fields and tools, and LiteLLM's names."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ctx_hooks.conversation.conversation import Conversation
from ctx_hooks.conversation.model import Message, Reasoning, Role, Text
from ctx_hooks.errors import MalformedConversationError
from ctx_hooks.formats.fields import MAPPINGS, Format, copied, items_of, listed, mapping_or_empty, preamble_of

SCHEMAS = ("functions", "response_format", "text", "output_format", "output_config")
"""Fields beside `tools` whose JSON schemas providers put into the prompt, and bill."""
OUTPUT_FIELDS = ("max_completion_tokens", "max_tokens", "max_output_tokens")
FLAGS_FIELD = "context"
FLAGS = ("pin", "truncation_skip")
"""By `{"context": {"pin": true}}` a caller keeps a message whole; MyCodeAgent sets the second one on tool results."""
BLOCKS = ("content", "parts")
"""The fields of a message that contain its blocks."""


def _said(role: Role, text: str) -> Message:
    return Message(role, (Text(text),), raw={"role": role, "content": text})


@dataclass(frozen=True, kw_only=True)
class WireFormat:
    """One wire format.

    Attributes:
        call_types: LiteLLM's call types for requests in this format; the last one also names the Router's method.
        tool_result: returns a new message that answers a call with a text, `is_error` by keyword.
        output_fields: the options that limit the output; the first one in a request applies, else `output_field` is set.
        route_ends: how the paths of its routes end, if the fields of a request do not show its format.
        options, with_options: take a request's options out of its fields, and return the fields with changed ones.
        counted: of the fields, the values that count besides messages and tools; by default system and schemas.
        completed: takes a message, all items and its index; returns it with the facts that only earlier items show.
        to_send: returns a message of a changed request, without what the change may have made wrong.
        elided: reasoning in its shortest form, for a new answer; None if the format has no place for it.
    """

    name: Format
    call_types: tuple[str, ...]
    messages_field: str
    read_message: Callable[[Mapping[str, Any]], Message]
    write_message: Callable[[Message], Any]
    tool_result: Callable[..., Message]
    new_message: Callable[[Role, str], Message] = _said
    system_field: str = ""
    output_fields: tuple[str, ...] = OUTPUT_FIELDS
    output_field: str = "max_tokens"
    route_ends: tuple[str, ...] = ()
    items: Callable[[Any], Any] = lambda given: given
    options: Callable[[Mapping[str, Any]], Mapping[str, Any]] = lambda fields: fields
    with_options: Callable[[Mapping[str, Any], Mapping[str, Any]], dict[str, Any]] = lambda _, changed: dict(changed)
    counted: Callable[[Mapping[str, Any]], tuple[Any, ...]] | None = None
    completed: Callable[[Message, Sequence[Any], int], Message] = lambda message, _items, _index: message
    to_send: Callable[[Any], Any] = lambda message: message
    has_items: bool = False
    signs_parts: bool = False
    elided: Reasoning | None = None

    def read(self, messages: Any, *, system: Any = None, tools: Any = None) -> Conversation:
        """Return a request's conversation; raises MalformedConversationError for no list of mappings, or one too deep."""
        items = items_of(self.items(messages))
        return self.conversation((self.message(items, index) for index in range(len(items))), *preamble_of(system, tools))

    def conversation(self, messages: Iterable[Message], preamble: tuple[str, ...] = (), markers: int = 0) -> Conversation:
        """Return messages as a conversation of this format, behind a preamble with so many cache markers."""
        return Conversation(self.name, tuple(messages), preamble, markers, 0, self.has_items, self.signs_parts)

    def message(self, items: Sequence[Any], index: int) -> Message:
        """Return the message at `index`."""
        raw = items[index]
        if not isinstance(raw, MAPPINGS):
            raise MalformedConversationError(f"messages[{index}] must be a mapping, not {type(raw).__name__}")
        message = self.read_message(raw)
        return self.completed(replace(message, pinned=True) if is_pinned(raw) else message, items, index)

    def write(self, conversation: Conversation) -> list[Any]:
        """Return the provider's list: unedited messages are the objects that were read."""
        return [self.write_message(m) if m.edited else m.raw for m in conversation.messages]

    def sent(self, conversation: Conversation, came: Sequence[Any]) -> list[Any]:
        """Return a copy of the provider's list, to send instead of the client's messages `came`: caches may keep parts."""
        sent = self.write(conversation)
        is_changed = len(sent) != len(came) or any(new is not old for new, old in zip(sent, came, strict=False))
        return [copied(self.to_send(item) if is_changed else item) for item in sent]

    def output_limits(self, changes: Mapping[str, Any]) -> dict[str, int]:
        """Return the output limits among changed fields by name."""
        options = self.options(changes)
        return {name: options[name] for name in self.output_fields if name in options}

    def counted_values(self, fields: Mapping[str, Any]) -> tuple[Any, ...]:
        """Return the values that are sent and counted besides the messages and the tools."""
        return tuple(map(fields.get, (self.system_field, *SCHEMAS))) if self.counted is None else self.counted(fields)


def is_pinned(message: Any) -> bool:
    """Whether the caller keeps a message whole, by a flag of the message or of one of its blocks."""
    own = mapping_or_empty(message)
    return any(flag is True for value in (message, *_blocks(own)) for flag in _flags(value))


def without_flags(items: Any) -> list[Any] | None:
    """Return messages without the callers' flags, which no provider accepts; None if there are none."""
    bare = [_without_flags(item) for item in listed(items)]
    return None if all(new is old for new, old in zip(bare, listed(items), strict=True)) else bare


def _without_flags(value: Any) -> Any:
    """Return a message or a block without its flags and those of its blocks; other `context` is for Azure's search."""
    own = mapping_or_empty(value)
    if not _flags(value) and not any(map(_flags, _blocks(own))):
        return value
    bare: dict[str, Any] = {name: [_without_flags(block) for block in own[name]] for name in BLOCKS if listed(own.get(name))}
    if _flags(value):
        bare[FLAGS_FIELD] = {name: inner for name, inner in own[FLAGS_FIELD].items() if name not in FLAGS}
    return {name: inner for name, inner in {**own, **bare}.items() if name != FLAGS_FIELD or inner}


def _blocks(message: Mapping[str, Any]) -> Iterator[Any]:
    return (block for name in BLOCKS for block in listed(message.get(name)))


def _flags(value: Any) -> list[Any]:
    context = mapping_or_empty(mapping_or_empty(value).get(FLAGS_FIELD))
    return [context[name] for name in FLAGS if name in context]
