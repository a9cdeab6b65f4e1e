"""pi, in its mode without a terminal."""

from client import Client

MODELS = """\
{
  "providers": {
    "proxy": {"baseUrl": "$url/v1", "api": "openai-completions", "apiKey": "$key", "models": [{"id": "$model"}]}
  }
}
"""

CLIENT = Client(
    name="pi",
    registry="npm",
    packages=("@mariozechner/pi-coding-agent",),
    route="/v1/chat/completions",
    provider="openai",
    command=("pi", "--offline", "--provider", "proxy", "--model", "$model", "--print", "$prompt"),
    files={".pi/agent/models.json": MODELS},
)
