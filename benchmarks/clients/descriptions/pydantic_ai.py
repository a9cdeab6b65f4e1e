"""pydantic-ai."""

from client import Client

CLIENT = Client(
    name="pydantic-ai",
    registry="pip",
    packages=("pydantic-ai-slim[openai]",),
    route="/v1/chat/completions",
    provider="openai",
    command=("python", "$programs/pydantic_ai_agent.py", "$model", "$prompt"),
    environment={"OPENAI_BASE_URL": "$url/v1", "OPENAI_API_KEY": "$key"},
)
