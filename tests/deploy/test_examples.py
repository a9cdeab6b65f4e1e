"""The examples of docs/examples do what they print; other programs send the requests of Claude Code and Codex."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ctx_hooks.testing import free_port

pytestmark = pytest.mark.deploy

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"
CLIENT = f"""#!{sys.executable}
import os, pathlib, sys, httpx
from ctx_hooks.testing import agent_session
if pathlib.Path(sys.argv[0]).name == "claude":
    path, key, fmt = os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages", os.environ["ANTHROPIC_AUTH_TOKEN"], "anthropic"
    model = sys.argv[sys.argv.index("--model") + 1]
else:
    tomllib = __import__("tomllib" if sys.version_info >= (3, 11) else "tomli")
    config = tomllib.loads(pathlib.Path(os.environ["CODEX_HOME"], "config.toml").read_text())
    server, model = config["model_providers"][config["model_provider"]], config["model"]
    path, key, fmt = server["base_url"] + "/" + server["wire_api"], os.environ[server["env_key"]], "openai-responses"
request = agent_session(fmt, model=model, turns=60, result_chars=4_000)
answer = httpx.post(path, json=request, headers={{"authorization": f"Bearer {{key}}"}}, timeout=300)
print(sys.argv[0], sys.argv[-1], answer.status_code)
"""


def printed(script, folder, *arguments):
    """Return what an example prints, which ends what it has started."""
    own = {"PORT": str(free_port()), "SERVER_PORT": str(free_port()), "PYTHONPATH": str(EXAMPLES.parents[1])}
    path = os.pathsep.join([str(folder), str(Path(sys.executable).parent), os.environ["PATH"]])
    options = {"cwd": folder, "env": {**os.environ, **own, "PATH": path}, "capture_output": True, "text": True}
    done = subprocess.run(["sh", str(EXAMPLES / script), *arguments], timeout=600, check=False, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_unknown_window_costs_one_refusal(tmp_path):
    first, second = printed("unknown_window.sh", tmp_path).split("The second request:")
    assert "x-ctx-hooks-decision: retried" in first
    assert "x-ctx-hooks-decision: compressed" in second


def test_local_model_answers_coding_agents(tmp_path):
    for name in ("claude", "codex"):
        (tmp_path / name).write_text(CLIENT)
        (tmp_path / name).chmod(0o755)
    shown = printed("coding_agents.sh", tmp_path, "List the files.")
    assert shown.count("List the files. 200") == 2
    assert shown.count("decision=retried") + shown.count("decision=compressed") == 2
