"""Protocols that carry one of the four formats in another shape, for the fake provider beside its own."""

from ctx_hooks.testing.provider import Protocol
from protocols import bedrock, local_servers, openai_messages

PROTOCOLS: tuple[Protocol, ...] = (
    bedrock.CONVERSE,
    bedrock.INVOKE,
    openai_messages.COHERE,
    local_servers.CHAT,
    local_servers.GENERATE,
    openai_messages.MISTRAL,
    openai_messages.WATSONX,
    local_servers.TEXT_GENERATION,
)
