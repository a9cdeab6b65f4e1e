"""The OpenAI SDK on the Responses route."""

from client import Client

CLIENT = Client(
    name="OpenAI SDK, responses",
    registry="pip",
    packages=("openai",),
    route="/v1/responses",
    provider="openai",
    command=("python", "$programs/openai_responses.py", "$model", "$prompt"),
    environment={"OPENAI_BASE_URL": "$url/v1", "OPENAI_API_KEY": "$key"},
)
