"""How far a rescued request walks through the plugin: its functions, modules, and steps from one room to another.

    uv run python benchmarks/walk.py

An agent's `/v1/messages` request goes to a deployment whose window is smaller than stated. A profile function in the proxy
notes each call of a function of the package, from the request's first hook to its answer's log: what the plugin does once a
process, such as reading a table, was done by the same request before.
"""

from __future__ import annotations

import itertools
import json
import os
import tempfile
from collections import Counter
from pathlib import Path

import httpx

from ctx_hooks.testing import FakeProvider, ProviderSettings, ProxyProcess, agent_session

WINDOW_TOKENS, STATED_TOKENS = 12_000, 200_000
TRACE = """
import json, os, sys, threading
from litellm.proxy._types import UserAPIKeyAuth
import ctx_hooks

ROOT = os.path.dirname(ctx_hooks.__file__) + os.sep
calls = []

def note(frame, event, _):
    code = frame.f_code
    if event == "call" and code.co_filename.startswith(ROOT):
        calls.append((code.co_filename[len(ROOT):], code.co_qualname))

threading.setprofile(note)
sys.setprofile(note)

async def user_api_key_auth(request, api_key):
    if api_key == "sk-read":
        with open(os.environ["CALLS"], "w") as file:
            json.dump(calls, file)
    calls.clear()
    return UserAPIKeyAuth(api_key=api_key)
"""


def traced() -> list[list[str]]:
    """Return the file and the function of each call that a rescued request led to, in order."""
    body = agent_session("anthropic", model="group", turns=40)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "trace.py").write_text(TRACE, encoding="utf-8")
        with FakeProvider(ProviderSettings(window_tokens=WINDOW_TOKENS)) as provider:
            deployment = {
                "model_name": "group",
                "litellm_params": {"model": "anthropic/claude-served", "api_base": provider.url, "api_key": "none"},
                "model_info": {"max_input_tokens": STATED_TOKENS},
            }
            config = {
                "model_list": [deployment],
                "litellm_settings": {"callbacks": ["ctx_hooks.proxy_handler_instance"]},
                "general_settings": {"custom_auth": "trace.user_api_key_auth"},
            }
            root = str(Path(__file__).resolve().parents[1])
            env = {"CALLS": str(folder / "calls"), "PYTHONPATH": os.pathsep.join([name, root])}
            with ProxyProcess(config, env) as proxy:
                for key in ("sk-warm", "sk-one", "sk-read"):
                    headers = {"Authorization": f"Bearer {key}"}
                    answer = httpx.post(f"{proxy.url}/v1/messages", json=body, headers=headers, timeout=600)
                    answer.raise_for_status()
                    print(key, answer.headers["x-ctx-hooks"])
        return json.loads((folder / "calls").read_text(encoding="utf-8"))


def main() -> None:
    """Print the walk's figures, and how many functions of each room it goes through."""
    functions = list(dict.fromkeys(map(tuple, traced())))  # each where it is first called: a loop is no further walk
    rooms = [file.split("/")[0] for file, _ in functions]
    switches = sum(one != other for one, other in itertools.pairwise(rooms))
    modules = {file for file, _ in functions}
    print(
        f"{len(functions)} functions in {len(modules)} modules of {len(set(rooms))} rooms, {switches} switches between rooms"
    )
    for room, count in Counter(rooms).most_common():
        print(f"{count:6}  {room}")


if __name__ == "__main__":
    main()
