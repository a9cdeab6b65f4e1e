"""nanobot, asked once."""

from client import Client

CONFIGURATION = """\
{
  "agents": {"defaults": {"model": "$model", "provider": "custom", "workspace": "$work"}},
  "providers": {"custom": {"apiKey": "$key", "apiBase": "$url/v1"}}
}
"""

CLIENT = Client(
    name="nanobot",
    registry="pip",
    packages=("nanobot-ai",),
    route="/v1/chat/completions",
    provider="openai",
    command=("nanobot", "agent", "--no-markdown", "--message", "$prompt"),
    files={".nanobot/config.json": CONFIGURATION},
)
