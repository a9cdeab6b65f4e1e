"""What an agent did is read from its calls and what they returned, whoever's tools they are."""

import time

import pytest
from strategies import called

from ctx_hooks.compaction.summary.actions import actions_of, still_failing
from ctx_hooks.compaction.summary.extractive import Removed, sections
from ctx_hooks.formats import WIRE_FORMATS
from ctx_hooks.tokens.budget import Budget
from ctx_hooks.tokens.counter import Counter

PATCH = "*** Begin Patch\n*** Update File: src/a.py\n@@\n-x\n+y\n*** Add File: src/b.py\n+z\n*** End Patch"


def calls(*steps):
    """Return a chat of calls, each a tuple of name, arguments and result."""
    made = [m for n, (name, given, result) in enumerate(steps) for m in called(result, f"c{n}", name, given)]
    return WIRE_FORMATS["openai-chat"].read([{"role": "user", "content": "go"}, *made]).messages


@pytest.mark.parametrize(("name", "given", "files"), [
    ("Edit", {"file_path": "src/a.py", "old_string": "x", "new_string": "y"}, ["src/a.py"]),
    ("write_file", {"path": "notes.md", "content": "# x"}, ["notes.md"]),
    ("NotebookEdit", {"notebook_path": "n.ipynb", "new_source": "1"}, ["n.ipynb"]),
    ("mcp__filesystem__write_file", {"path": "/srv/x.txt", "content": ""}, ["/srv/x.txt"]),
    ("apply_patch", PATCH, ["src/a.py", "src/b.py"]), ("apply_patch", {"patchText": PATCH}, ["src/a.py", "src/b.py"]),
    ("shell", {"command": ["bash", "-lc", f"apply_patch <<'EOF'\n{PATCH}\nEOF"]}, ["src/a.py", "src/b.py"]),
    ("exec_command", {"cmd": "cd /repo && cat > conf/app.toml <<'EOF'\na = 1 > 0\nEOF"}, ["conf/app.toml"]),
    ("bash", {"command": "sed -i 's/a > b/c/' src/a.py src/b.py && make"}, ["src/a.py", "src/b.py"]),
    ("bash", {"command": "git mv old.py new.py"}, ["old.py", "new.py"]),
    ("bash", {"command": "echo hi >> log.txt 2>/dev/null"}, ["log.txt"]),
    ("bash", {"command": "printf x | tee -a out/x.log"}, ["out/x.log"]),
    ("str_replace_editor", {"command": "str_replace", "path": "a.c", "old_str": "x"}, ["a.c"]),
    ("git_apply", {"diff": "--- a/x.go\n+++ b/x.go\n@@\n"}, ["x.go"]),
])  # fmt: skip
def test_changed_files_are_known_from_every_way_of_changing_them(name, given, files):
    (action,) = actions_of(calls((name, given, "ok")))
    assert (action.kind, list(action.files)) == ("changed", files)


@pytest.mark.parametrize(("name", "given"), [
    ("Read", {"file_path": "a.py"}), ("str_replace_editor", {"command": "view", "path": "a.py"}),
    ("bash", {"command": "cd /x && grep -rn 'a > b' src | head"}),
    ("exec_command", {"cmd": "git log --oneline | head -5"}), ("mcp__files__search_files", {"pattern": "*.py"}),
    ("websearch", {"query": "x"}), ("get_reservation_details", {"id": "X1"}),
])  # fmt: skip
@pytest.mark.parametrize("result", ["def raise_Failed():\n    raise Error", "2 failed\nERROR: none"])
def test_what_reads_changes_nothing_and_does_not_fail_by_what_it_shows(name, given, result):
    (action,) = actions_of(calls((name, given, result)))
    assert (action.kind, action.failed) == ("read", False)


@pytest.mark.parametrize(("result", "failed"), [
    ("Process exited with code 1\nOutput:\nE   assert 1 == 2", True),
    ('{"output": "boom", "metadata": {"exit_code": 2}}', True), ("<exited with exit code 127>", True),
    ("Traceback (most recent call last):\n  File\nValueError: no", True),
    ("FAILED tests/test_x.py::test_y - assert 1 == 2\n1 failed, 3 passed", True),
    ("Process exited with code 0\nOutput:\nno error: 0 failed", False), ("62 pass\n0 fail", False), ("ok", False),
])  # fmt: skip
def test_a_command_fails_by_its_status_or_by_what_a_run_prints(result, failed):
    (action,) = actions_of(calls(("bash", {"command": "pytest -q"}, result)))
    assert (action.kind, action.failed) == ("ran", failed)


def test_a_failure_that_a_later_run_has_cured_is_gone():
    broken, fine = "Process exited with code 1\nerror: x", "Process exited with code 0"
    run = calls(
        ("bash", {"command": "make a"}, broken),
        ("bash", {"command": "make b"}, broken),
        ("Edit", {"file_path": "a.c"}, "Error: old_string not found"),
        ("Edit", {"file_path": "a.c"}, "updated"),
        ("bash", {"command": "cd /repo && make a"}, fine),
    )
    assert [action.what for action in still_failing(actions_of(run))] == ["make b"]


