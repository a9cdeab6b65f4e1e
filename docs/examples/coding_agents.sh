#!/bin/sh
# Claude Code and Codex work with a local model through LiteLLM, each in the current folder, if it is installed.
#   sh docs/examples/coding_agents.sh "Read the files of this folder, and list what each of them does."
set -eu
task="$1"
project="$PWD"
cd "$(dirname "$0")"
: "${WINDOW:=40000}"
. ./start.sh
cd "$project"

if command -v claude >/dev/null; then
  ANTHROPIC_BASE_URL="$url" ANTHROPIC_AUTH_TOKEN="$LITELLM_MASTER_KEY" ANTHROPIC_DEFAULT_HAIKU_MODEL=local \
    claude --model local -p "$task"
fi

if command -v codex >/dev/null; then
  mkdir "$folder/codex"
  cat >"$folder/codex/config.toml" <<END
model = "local"
model_provider = "proxy"

[model_providers.proxy]
name = "proxy"
base_url = "$url/v1"
env_key = "LITELLM_MASTER_KEY"
wire_api = "responses"
END
  CODEX_HOME="$folder/codex" codex exec --skip-git-repo-check "$task"
fi

echo "What ctx_hooks did:"
grep -o "event=answer.*" "$folder/litellm.log" || echo "All requests fit."
