"""Gemini CLI, in its mode without a terminal, on Google's own route."""

from client import Client

CONFIGURATION = """\
{
  "security": {"auth": {"selectedType": "gemini-api-key"}},
  "privacy": {"usageStatisticsEnabled": false},
  "general": {"enableAutoUpdate": false}
}
"""

CLIENT = Client(
    name="Gemini CLI",
    registry="npm",
    packages=("@google/gemini-cli",),
    route="/v1beta/models/…:streamGenerateContent",
    provider="gemini",
    command=("gemini", "--model", "$model", "--yolo", "--skip-trust", "--prompt", "$prompt"),
    environment={"GOOGLE_GEMINI_BASE_URL": "$url", "GEMINI_API_KEY": "$key"},
    files={".gemini/settings.json": CONFIGURATION},
)
