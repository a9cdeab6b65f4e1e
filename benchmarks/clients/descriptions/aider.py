"""aider through its scripting interface: it calls no tools, so the user hands it a file at each turn."""

from client import Client

CLIENT = Client(
    name="aider",
    registry="pip",
    packages=("aider-chat",),
    route="/v1/chat/completions",
    provider="openai",
    command=("python", "$programs/aider_turns.py", "openai/$model", "$end"),
    environment={"OPENAI_API_BASE": "$url/v1", "OPENAI_API_KEY": "$key", "LITELLM_LOCAL_MODEL_COST_MAP": "True"},
    calls_tools=False,
)
