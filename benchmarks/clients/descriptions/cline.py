"""Cline, in its mode without a terminal."""

from client import Client

PROVIDERS = """\
{
  "version": 1,
  "lastUsedProvider": "openai-compatible",
  "providers": {
    "openai-compatible": {
      "settings": {"provider": "openai-compatible", "apiKey": "$key", "model": "$model", "baseUrl": "$url/v1"},
      "updatedAt": "2026-01-01T00:00:00.000Z",
      "tokenSource": "manual"
    }
  }
}
"""

CLIENT = Client(
    name="cline",
    registry="npm",
    packages=("cline",),
    route="/v1/chat/completions",
    provider="openai",
    command=("cline", "--provider", "openai-compatible", "--model", "$model", "$prompt"),
    environment={"CLINE_SESSION_BACKEND_MODE": "local"},
    files={".cline/data/settings/providers.json": PROVIDERS},
)
