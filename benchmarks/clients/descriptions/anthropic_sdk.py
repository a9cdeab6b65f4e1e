"""The Anthropic SDK."""

from client import Client

CLIENT = Client(
    name="Anthropic SDK",
    registry="pip",
    packages=("anthropic",),
    route="/v1/messages",
    provider="anthropic",
    command=("python", "$programs/anthropic_messages.py", "$model", "$prompt"),
    environment={"ANTHROPIC_BASE_URL": "$url", "ANTHROPIC_API_KEY": "$key"},
)
