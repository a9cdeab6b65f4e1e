"""Every command: what it loads, where it prints and how it ends; right input as a process, wrong input in this one."""

import json
import logging
import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from told_events import ANSWER, DECISION

from ctx_hooks.cli import main
from ctx_hooks.cli.commands import commands
from ctx_hooks.telemetry.event_file import to_json
from ctx_hooks.testing import agent_session

ROOT = Path(__file__).resolve().parents[2]
CONFIG = str(ROOT / "litellm_config.yaml")
PROGRAM = [sys.executable, "-m", "ctx_hooks"]
COLUMNS = 80
CONTROLS = "[/][red]\x07\x1b[31m\x1b]0;title\x9b2J"
"""Markup of Rich's, a bell, a colour, the title of a terminal, and one that clears it."""
CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")
HEAVY = ("litellm", "numpy", "fastapi", "pydantic", "rich")
NOT_PASSED_ON = ("REDIS_", "CTX_HOOKS", "TOOL_OUTPUT", "NO_COLOR", "COLUMNS")
WITH_WHAT_WAS_LOADED = """
import contextlib, io, json, sys
from ctx_hooks.cli import main
for arguments in json.loads(sys.argv[1]):
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as errors:
        code = main(arguments)
    print(json.dumps([code, out.getvalue(), errors.getvalue(), [name for name in {names} if name in sys.modules]]))
"""
"""Commands one after another, a line each: one process loads for all of them."""


def configured(**settings):
    return yaml.safe_dump({"callback_settings": {"ctx_hooks": settings}})


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    """A folder with right and wrong input of every kind; commands run in it."""
    folder = tmp_path_factory.mktemp("inputs")
    call = {"id": "c", "type": "function", "function": {"name": CONTROLS, "arguments": "{}"}}
    turn = [{"role": "assistant", "tool_calls": [call]}, {"role": "tool", "tool_call_id": "c", "content": CONTROLS * 300}]
    hostile = {"messages": [{"role": "user", "content": CONTROLS}, *turn * 20], "model": CONTROLS}
    models = [{"model_name": CONTROLS, "litellm_params": {"model": CONTROLS}}]
    named = {"teams": {CONTROLS: {"reserve": 9_000}}, "models": {CONTROLS: {"max_turns": 3}}}
    texts = {
        "request.json": json.dumps(agent_session("openai-chat", turns=60, result_chars=4_000)),
        "events/events.1.jsonl": f"{to_json(DECISION)}\n{to_json(ANSWER)}\n",
        "archive.yaml": configured(defaults={"archive": {"backend": "disk", "path": str(folder / "kept")}}),
        "mistake.yaml": configured(defaults={"reserve": "many"}),
        "plain.yaml": "model_list: []\n",
        "no.txt": "]: no JSON, no YAML",
        "list.json": "[1, 2]",
        "surrogate.json": '{"messages": [{"role": "user", "content": "\\ud800 and \\u4e2d"}]}',
        "unnamed.json": '{"messages": []}',
        "deep": "[\n" * 100_000,
        "controls.json": json.dumps(hostile),
        CONTROLS.replace("/", ""): json.dumps(hostile),
        "controls.yaml": json.dumps({"model_list": models, "callback_settings": {"ctx_hooks": named}}),
        "small.yaml": configured(defaults={"window_tokens": 6_000}),
        "mistaken.yaml": configured(**{CONTROLS: 1}),
        "redis.yaml": "router_settings: {redis_url: 'http://cache'}",
        "unheard.yaml": "router_settings: {redis_host: 127.0.0.1, redis_port: 1}",
        "date.yaml": "released: 2026-13-45",
    }
    (folder / "events").mkdir()
    for name, text in texts.items():
        (folder / name).write_text(text)
    (folder / "binary").write_bytes(bytes(range(256)))
    (folder / "utf16.json").write_bytes('{"messages": []}'.encode("utf-16"))
    return folder


