"""Protocols that carry one of the four formats in another shape, for the fake provider beside its own."""

from ctx_hooks.testing.provider import Protocol
from protocols import bedrock, cohere, ollama, relabelled, text_generation

PROTOCOLS: tuple[Protocol, ...] = (
    bedrock.CONVERSE,
    bedrock.INVOKE,
    cohere.COHERE,
    ollama.CHAT,
    ollama.GENERATE,
    relabelled.MISTRAL,
    relabelled.WATSONX,
    text_generation.TEXT_GENERATION,
)
