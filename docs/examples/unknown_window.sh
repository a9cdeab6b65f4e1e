#!/bin/sh
# An agent that has read sixty files asks a local model whose window nobody has stated. The first request is refused once and sent again;
# the second is compressed before the call.
#   sh docs/examples/unknown_window.sh
set -eu
cd "$(dirname "$0")"
: "${WINDOW:=12000}"
. ./start.sh

python3 - >"$folder/request.json" <<'END'
import json
from ctx_hooks.testing import agent_session
print(json.dumps(agent_session("openai-chat", model="local", turns=60)))
END

for number in first second; do
  curl -sf -D "$folder/headers" -o "$folder/answer.json" "$url/v1/chat/completions" \
    -H "Authorization: Bearer $LITELLM_MASTER_KEY" -H "Content-Type: application/json" -d @"$folder/request.json"
  echo "The $number request:"
  grep -i "^x-ctx-hooks" "$folder/headers"
done
