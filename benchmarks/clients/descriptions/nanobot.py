"""nanobot, asked once."""

from client import Client

# Its window is that many bytes while it cannot fetch a vocabulary: the default would make it summarise after ten files.
CONFIGURATION = """\
{
  "agents": {"defaults": {"model": "$model", "provider": "custom", "workspace": "$work", "contextWindowTokens": 1000000}},
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
