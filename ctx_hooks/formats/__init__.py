"""Provider payloads to and from the neutral conversation, lossless both ways: one module a format."""

from ctx_hooks.conversation.model import Format
from ctx_hooks.formats import anthropic_messages, gemini, openai_chat, openai_responses
from ctx_hooks.formats.wire_format import WireFormat

_MODULES = (openai_chat, anthropic_messages, openai_responses, gemini)
WIRE_FORMATS: dict[Format, WireFormat] = {module.WIRE.name: module.WIRE for module in _MODULES}
FORMAT_OF_CALL_TYPE: dict[str, Format] = {name: wire.name for wire in WIRE_FORMATS.values() for name in wire.call_types}
"""The format of each of LiteLLM's call types that have a conversation."""
