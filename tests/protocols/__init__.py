"""Protocols that carry one of the four formats in another shape, for the fake provider beside its own."""

from ctx_hooks.testing.protocol import Protocol
from protocols.bedrock import CONVERSE, INVOKE
from protocols.cohere import COHERE
from protocols.mistral import MISTRAL
from protocols.ollama import CHAT as OLLAMA_CHAT
from protocols.ollama import GENERATE as OLLAMA_GENERATE
from protocols.text_generation import TEXT_GENERATION
from protocols.vertex import VERTEX_CLAUDE
from protocols.watsonx import WATSONX

PROTOCOLS: tuple[Protocol, ...] = (
    CONVERSE,
    INVOKE,
    VERTEX_CLAUDE,
    COHERE,
    MISTRAL,
    OLLAMA_CHAT,
    OLLAMA_GENERATE,
    TEXT_GENERATION,
    WATSONX,
)