@pytest.mark.parametrize(("command", "what"), [
    ("cd /x && \\\nbd create 'a b' \\\n  --type epic", "bd create 'a b' --type epic"),
    ("echo '== x && rm' && ls docs 2>/dev/null | tail -3 && git push origin x 2>&1 | tail", "git push origin x 2>&1 | tail"),
    ("for f in a b; do sed -n 1,9p $f; done; make", "make"), ("python - <<'EOF'\nls\nEOF", "python - <<'EOF'"),
    ("make " + "a" * 999, "make " + "a" * 154 + "…"), ("cat urls | sh", "cat urls | sh"), ("ls & pay b", "pay b"),
    ("find . | xargs -n 1 drop", "find . | xargs -n 1 drop"), ("cat <<EOF | psql\nDROP TABLE t;\nEOF", "cat <<EOF | psql"),
    ("find . -exec drop {} +", "find . -exec drop {} +"), ("env A=1 ./deploy", "env A=1 ./deploy"),
    ('echo "$(pay x)"', 'echo "$(pay x)"'), ("git branch -D x", "git branch -D x"), ("ls | sort -o a", "ls | sort -o a"),
])  # fmt: skip
def test_a_command_is_told_from_where_it_does_more_than_read(command, what):
    (action,) = actions_of(calls(("bash", {"command": command}, "ok")))
    assert (action.kind, action.what) == ("ran", what)


@pytest.mark.parametrize("command", [
    "echo '=== a > b' && ls docs 2>/dev/null || true", "cat <<'EOF' | head 2>&1\nmake\nEOF",
    "for f in a b; do sed -n 1,9p $f; done", "cd /x; git log 2>&1 && git status >/dev/null || sleep 5",
    "ls &>/dev/null; find . -name '*.py' | xargs -n 1 grep -l 'a|b' | sort -u | sed 's/a/b/' | head -5",
    "find . -exec grep -l x {} +", "env | grep PATH", "git branch -a | cat",
])  # fmt: skip
def test_a_command_of_which_every_part_reads_only_reads(command):
    (action,) = actions_of(calls(("bash", {"command": command}, "ok")))
    assert action.kind == "read"


@pytest.mark.parametrize("name", ["delete_list", "stop_server", "get_or_create", "mcp__mail__send_view"])
def test_a_tool_whose_name_says_that_it_acts_does_more_than_read(name):
    (action,) = actions_of(calls((name, {"id": 7}, "ok")))
    assert action.kind == "ran"


@pytest.mark.parametrize("unit", ["perl -{}", "sed -{}", "perl -i{}", "touch {}", "xargs {}"])
def test_what_a_command_does_is_found_in_linear_time(unit):
    """A pattern holds the interpreter lock: a quadratic one takes seconds for this."""
    started = time.process_time()
    for filling in ("i" * 8_000, "-i " * 2_600, " " * 8_000):
        actions_of(calls(("bash", {"command": "cat | " + unit.format(filling)}, "ok")))
    assert time.process_time() - started < 1


@pytest.mark.parametrize(("cure", "is_cured"), [
    ("pytest -q a.py b.py", True), ("pytest -q c.py a.py b.py", True), ("pytest -q", True), ("pytest -q b.py a.py", True),
    ("pytest -q a.py", False), ("pytest -x a.py b.py", False), ("ruff a.py b.py", False),
])  # fmt: skip
def test_a_run_of_the_same_command_for_at_least_the_same_files_cures(cure, is_cured):
    run = [("bash", {"command": "pytest -q a.py b.py"}, "1 failed"), ("bash", {"command": cure}, "9 passed")]
    assert bool(list(still_failing(actions_of(calls(*run))))) != is_cured


def test_waiting_again_is_told_once():
    waits = [("write_stdin", {"session_id": n, "chars": ""}, "") for n in (6593, 55202, 7)]
    run = calls(("bash", {"command": "make"}, "ok"), *waits)
    lines = sections(Removed(run, {}, actions_of(run)), Budget(4_000, 8_000, Counter("o200k_base")))
    assert lines == ["Commands and calls:", "- make", '- write_stdin({"session_id":7,"chars":""})']


def test_a_plan_is_its_points_with_their_states():
    todos = [{"content": "Add the field", "status": "completed"}, {"content": "Run the tests", "status": "pending"}]
    steps = [{"step": "Add the field", "status": "completed"}, {"step": "Run the tests", "status": "pending"}]
    for name, given in (("TodoWrite", {"todos": todos}), ("update_plan", {"plan": steps, "explanation": "x"})):
        (action,) = actions_of(calls((name, given, "ok")))
        assert (action.kind, action.what) == ("planned", f"{name}(Add the field (completed); Run the tests (pending))")


def test_an_edit_that_was_refused_says_why():
    result = {"type": "tool_result", "tool_use_id": "t", "is_error": True, "content": "File has not been read yet."}
    call = {"type": "tool_use", "id": "t", "name": "Edit", "input": {"file_path": "a.py"}}
    messages = [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
    (action,) = actions_of(WIRE_FORMATS["anthropic"].read(messages).messages)
    assert (action.failed, action.outcome) == (True, "File has not been read yet.")


def test_a_failure_that_is_cured_in_what_stays_is_not_told():
    broken, fine = "Process exited with code 1\nerror: x", "Process exited with code 0"
    run = calls(
        *[("bash", {"command": f"make {target} 2>&1 | tail -5"}, broken) for target in "ab"],
        ("bash", {"command": "make a"}, fine),
    )
    budget = Budget(4_000, 8_000, Counter("o200k_base"))
    lines = sections(Removed(run[:5], {}, actions_of(run[:5]), actions_of(run[5:])), budget)
    assert [line for line in lines if "exit 1" in line] == ['- make b 2>&1 | tail -5: "exit 1 error: x"']
