"""Codex, in its mode without a terminal."""

from client import Client

CONFIGURATION = """\
model = "$model"
model_provider = "proxy"
check_for_update_on_startup = false

[model_providers.proxy]
name = "proxy"
base_url = "$url/v1"
env_key = "PROXY_KEY"
wire_api = "responses"

[analytics]
enabled = false
"""

CLIENT = Client(
    name="Codex",
    registry="npm",
    packages=("@openai/codex",),
    route="/v1/responses",
    provider="openai",
    # Its sandbox needs rights that a container has not; what is run is `cat` on the session's own files.
    command=("codex", "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "$prompt"),
    environment={"PROXY_KEY": "$key", "CODEX_HOME": "$home/.codex"},
    files={".codex/config.toml": CONFIGURATION},
)
