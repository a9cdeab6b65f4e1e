# Both examples begin with this file. It starts LiteLLM with ctx_hooks in front of a model server, and ends both with the example.
# LOCAL_API_BASE is the address of your vLLM, such as http://localhost:8000/v1, which serves a model named "local"
# (--served-model-name). Without the variable, a simulated server with a window of $WINDOW tokens runs on $SERVER_PORT.
: "${PORT:=4000}" "${SERVER_PORT:=8000}"
export LITELLM_MASTER_KEY="${LITELLM_MASTER_KEY:-sk-example-$(od -An -N12 -tx1 /dev/urandom | tr -d ' \n')}"
export LOCAL_API_KEY="${LOCAL_API_KEY:-not-a-key}" LITELLM_LOG=INFO
url="http://127.0.0.1:$PORT"
folder=$(mktemp -d)
started=""
trap 'kill $started; wait; rm -r "$folder"' EXIT
trap 'exit 130' INT TERM

if [ -z "${LOCAL_API_BASE:-}" ]; then
  export LOCAL_API_BASE="http://127.0.0.1:$SERVER_PORT/v1"
  ctx-hooks demo --provider-only --port "$SERVER_PORT" --window "$WINDOW" >"$folder/server.log" 2>&1 &
  started="$!"
fi
litellm --config litellm_config.yaml --host 127.0.0.1 --port "$PORT" >"$folder/litellm.log" 2>&1 &
started="$! $started"
until curl -sf "$url/health/readiness" >/dev/null; do
  kill -0 $started || { cat "$folder"/*.log; exit 1; }
  sleep 1
done
