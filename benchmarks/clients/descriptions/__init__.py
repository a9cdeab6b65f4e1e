"""Every client of the table, in its order: the first is the one that the others are compared with."""

from descriptions import (
    aider,
    anthropic_sdk,
    claude_code,
    claude_code_openai,
    cline,
    codex,
    gemini_cli,
    google_genai_openai,
    google_genai_sdk,
    kimi_code,
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
        openai_chat_gemini,
        google_genai_sdk,
        google_genai_openai,
        gemini_cli,
        langgraph,
        openai_agents,
        pydantic_ai,
        vercel_ai,
        claude_code,
        claude_code_openai,
        codex,
        opencode,
        qwen_code,
        pi,
        kimi_code,
        cline,
        nanobot,
        aider,
    )
)
