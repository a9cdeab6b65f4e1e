"""qwen-code, in its mode without a terminal."""

from client import Client

CONFIGURATION = """\
{"privacy": {"usageStatisticsEnabled": false}, "general": {"enableAutoUpdate": false}}
"""

CLIENT = Client(
    name="qwen-code",
    registry="npm",
    packages=("@qwen-code/qwen-code",),
    route="/v1/chat/completions",
    provider="openai",
    command=("qwen", "--auth-type", "openai", "--model", "$model", "--yolo", "$prompt"),
    environment={"OPENAI_BASE_URL": "$url/v1", "OPENAI_API_KEY": "$key"},
    files={".qwen/settings.json": CONFIGURATION},
)
