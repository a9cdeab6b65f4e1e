"""Every command of the documentation is run, or stands in a list that says why it is not; the latter exist."""

from __future__ import annotations

import json
import re
import shlex
import time
from pathlib import Path

import pytest
from documentation import ROOT, Block, blocks
from redis_process import RedisProcess

from ctx_hooks.archive import disk
from ctx_hooks.archive.sealing import sealed
from ctx_hooks.archive.tenant_key import tenant_key, tenant_name
from ctx_hooks.cli import main
from ctx_hooks.testing import agent_session

HANDLE = "k3jxk3jxk3jx"
"""Of a text that the test has stored for the team that the pages call T."""
NAMES = {"/var/lib/ctx_hooks": "events", "HANDLE": HANDLE}
"""What the pages name and the test's folder has by another name."""
ELSEWHERE = {
    "docs/install.md": "tests/deploy/test_recipes.py",  # every recipe, step by step
    "docs/quickstart.md": "tests/docs/test_recipes.py",  # its steps in their order, in front of a real proxy
}
"""Pages whose commands another test runs."""
NOT_RUN = {
    r"pip install (--upgrade )?ctx-hooks": "installs; tests/deploy installs the wheel into a fresh environment",
    r"pip install uv && uv run ctx-hooks demo": "tests/cli/test_demo.py runs the demo",
    r"pip install uv && uv run pytest": "is what runs this test",
    r"export \w+=\S+": "sets what the next line reads",
    r"claude --model \S+": "needs the client; benchmarks/clients runs it",
    r"uv run (--group \w+ )*python benchmarks/.*": "measures for minutes, some of them recorded sessions of one's own",
    r"ctx-hooks doctor.*": "starts a proxy; tests/cli runs it",
}
"""By the whole command, without its comment: why it is not run here."""


def commands(block: Block) -> list[str]:
    """Return the commands of a block, one a line, without comments."""
    joined = block.text.replace("\\\n", " ")
    return [line for line in (re.sub(r"(^|\s+)#\s.*", "", line).strip() for line in joined.splitlines()) if line]


def reason(command: str) -> str | None:
    """Return why a command is not run, None for one that is."""
    return next((why for pattern, why in NOT_RUN.items() if re.fullmatch(pattern, command)), None)


HERE = [(block, command) for block in blocks("sh") if block.page not in ELSEWHERE for command in commands(block)]
RUN = [(block, command) for block, command in HERE if reason(command) is None]
LISTED = [(block, command) for block, command in HERE if reason(command) is not None]


@pytest.fixture(scope="module")
def redis():
    with RedisProcess() as running:
        yield running


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """What the pages speak of: a request, a recorded session, events, an archive with a text."""
    made = tmp_path_factory.mktemp("commands")
    (made / "litellm_config.yaml").write_text((ROOT / "litellm_config.yaml").read_text(encoding="utf-8"))
    session = agent_session("openai-chat", model="gpt", turns=20)
    (made / "request.json").write_text(json.dumps(session))
    recorded = {"id": "one", "format": "openai-chat", "messages": session["messages"]}
    (made / "sessions.jsonl").write_text(json.dumps(recorded) + "\n")
    (made / "events").mkdir()
    (made / "events" / "events.0.jsonl").write_text("")
    tenant = tenant_key("team", "T", b"")
    values = {HANDLE: sealed("what was cut", tenant, HANDLE, "zlib", b"")}
    disk.write(made / "archive", tenant_name(tenant), values, time.time() + 3_600, 1_000_000)
    return made


@pytest.mark.parametrize(("block", "command"), RUN, ids=str)
def test_a_command_runs_as_it_is_written(block, command, folder, redis, monkeypatch, capsys):
    """Within this process, which loads LiteLLM once."""
    program, *arguments = shlex.split(command)
    assert program == "ctx-hooks", f"{block}: {command} is neither run nor in a list"
    monkeypatch.chdir(folder)
    monkeypatch.setenv("REDIS_HOST", "127.0.0.1")
    monkeypatch.setenv("REDIS_PORT", str(redis.port))
    monkeypatch.setenv("TOOL_OUTPUT_DIR", "archive")
    assert main([NAMES.get(word, word) for word in arguments]) == 0, f"{block}: {command}"
    assert capsys.readouterr().out


@pytest.mark.parametrize(("block", "command"), LISTED, ids=str)
def test_a_command_that_is_not_run_exists_with_its_options(block, command):
    words = shlex.split(command)
    script = next((ROOT / word for word in words if word.startswith("benchmarks/")), None)
    if script is None:
        return
    text = script.read_text(encoding="utf-8")
    options = [word for word in words[words.index("python") :] if word.startswith("--")]
    assert all(f'"{option}"' in text for option in options), block
    declared = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    groups = re.findall(r"--group (\w+)", command)
    assert all(re.search(rf"^{name} = \[", declared, re.MULTILINE) for name in groups), block


@pytest.mark.parametrize("page", ELSEWHERE)
def test_the_test_that_runs_a_page_reads_it(page):
    test = ROOT / ELSEWHERE[page]
    texts = [path.read_text(encoding="utf-8") for path in (*test.parent.glob("*.py"), ROOT / "tests" / "documentation.py")]
    assert any(Path(page).name in text or Path(page).stem in text for text in texts)


def test_every_reason_is_of_some_command():
    everything = [command for block in blocks("sh") for command in commands(block)]
    assert [pattern for pattern in NOT_RUN if not any(re.fullmatch(pattern, c) for c in everything)] == []
