"""Every command: what it loads, where it prints and how it ends; right input as a process, wrong input in this one."""

import json
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
"""What takes longest to load."""
NOT_PASSED_ON = ("REDIS_", "CTX_HOOKS", "TOOL_OUTPUT")
WITH_WHAT_WAS_LOADED = """
import contextlib, io, json, sys
from ctx_hooks.cli import main
for arguments in json.loads(sys.argv[1]):
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as errors:
        code = main(arguments)
    print(json.dumps([code, out.getvalue(), errors.getvalue(), [name for name in {names} if name in sys.modules]]))
"""
"""Commands one after another, a line each: one process loads for all of them."""


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    """A folder with right and wrong input of every kind; commands run in it."""
    folder = tmp_path_factory.mktemp("inputs")
    (folder / "request.json").write_text(json.dumps(agent_session("openai-chat", turns=60, result_chars=4_000)))
    (folder / "events").mkdir()
    (folder / "events" / "events.1.jsonl").write_text(f"{to_json(DECISION)}\n{to_json(ANSWER)}\n")
    settings = {"defaults": {"archive": {"backend": "disk", "path": str(folder / "kept")}}}
    (folder / "archive.yaml").write_text(yaml.safe_dump({"callback_settings": {"ctx_hooks": settings}}))
    (folder / "mistake.yaml").write_text("callback_settings: {ctx_hooks: {defaults: {reserve: many}}}")
    (folder / "plain.yaml").write_text("model_list: []\n")
    (folder / "unplugged.yaml").write_text("model_list: []\n")
    (folder / "no.txt").write_text("]: no JSON, no YAML")
    (folder / "binary").write_bytes(bytes(range(256)))
    (folder / "list.json").write_text("[1, 2]")
    (folder / "surrogate.json").write_text('{"messages": [{"role": "user", "content": "\\ud800 and \\u4e2d"}]}')
    (folder / "unnamed.json").write_text('{"messages": []}')
    (folder / "deep").write_text("[\n" * 100_000)
    (folder / "utf16.json").write_bytes('{"messages": []}'.encode("utf-16"))
    answers = [
        message
        for i in range(20)
        for message in (
            {"role": "assistant", "tool_calls": [_call(f"call_{i}")]},
            {"role": "tool", "tool_call_id": f"call_{i}", "content": CONTROLS * 300},
        )
    ]
    hostile = {"messages": [{"role": "user", "content": CONTROLS}, *answers], "model": CONTROLS}
    (folder / "controls.json").write_text(json.dumps(hostile))
    (folder / CONTROLS.replace("/", "")).write_text(json.dumps(hostile))
    models = [{"model_name": CONTROLS, "litellm_params": {"model": CONTROLS}}]
    named = {"teams": {CONTROLS: {"reserve": 9_000}}, "models": {CONTROLS: {"max_turns": 3}}}
    (folder / "controls.yaml").write_text(json.dumps({"model_list": models, "callback_settings": {"ctx_hooks": named}}))
    (folder / "small.yaml").write_text("callback_settings: {ctx_hooks: {defaults: {window_tokens: 6000}}}")
    (folder / "mistaken.yaml").write_text(json.dumps({"callback_settings": {"ctx_hooks": {CONTROLS: 1}}}))
    (folder / "redis.yaml").write_text("router_settings: {redis_url: 'http://cache'}")
    (folder / "unheard.yaml").write_text("router_settings: {redis_host: 127.0.0.1, redis_port: 1}")
    (folder / "date.yaml").write_text("released: 2026-13-45")
    (folder / "digits").write_text(f"[{'1' * 6_000}]")
    return folder


def _call(name):
    return {"id": name, "type": "function", "function": {"name": CONTROLS, "arguments": "{}"}}


def run(inputs, *arguments, program=PROGRAM, **environment):
    own = {name: value for name, value in os.environ.items() if not name.startswith(NOT_PASSED_ON)}
    own |= {"NO_COLOR": "", "PYTHONPATH": str(ROOT), **environment}
    own.pop("COLUMNS", None)
    if not own["NO_COLOR"]:
        del own["NO_COLOR"]
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
    for name in [*os.environ]:
        if name.startswith((*NOT_PASSED_ON, "NO_COLOR", "COLUMNS")):
            monkeypatch.delenv(name)
    return run_here


RIGHT = {
    "init": ["init", "plain.yaml", "--yes"],
    "check": ["check", CONFIG],
    "explain": ["explain", "request.json", "--model", "local", "--config", CONFIG],
    "report": ["report", "events", "-o", "page.html"],
    "archive ls": ["archive", "ls", "--config", "archive.yaml"],
    "archive prune": ["archive", "prune", "--config", "archive.yaml"],
    "schema": ["schema"],
}
"""Those that need neither a proxy nor a Redis; `demo`, `limits` and `archive show` have tests of their own."""


