"""Kimi Code, in its mode without a terminal."""

from client import Client

CONFIGURATION = """\
default_model = "$model"
telemetry = false

[providers.proxy]
type = "openai"
base_url = "$url/v1"
api_key = "$key"

[models."$model"]
provider = "proxy"
model = "$model"
max_context_size = 262144
"""

CLIENT = Client(
    name="Kimi Code",
    registry="npm",
    packages=("@moonshot-ai/kimi-code", "node@22"),  # it needs a newer Node than some machines have
    route="/v1/chat/completions",
    provider="openai",
    command=("kimi", "--model", "$model", "--prompt", "$prompt"),
    environment={"KIMI_CODE_NO_AUTO_UPDATE": "1", "KIMI_DISABLE_TELEMETRY": "1"},
    files={".kimi-code/config.toml": CONFIGURATION},
)
