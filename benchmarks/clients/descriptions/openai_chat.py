"""The OpenAI SDK on chat completions."""

from client import Client

CLIENT = Client(
    name="OpenAI SDK, chat",
    registry="pip",
    packages=("openai",),
    route="/v1/chat/completions",
    provider="openai",
    command=("python", "$programs/openai_chat.py", "$model", "$prompt"),
    environment={"OPENAI_BASE_URL": "$url/v1", "OPENAI_API_KEY": "$key"},
)
