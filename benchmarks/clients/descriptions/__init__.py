"""Every client of the table, in its order: the first is the one that the others are compared with."""

from descriptions import (
    aider,
    anthropic_sdk,
    claude_code,
    codex,
    gemini_cli,
    google_genai_sdk,
    langgraph,
    nanobot,
    openai_agents,
    openai_chat,
    openai_chat_gemini,
    openai_responses,
    opencode,
    pi,
    pydantic_ai,
    qwen_code,
    vercel_ai,
)

CLIENTS = tuple(
    module.CLIENT
    for module in (
        openai_chat,
        openai_responses,
        anthropic_sdk,
        google_genai_sdk,
        openai_chat_gemini,
        langgraph,
        openai_agents,
        pydantic_ai,
        vercel_ai,
        claude_code,
        codex,
        opencode,
        qwen_code,
        pi,
        gemini_cli,
        nanobot,
        aider,
    )
)