def run(inputs, *arguments, program=PROGRAM, **environment):
    own = {name: value for name, value in os.environ.items() if not name.startswith(NOT_PASSED_ON)}
    own |= {"PYTHONPATH": str(ROOT), **environment}
    return subprocess.run(
        [*program, *arguments], cwd=inputs, env=own, capture_output=True, text=True, timeout=300, check=False
    )


@pytest.fixture
def here(inputs, monkeypatch, capfd):
    """Run a command in this process, and return what a process would be."""

    def run_here(*arguments):
        capfd.readouterr()
        code = main(arguments)
        return subprocess.CompletedProcess(arguments, code, *capfd.readouterr())

    monkeypatch.chdir(inputs)
    # Another test of this process may have made the plugin, whose lines are in LiteLLM's log output.
    monkeypatch.setattr(logging.getLogger("ctx_hooks"), "parent", logging.root)
    for name in [*os.environ]:
        if name.startswith(NOT_PASSED_ON):
            monkeypatch.delenv(name)
    return run_here


RIGHT = {
    "init": ["init", "plain.yaml", "--yes"],
    "check": ["check", CONFIG],
    "explain": ["explain", "request.json", "--model", "local", "--config", CONFIG],
    "report": ["report", "events", "-o", "page.html"],
    "archive ls": ["archive", "ls", "--config", "archive.yaml"],
    "archive prune": ["archive", "prune", "--config", "archive.yaml"],
}
"""Those that need neither a proxy nor a Redis; `demo`, `limits` and `archive show` have tests of their own."""


def loaded_by(inputs, commands_run, names):
    program = [sys.executable, "-c", WITH_WHAT_WAS_LOADED.format(names=names)]
    done = run(inputs, json.dumps(list(commands_run)), program=program)
    assert (done.returncode, done.stderr) == (0, "")
    return list(map(json.loads, done.stdout.splitlines()))


def test_commands_print_80_columns_without_loading_litellm(inputs):
    asked = [*RIGHT.values(), *([*command, "--json"] for name, command in RIGHT.items() if name != "init")]
    for command, (code, printed, *rest) in zip(asked, loaded_by(inputs, asked, ("litellm",)), strict=True):
        assert (command, code, *rest) == (command, 0, "", [])
        assert "\x1b" not in printed
        if "--json" in command:
            json.loads(printed)
        else:
            assert 0 < max(len(line.rstrip()) for line in printed.splitlines()) <= COLUMNS


def test_help_fits_80_columns_and_loads_little(inputs):
    asked = [[*command, "--help"] for command in ([], *([name] for name in commands.commands))]
    for arguments, (code, printed, errors, loaded) in zip(asked, loaded_by(inputs, asked, HEAVY), strict=True):
        assert (arguments, code, errors, loaded) == (arguments, 0, "", [])
        assert max(map(len, printed.splitlines())) <= COLUMNS


TOO_LONG = "n" * 300
"""A name that no file can have."""
NO_CONFIGURATION = ("none.yaml", "events", "no.txt", "binary", "list.json", "deep", TOO_LONG)
CANNOT_BE_DONE = {
    "": [
        *(["check", name] for name in (*NO_CONFIGURATION, "date.yaml")),
        *([*command, "none.yaml"] for command in (["archive", "ls", "--config"], ["limits", "ls", "--config"])),
        *(["explain", name, "--model", "gpt-4o"] for name in (*NO_CONFIGURATION, "utf16.json")),
        ["explain", "request.json", "--model", "m", "--config", "mistake.yaml"],
        ["archive", "ls"], ["archive", "show", "b" * 12, "--config", "archive.yaml"],
        ["erase", CONFIG, "--team", "red"], ["limits", "ls"],
        ["limits", "ls", "--config", "redis.yaml"], ["report", "none"], ["report", TOO_LONG],
        ["report", "events", "-o", "none/page.html"], ["report", "events", "-o", "events"],
    ],
    "Redis cannot be used": [["limits", "ls", "--config", "unheard.yaml"]],
    "no --yes": [["limits", "clear", "x"]],
    "see ctx-hooks": [
        ["init"], ["check", "a", "b"], ["check", "--frob", "a"], ["explain", "unnamed.json"], ["report"], ["erase", CONFIG],
        ["archive", "show", "b" * 12, "--team", "a", "--key", "b"], ["limits", "clear"], ["limits", "frob"], ["demo", "a"],
    ],
    "did you mean 'local'?": [["explain", "request.json", "--model", "locale", "--config", CONFIG]],
}  # fmt: skip
"""By what stands in the line."""
CASES = [(words, arguments) for words, listed in CANNOT_BE_DONE.items() for arguments in listed]


