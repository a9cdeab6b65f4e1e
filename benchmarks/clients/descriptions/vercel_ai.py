"""The Vercel AI SDK with its provider for OpenAI-compatible servers."""

from client import Client

CLIENT = Client(
    name="Vercel AI SDK",
    registry="npm",
    packages=("ai", "@ai-sdk/openai-compatible", "zod"),
    route="/v1/chat/completions",
    provider="openai",
    command=("node", "$programs/vercel.mjs", "$installed", "$model", "$prompt"),
    environment={"OPENAI_BASE_URL": "$url/v1", "OPENAI_API_KEY": "$key"},
)