@pytest.fixture(scope="module")
def right(inputs):
    """Code, output, errors and what was loaded of each command, by its name."""
    return dict(zip(RIGHT, loaded_by(inputs, RIGHT.values(), ("litellm",)), strict=True))


def loaded_by(inputs, commands_run, names):
    program = [sys.executable, "-c", WITH_WHAT_WAS_LOADED.format(names=names)]
    done = run(inputs, json.dumps(list(commands_run)), program=program)
    assert (done.returncode, done.stderr) == (0, "")
    return list(map(json.loads, done.stdout.splitlines()))


@pytest.mark.parametrize("name", RIGHT)
def test_command_prints_80_columns_without_loading_litellm(name, right):
    code, printed, *rest = right[name]
    assert (code, *rest) == (0, "", [])
    assert printed.strip()
    assert "\x1b" not in printed
    if name != "schema":
        assert max(len(line.rstrip()) for line in printed.splitlines()) <= COLUMNS


@pytest.mark.parametrize("name", [name for name in RIGHT if name != "schema"])
def test_with_json_a_command_prints_one_document_and_nothing_else(name, here):
    done = here(*RIGHT[name], "--json")
    assert (done.returncode, done.stderr) == (0, "")
    json.loads(done.stdout)


def test_help_fits_80_columns_and_loads_nothing_heavy(inputs):
    asked = [[*command, "--help"] for command in ([], *([name] for name in commands.commands))]
    for arguments, (code, printed, errors, loaded) in zip(asked, loaded_by(inputs, asked, HEAVY), strict=True):
        assert (arguments, code, errors, loaded) == (arguments, 0, "", [])
        assert max(map(len, printed.splitlines())) <= COLUMNS


TOO_LONG = "n" * 300
"""A name that no file can have."""
NO_CONFIGURATION = ("none.yaml", "events", "no.txt", "binary", "list.json", "deep", "digits", TOO_LONG)
NO_REQUEST = (*NO_CONFIGURATION, "utf16.json")


CANNOT_BE_DONE = {
    "": [
        *(["check", name] for name in (*NO_CONFIGURATION, "date.yaml")),
        *([*command, "none.yaml"] for command in (["archive", "ls", "--config"], ["limits", "ls", "--config"])),
        *(["explain", name, "--model", "gpt-4o"] for name in NO_REQUEST),
        ["explain", "request.json", "--model", "m", "--config", "mistake.yaml"],
        ["archive", "ls"], ["archive", "show", "b" * 12, "--config", "archive.yaml"],
        ["erase", CONFIG, "--team", "red"], ["limits", "ls"],
        ["limits", "ls", "--config", "redis.yaml"], ["report", "none"], ["report", TOO_LONG],
        ["report", "events", "-o", "none/page.html"], ["report", "events", "-o", "events"],
    ],
    "Redis cannot be reached": [["limits", "ls", "--config", "unheard.yaml"]],
    "no --yes": [["limits", "clear", "x"], ["init", "unplugged.yaml"]],
    "see ctx-hooks": [
        ["init"], ["check"], ["check", "a", "b"], ["check", "--frob", "a"], ["explain"], ["explain", "unnamed.json"],
        ["report"], ["erase", CONFIG],
        ["archive", "show", "b" * 12, "--team", "a", "--key", "b"], ["limits", "clear"], ["limits", "frob"],
        ["demo", "a"], ["schema", "a"], ["frob"],
    ],
    "Did you mean one of: '--config'": [["explain", "request.json", "--confg", CONFIG]],
    "did you mean 'local'?": [["explain", "request.json", "--model", "locale", "--config", CONFIG]],
}  # fmt: skip
"""By what stands in the line."""
CASES = [(words, arguments) for words, listed in CANNOT_BE_DONE.items() for arguments in listed]


@pytest.mark.parametrize(("words", "arguments"), CASES, ids=lambda value: " ".join(value)[:60] if value else "")
def test_what_cannot_be_done_is_one_line_on_stderr_and_ends_with_2(words, arguments, here):
    done = here(*arguments)
    assert done.returncode == 2
    assert done.stdout == "" or arguments[0] == "init", "which has shown what would change"
    assert re.fullmatch(r"Error: .+\n", done.stderr)
    assert words in done.stderr
    if "see ctx-hooks" not in done.stderr:
        done = here(*arguments, "--json")
        assert (done.returncode, done.stderr) == (0 if arguments[0] == "init" else 2, "")
        assert len(json.loads(done.stdout)) == (3 if arguments[0] == "init" else 1)