@pytest.mark.parametrize(("words", "arguments"), CASES, ids=lambda value: " ".join(value)[:60] if value else "")
def test_error_is_one_line_and_ends_with_2(words, arguments, here):
    done = here(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(r"Error: .+\n", done.stderr)
    assert words in done.stderr
    if "see ctx-hooks" not in done.stderr:
        done = here(*arguments, "--json")
        assert (done.returncode, done.stderr, len(json.loads(done.stdout))) == (2, "", 1)


def test_request_may_come_from_standard_input(inputs, here):
    piped = f"{sys.executable} -m ctx_hooks explain - --model gpt-4o < surrogate.json"
    done = run(inputs, piped, program=["sh", "-c"], PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, "")
    assert "fits: " in done.stdout
    sent = here("explain", "surrogate.json", "--model", "gpt-4o", "--sent")
    assert json.loads(sent.stdout) == json.loads((inputs / "surrogate.json").read_text())


@pytest.mark.parametrize("arguments", [
    ["check", "controls.yaml"], ["check", "mistaken.yaml"], ["explain", "controls.json", "--config", "small.yaml"],
    ["explain", "controls.json", "--config", "small.yaml", "--sent"], ["explain", f"{CONTROLS}/none"],
    ["explain", "controls.json", CONTROLS], ["report", "events", "-o", CONTROLS.replace("/", "") + ".html"],
], ids=lambda arguments: ascii(" ".join(arguments)))  # fmt: skip
def test_no_control_character_reaches_the_terminal(arguments, here):
    done = here(*arguments)
    assert "Traceback" not in done.stderr
    assert not CONTROL.search(done.stdout + done.stderr)
    assert arguments[1] != "controls.yaml" or "[/][red]" in done.stdout, "markup is text"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a full disk to write to")
@pytest.mark.parametrize("arguments", [["check", CONFIG], ["tail", "--help"]], ids=" ".join)
def test_full_disk_is_an_error_of_one_line(arguments, inputs):
    done = run(inputs, f"{shlex.join([*PROGRAM, *arguments])} > /dev/full", program=["sh", "-c"])
    assert (done.returncode, done.stderr) == (2, "Error: No space left on device\n")


def processes(parent):
    """Return the processes of a parent, or of all if it is None."""
    shown = subprocess.run(["ps", "-eo", "pid,ppid"], capture_output=True, text=True, check=True).stdout
    return {pid for pid, above in map(str.split, shown.splitlines()) if parent in (None, above)}


def test_ctrl_c_ends_a_command_and_its_processes(inputs):
    """A shell's job in the background ignores Ctrl-C, and so would whatever such a run of the tests starts."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "cwd": inputs}
    ours = {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)}  # no thread holds a lock then
    with subprocess.Popen([*PROGRAM, "demo"], **pipes, **ours) as demo:
        assert any(line.startswith("route") for line in demo.stdout)
        while not (started := processes(str(demo.pid))):
            assert demo.poll() is None
        demo.send_signal(signal.SIGINT)
        _, told = demo.communicate(timeout=300)
    assert demo.returncode == 130
    assert "Traceback" not in told
    assert not started & processes(None)
