"""Claude Code, in its mode without a terminal."""

from client import Client

CLIENT = Client(
    name="Claude Code",
    registry="npm",
    packages=("@anthropic-ai/claude-code",),
    route="/v1/messages",
    provider="anthropic",
    command=("claude", "--print", "--model", "$model", "--allowedTools", "Read", "--max-turns", "60", "--", "$prompt"),
    environment={
        "ANTHROPIC_BASE_URL": "$url",
        "ANTHROPIC_AUTH_TOKEN": "$key",
        "ANTHROPIC_DEFAULT_HAIKU_MODEL": "$model",  # for its requests beside the session
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
    },
)