@pytest.mark.parametrize("arguments", [[], ["archive"], ["limits"]], ids=" ".join)
def test_without_a_command_the_help_is_shown(arguments, here):
    done = here(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert "Usage: ctx-hooks" in done.stderr


@pytest.mark.parametrize("as_json", [False, True], ids=["text", "json"])
@pytest.mark.parametrize("arguments", [["check", "mistake.yaml"]], ids=" ".join)
def test_what_is_found_wrong_is_the_result_and_ends_with_1(arguments, as_json, here):
    done = here(*arguments, *(["--json"] if as_json else []))
    assert (done.returncode, done.stderr) == (1, "")
    assert "defaults.reserve" in done.stdout
    if as_json:
        json.loads(done.stdout)


def test_a_request_may_come_from_standard_input_and_what_a_terminal_cannot_show_is_escaped(inputs, here):
    piped = f"{sys.executable} -m ctx_hooks explain - --model gpt-4o < surrogate.json"
    done = run(inputs, piped, program=["sh", "-c"], PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, "")
    assert "fits: " in done.stdout
    sent = here("explain", "surrogate.json", "--model", "gpt-4o", "--sent")
    assert json.loads(sent.stdout) == json.loads((inputs / "surrogate.json").read_text())


@pytest.mark.parametrize("arguments", [
    ["check", "controls.yaml"], ["check", "mistaken.yaml"],
    ["explain", "controls.json", "--config", "small.yaml"],
    ["explain", "controls.json", "--config", "small.yaml", "--sent"], ["explain", "--model", CONTROLS],
    ["explain", f"{CONTROLS}/none"], ["explain", "controls.json", CONTROLS],
    ["report", "events", "-o", CONTROLS.replace("/", "") + ".html"],
], ids=lambda arguments: ascii(" ".join(arguments)))  # fmt: skip
def test_no_control_character_of_a_file_or_a_name_reaches_the_terminal(arguments, here):
    done = here(*arguments)
    assert "Traceback" not in done.stderr
    assert not CONTROL.search(done.stdout + done.stderr)


def test_a_text_of_the_terminal_is_printed_with_its_markup(here):
    assert "[/][red]" in here("check", "controls.yaml").stdout


@pytest.mark.parametrize("arguments", [["schema"], ["check", CONFIG], ["check", CONFIG, "--help"]], ids=" ".join)
def test_a_reader_that_has_left_is_no_error(arguments, inputs):
    unread, written = os.pipe()
    os.close(unread)
    with subprocess.Popen([*PROGRAM, *arguments], cwd=inputs, stdout=written, stderr=subprocess.PIPE, text=True) as left:
        os.close(written)
        assert left.communicate(timeout=300)[1] == ""
    assert left.returncode == 141


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a full disk to write to")
@pytest.mark.parametrize(
    "arguments", [["schema"], ["check", CONFIG], ["check", CONFIG, "--help"], ["check", "none", "--json"]], ids=" ".join
)
def test_output_that_cannot_be_written_is_told_in_a_line(arguments, inputs):
    done = run(inputs, f"{shlex.join([*PROGRAM, *arguments])} > /dev/full", program=["sh", "-c"])
    assert (done.returncode, done.stderr) == (2, "Error: No space left on device\n")


@pytest.mark.parametrize("arguments", [["schema"], ["check", "--help"]], ids=" ".join)
def test_a_closed_output_is_no_error(arguments, inputs):
    done = run(inputs, f"{shlex.join([*PROGRAM, *arguments])} >&-", program=["sh", "-c"])
    assert (done.returncode, done.stderr) == (0, "")


def processes(parent):
    """Return the processes of a parent, or of all if it is None."""
    shown = subprocess.run(["ps", "-eo", "pid,ppid"], capture_output=True, text=True, check=True).stdout
    return {pid for pid, above in map(str.split, shown.splitlines()) if parent in (None, above)}


def test_ctrl_c_ends_a_command_and_what_it_has_started(inputs):
    """A shell's job in the background ignores Ctrl-C, and so would whatever such a run of the tests starts."""
    with subprocess.Popen(
        [*PROGRAM, "demo"],
        cwd=inputs,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509 - no thread holds a lock then
    ) as demo:
        assert any(line.startswith("route") for line in demo.stdout)
        while not (started := processes(str(demo.pid))):
            assert demo.poll() is None
        demo.send_signal(signal.SIGINT)
        _, told = demo.communicate(timeout=300)
    assert demo.returncode == 130
    assert "Traceback" not in told
    assert not started & processes(None)


def test_the_options_of_a_command_are_completed(inputs):
    words = {"COMP_WORDS": "ctx-hooks report --ou", "COMP_CWORD": "2"}
    assert run(inputs, _CTX_HOOKS_COMPLETE="bash_complete", **words).stdout == "plain,--output\n"
