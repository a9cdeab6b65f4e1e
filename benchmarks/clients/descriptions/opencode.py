"""opencode, in its mode without a terminal."""

from client import Client

CONFIGURATION = """\
{
  "provider": {
    "proxy": {
      "npm": "@ai-sdk/openai-compatible",
      "options": {"baseURL": "$url/v1", "apiKey": "$key"},
      "models": {"$model": {}}
    }
  }
}
"""

CLIENT = Client(
    name="opencode",
    registry="npm",
    packages=("opencode-ai",),
    route="/v1/chat/completions",
    provider="openai",
    command=("opencode", "run", "--model", "proxy/$model", "$prompt"),
    environment={
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
    },
    files={".config/opencode/opencode.json": CONFIGURATION},
)
