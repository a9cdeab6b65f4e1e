"""Every command of the documentation is run, or stands in a list that says why it is not; the latter exist."""

import json
import re
import shlex
import time

import pytest
from documentation import ROOT, SHELL, blocks
from told_events import ANSWER, CALL, DECISION

from ctx_hooks.addons.retrieval.archive import disk
from ctx_hooks.cli import main
from ctx_hooks.store.sealing import sealed, tenant_key, tenant_name
from ctx_hooks.telemetry.event_file import to_json
from ctx_hooks.testing import agent_session

HANDLE = "k3jxk3jxk3jx"
"""Of a text that the test has stored for the team that the pages call T."""
NAMES = {"/var/lib/ctx_hooks": "events", "HANDLE": HANDLE, "6ec2…": CALL.call_id}
"""What the pages name and the test's folder has by another name."""
ELSEWHERE = {
    "docs/install.md": "tests/deploy/test_recipes.py",  # every recipe, step by step
    "docs/index.md": "tests/docs/test_recipes.py",  # its steps in their order, in front of a real proxy
}
"""Pages whose commands another test runs."""
NOT_RUN = {
    r"pip install (\.|(--upgrade )?ctx-hooks)": "installs; tests/deploy installs the wheel into a fresh environment",
    r"mkdir -p /var/lib/ctx_hooks": "makes a folder of the machine's",
    r"ctx-hooks init .* --observe --events .*": "asks; tests/docs/test_recipes.py answers it",
    r"curl .*\$PROXY/.*": "needs a database; tests/proxy/test_database.py makes the same calls of LiteLLM's API",
    r"litellm --config \S+": "is the proxy; tests/docs/test_recipes.py sends requests to it",
    r"(pip install uv && uv run )?ctx-hooks demo": "starts a proxy; tests/cli/test_demo.py runs it",
    r"sh docs/examples/\S+": "starts a proxy; tests/deploy/test_examples.py runs it",
    r"pip install uv && uv run pytest": "is what runs this test",
    r"ctx-hooks serve \S+": "serves until it is stopped; tests/cli/test_live.py asks it",
    r'export \w+=(\S+|"[^"]+")': "sets what the next line reads",
    r"claude --model \S+": "needs the client; benchmarks/clients runs it",
    r"uv run (--group \w+ )*python benchmarks/.*": "measures for minutes, some of them recorded sessions of one's own",
}
"""By the whole command, without its comment: why it is not run here."""


def reason(command: str) -> str | None:
    """Return why a command is not run, None for one that is."""
    return next((why for pattern, why in NOT_RUN.items() if re.fullmatch(pattern, command)), None)


HERE = [(block, command) for block in blocks(*SHELL) if block.page not in ELSEWHERE for command in block.commands]
RUN = [(block, command) for block, command in HERE if reason(command) is None]
LISTED = [(block, command) for block, command in HERE if reason(command) is not None and "benchmarks/" in command]


@pytest.fixture
def folder(tmp_path, monkeypatch, redis_server):
    """What the pages speak of, in the working folder: a request, events, an archive with a text."""
    session = agent_session("openai-chat", model="gpt", turns=20)
    texts = {
        "litellm_config.yaml": (ROOT / "litellm_config.yaml").read_text(encoding="utf-8"),
        "request.json": json.dumps(session),
        "events/events.0.jsonl": "".join(f"{to_json(event)}\n" for event in (DECISION, ANSWER)),
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    tenant = tenant_key("team", "T", b"")
    values = {HANDLE: sealed("what was cut", tenant, HANDLE, b"")}
    disk.write(tmp_path / "archive", tenant_name(tenant), values, time.time() + 3_600, 1_000_000)
    named = {
        "HOME": str(tmp_path),
        "TOOL_OUTPUT_DIR": "archive",
        "REDIS_HOST": "127.0.0.1",
        "REDIS_PORT": str(redis_server.port),
    }
    for name, value in named.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(("block", "command"), RUN, ids=str)
def test_a_command_runs_as_it_is_written(block, command, capsys):
    """Within this process, which loads LiteLLM once; what a shell does with `>` is done here."""
    program, *arguments = shlex.split(command.partition(" > ")[0])
    assert program == "ctx-hooks", f"{block}: {command} is neither run nor in a list"
    words = [NAMES.get(word, word) for word in arguments]
    assert main(words) == 0, f"{block}: {command}"
    assert capsys.readouterr().out


@pytest.mark.parametrize(("block", "command"), LISTED, ids=str)
def test_a_benchmark_exists_with_its_options(block, command):
    words = shlex.split(command)
    (text,) = ((ROOT / word).read_text(encoding="utf-8") for word in words if word.startswith("benchmarks/"))
    options = [word for word in words[words.index("python") :] if word.startswith("--")]
    assert all(f'"{option}"' in text for option in options), block
    declared = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    groups = re.findall(r"--group (\w+)", command)
    assert all(re.search(rf"^{name} = \[", declared, re.MULTILINE) for name in groups), block
