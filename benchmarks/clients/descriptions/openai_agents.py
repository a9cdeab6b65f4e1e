"""The OpenAI Agents SDK."""

from client import Client

CLIENT = Client(
    name="OpenAI Agents SDK",
    registry="pip",
    packages=("openai-agents",),
    route="/v1/responses",
    provider="openai",
    command=("python", "$programs/openai_agents.py", "$model", "$prompt"),
    environment={"OPENAI_BASE_URL": "$url/v1", "OPENAI_API_KEY": "$key", "OPENAI_AGENTS_DISABLE_TRACING": "1"},
)
