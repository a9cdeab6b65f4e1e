"""Provider payloads to and from the neutral conversation, lossless both ways: one module a format."""

from ctx_hooks.formats import anthropic_messages, gemini, openai_chat, openai_responses
from ctx_hooks.formats.wire_format import Format, WireFormat

__all__ = ["ANTHROPIC", "CHAT", "FORMAT_OF_CALL_TYPE", "GEMINI", "RESPONSES", "WIRE_FORMATS", "Format", "WireFormat"]

_WIRES = (openai_chat.WIRE, anthropic_messages.WIRE, openai_responses.WIRE, gemini.WIRE)
CHAT, ANTHROPIC, RESPONSES, GEMINI = (wire.name for wire in _WIRES)
WIRE_FORMATS: dict[str, WireFormat] = {wire.name: wire for wire in _WIRES}
FORMAT_OF_CALL_TYPE: dict[str, Format] = {name: wire.name for wire in _WIRES for name in wire.call_types}
"""The format of each of LiteLLM's call types that have a conversation."""
