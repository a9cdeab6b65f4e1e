"""The protocols that the fake provider speaks: the four formats, and those that carry one of them in another shape."""

from ctx_hooks.testing.protocols.bedrock import CONVERSE, INVOKE
from ctx_hooks.testing.protocols.cohere import COHERE
from ctx_hooks.testing.protocols.four_formats import ANTHROPIC, GEMINI, OPENAI_CHAT, OPENAI_RESPONSES
from ctx_hooks.testing.protocols.mistral import MISTRAL
from ctx_hooks.testing.protocols.ollama import CHAT as OLLAMA_CHAT
from ctx_hooks.testing.protocols.ollama import GENERATE as OLLAMA_GENERATE
from ctx_hooks.testing.protocols.protocol import Protocol
from ctx_hooks.testing.protocols.text_generation import TEXT_GENERATION
from ctx_hooks.testing.protocols.vertex import VERTEX_CLAUDE
from ctx_hooks.testing.protocols.watsonx import WATSONX

PROTOCOLS: tuple[Protocol, ...] = (
    OPENAI_CHAT,
    ANTHROPIC,
    OPENAI_RESPONSES,
    GEMINI,
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

__all__ = ["PROTOCOLS", "Protocol"]
