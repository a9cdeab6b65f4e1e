"""What an agent did is read from its calls and what they returned, whoever's tools they are."""

import json
import time

import pytest
from strategies import called

from ctx_hooks.compaction.summary.actions import actions_of
from ctx_hooks.compaction.summary.extractive import FILES_TOKENS, Removed, reported, sections
from ctx_hooks.compaction.summary.placing import extractive_records
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
    ("call", {"server": "fs", "tool_name": "write_file", "params": {"path": "/srv/a.md", "content": "x"}}, ["/srv/a.md"]),
    ("use_mcp", {"tool": "shell", "arguments": {"command": "sed -i s/a/b/ c.py"}}, ["c.py"]),
    ("bash", {"command": 'sed -i s/a/b/ c.py && sed -i.bak "/x/d" d.py'}, ["c.py", "d.py"]),
])  # fmt: skip
def test_changed_files_are_known_from_every_way_of_changing_them(name, given, files):
    (action,) = actions_of(calls((name, given, "ok")))
    assert (action.kind, list(action.files)) == ("changed", files)


@pytest.mark.parametrize("command", [
    "f=$(mktemp); echo x > $f", "echo x > $OUT/a.py", "for f in *.py; do rm $f; done", "f=a.py; f=$(pick); rm $f",
    'for f in $(ls); do cat > "out/$f"; done', "docker run --rm image", 'rg "rm" src/a.py && make',
    "rm -f .git/index.lock",
    "f=a.py; rm ${f%.py}.md", "rm src/{a,b}.py ab[12].c", "for f in a.py $X; do rm $f; done", "rm src/$x",
    "L=(a b); rm $L", "docker rm -f web", "aws s3 cp a.txt s3://b/c", "cp a.py $DEST",
    'cp a.py "d d/x"', "cp -t dest a.py b.py", "ssh h rm x.py", "if [[ $a > b.py ]]; then make; fi",
    f'git commit -m "{"x " * 1_100} rm src/a.py"', 'git commit -m "it\\"s a > b.py x"', "# a > b.py, don't\nmake",
    "make <<EOF\nrm a.py\n", "python - <<'END-1'\nrm a.py\nEND-1", "sh -x <<'EOF'\n    EOF\n    rm a.py\nEOF",
    "git apply --check <<'E'\n+++ b/x.go\nE", "<<EOF cat\necho x > a.py\nEOF",
])  # fmt: skip
def test_no_file_is_claimed_that_a_command_does_not_name_itself(command):
    (action,) = actions_of(calls(("bash", {"command": command}, "ok")))
    assert (action.kind, action.files) == ("ran", ())


@pytest.mark.parametrize(("name", "given", "files"), [
    ("Write", {"file_path": "notes.md", "content": "See\n+++ b/x.go\n"}, ("notes.md",)),
    ("Task", {"prompt": "See\n+++ b/x.go"}, ()),
    ("bash", {"command": "cat > p.diff <<'EOF'\n--- a/x.go\n+++ b/x.go\nEOF"}, ("p.diff",)),
    ("bash", {"command": "make > a.txt all"}, ("a.txt",)),
])  # fmt: skip
def test_a_patch_that_nothing_applies_and_a_word_behind_a_file_change_nothing(name, given, files):
    (action,) = actions_of(calls((name, given, "ok")))
    assert action.files == files


@pytest.mark.parametrize(("name", "given"), [
    ("Read", {"file_path": "a.py"}), ("str_replace_editor", {"command": "view", "path": "a.py"}),
    ("bash", {"command": "cd /x && grep -rn 'a > b' src | head"}),
    ("exec_command", {"cmd": "git log --oneline | head -5"}), ("mcp__files__search_files", {"pattern": "*.py"}),
    ("websearch", {"query": "x"}), ("get_reservation_details", {"id": "X1"}), ("mcp__fs__listDir", {"id": "x"}),
])  # fmt: skip
@pytest.mark.parametrize("result", ["def raise_Failed():\n    raise Error", "2 failed\nERROR: none"])
def test_what_reads_changes_nothing_and_does_not_fail_by_what_it_shows(name, given, result):
    (action,) = actions_of(calls((name, given, result)))
    assert (action.kind, action.failed) == ("read", False)


@pytest.mark.parametrize(("result", "failed"), [
    ("Process exited with code 1\nOutput:\nE   assert 1 == 2", True),
    ('{"output": "boom", "metadata": {"exit_code": 2}}', True), ("<exited with exit code 127>", True),
    ("Traceback (most recent call last):\n  File\nValueError: no", True),
    ("cc a.c\nmake: *** [Makefile:3: a.o] Error 1", True),
    ("FAILED tests/test_x.py::test_y - assert 1 == 2\n1 failed, 3 passed", True),
    ("Process exited with code 0\nOutput:\nno error: 0 failed", False), ("62 pass\n0 fail", False), ("ok", False),
])  # fmt: skip
def test_a_command_fails_by_its_status_or_by_what_a_run_prints(result, failed):
    (action,) = actions_of(calls(("bash", {"command": "pytest -q"}, result)))
    assert (action.kind, action.failed) == ("ran", failed)


@pytest.mark.parametrize(("command", "what"), [
    ("cd /x && \\\nbd create 'a b' \\\n  --type epic", "bd create 'a b' --type epic"),
    ("echo '== x && rm' && ls docs 2>/dev/null | tail -3 && git push origin x 2>&1 | tail", "git push origin x 2>&1 | tail"),
    ("for f in a b; do sed -n 1,9p $f; done; make", "make"), ("python - <<'EOF'\nls\nEOF", "python - <<'EOF' ls"),
    ("make " + "a" * 999, "make " + "a" * 154 + "…"), ("cat urls | sh", "cat urls | sh"), ("ls & pay b", "pay b"),
    ("find . | xargs -n 1 drop", "find . | xargs -n 1 drop"),
    ("cat <<EOF | psql\nDROP TABLE t;\nEOF", "cat <<EOF | psql DROP TABLE t;"),
    ("git commit -m \"$(cat <<'EOF'\nfix: a\n\nMore.\nEOF\n)\"", "git commit -m \"$(cat <<'EOF' fix: a"),
    ("cat <<'EOF'\nx\nEOF\npay x", "pay x"), ('cat x > "$F"', 'cat x > "$F"'),
    ("find . -exec drop {} +", "find . -exec drop {} +"), ("env A=1 ./deploy", "env A=1 ./deploy"),
    ("export A=$(pay x) && ls", "export A=$(pay x) && ls"),
    ("cd a && fd -x pay", "fd -x pay"), ("git branch x", "git branch x"),
    ("diff <(pay x) b", "diff <(pay x) b"), ('echo "a\\" b"; pay "x"', 'pay "x"'),
    (f'echo "{"x" * 2_100}"; pay x; ls "y"', 'pay x; ls "y"'),
    ("ls # don't\npay x # won't", "pay x # won't"), ("ls >& x", "ls >& x"),
    ("ls " + "y" * 9_000 + "; pay x", "ls " + "y" * 156 + "…"),
    ('echo "$(pay x)"', 'echo "$(pay x)"'), ("git branch -D x", "git branch -D x"), ("ls | sort -o a", "ls | sort -o a"),
])  # fmt: skip
def test_a_command_is_told_from_where_it_does_more_than_read(command, what):
    (action,) = actions_of(calls(("bash", {"command": command}, "ok")))
    assert (action.kind, action.what) == ("ran", what)


@pytest.mark.parametrize("command", [
    "echo '=== a > b' && ls docs 2>/dev/null || true", "cat <<'EOF' | head 2>&1\nmake\nEOF",
    "for f in a b; do sed -n 1,9p $f; done", "cd /x; git log 2>&1 && git status >/dev/null || sleep 5",
    "ls &>/dev/null; find . -name '*.py' | xargs -n 1 grep -l 'a|b' | sort -u | sed 's/a/b/' | head -5",
    "env | grep PATH", "ls # rm a.py", "grep -rn rm src/a.py",
    "# don't ask\nls src", "echo 'it'\\''s; rm a.py'", "echo rm a.py",
])  # fmt: skip
def test_a_command_of_which_every_part_reads_only_reads(command):
    (action,) = actions_of(calls(("bash", {"command": command}, "ok")))
    assert action.kind == "read"


@pytest.mark.parametrize(("command", "files"), [
    ("cd /x && sed -n '1,80p' src/a.ts | head -5 && printf '\\n' && cat \"b.md\" 2>/dev/null", ["src/a.ts", "b.md"]),
    ("rg -n 'x.y' src", []),
    ("cat $(ls) *.md | wc -l", []),
])  # fmt: skip
def test_files_that_a_command_shows_are_read(command, files):
    (action,) = actions_of(calls(("exec_command", {"cmd": command}, "ok")))
    assert (action.kind == "read" or "$(" in command, [*action.files]) == (True, files)


@pytest.mark.parametrize("name", [
    "delete_list", "stop_server", "get_or_create", "mcp__mail__send_view", "open_pull_request", "show_popup", "send_email",
    "query", "browser_click", "subscribe_to_list", "getOrCreate", "find_and_replace", "email_list",
])  # fmt: skip
def test_a_tool_whose_name_says_that_it_acts_does_more_than_read(name):
    (action,) = actions_of(calls((name, {"id": 7}, "ok")))
    assert action.kind == "ran"


@pytest.mark.parametrize(("result", "outcome"), [
    ("ERROR:\nParameter `old_str` is required.", "ERROR: Parameter `old_str` is required."),
    ("Exit code 1\n[lint] run\na/x.go:16:6: f redeclared\n[lint] ERROR task failed", "exit 1 a/x.go:16:6: f redeclared"),
    ('Traceback (most recent call last):\n  File "x"\nValueError: no', "ValueError: no"), ("Exit code 137", "exit 137"),
    ("Chunk ID: 7\nWall time: 1\nProcess exited with code 0\nOutput:\n[main 1a2] Fix\n 1 file changed\n",
     "[main 1a2] Fix; 1 file changed"), ("a\n" * 300 + "9 passed\n", "9 passed"), ("x" * 999, "…" + "x" * 119), ("}", ""),
    ("[main 1a2b3c4] Fix\n 1 file changed\n create mode 1\n" * 30, "[main 1a2b3c4] Fix"),
    ("y\n" * 999 + " Test Files  3 passed (3)\n      Tests  41 passed | 2 skipped\n Duration  9s\n",
     "Test Files 3 passed (3); Tests 41 passed | 2 skipped"), ("1" * 999 + " passed\nbye", "bye"),
    ("12 passed in 0.3s\n" + "y\n" * 999 + "Segmentation fault", "12 passed in 0.3s; Segmentation fault"),
    ("12 passed in 0.3s\n" + "y\n" * 999 + f"fault {'x' * 200}", f"fault {'x' * 114}"),
    ("\x1b[1mTests: \x1b[22m\x1b[32m478 passed\x1b[39m, 478 total\n\x1b[33m[Nest] WARN\x1b[39m token not verified",
     "Tests: 478 passed, 478 total"),
    ("All parts found.\n<usage>tokens: 59\nduration_ms: 45730</usage>", "All parts found."),
    ("done\nTimeout limit: 30 seconds", "done"), ("<output>\nbuilt\n</output>\n---", "built"), ("<a>\n</a>", ""),
    ("a.py:1: AssertionError\nFAILED\n1 failed, 12 passed", "a.py:1: AssertionError (1 failed, 12 passed)"),
])  # fmt: skip
def test_how_a_command_ended_is_its_reason_or_its_last_words(result, outcome):
    (action,) = actions_of(calls(("bash", {"command": "pytest -q"}, result)))
    assert action.outcome == outcome


@pytest.mark.parametrize(("name", "given", "kind", "what"), [
    ("call", {"tool_name": "find_place", "params": {"near": "Rome"}}, "read", 'call(find_place {"near":"Rome"})'),
    ("call", {"tool": "book", "args": {"room": 7}, "server": "x"}, "ran", 'call(book {"room":7,"server":"x"})'),
    ("create_view", {"name": "list", "options": {"a": 1}}, "ran", 'create_view(list {"a":1})'),
    ("call", {"tool": "sh", "arguments": {"command": "make x"}}, "ran", "make x"),
    ("call", {"tool": "a", "one": {}, "two": {}}, "ran", 'call({"tool":"a","one":{},"two":{}})'),
])  # fmt: skip
def test_call_inside_a_gateways_call_is_the_action(name, given, kind, what):
    (action,) = actions_of(calls((name, given, "ok")))
    assert (action.kind, action.what) == (kind, what)


def test_change_through_a_gateway_that_failed_says_why():
    given = {"tool_name": "edit_file", "params": {"path": "a.md"}}
    result = in_envelopes("Input validation error: 'hash' is missing", 2, is_printed=True, is_error=True)
    (action,) = actions_of(calls(("call", given, result)))
    assert (action.kind, action.failed, action.outcome) == ("changed", True, "Input validation error: 'hash' is missing")
    code = "if (result.isError === true) {}\n" * 9 + '{"isError": true}\n' + "x = 1\n" * 90
    (action,) = actions_of(calls(("edit_file", {"path": "a.md"}, code)))
    assert not action.failed, "the flag is quoted code"


@pytest.mark.parametrize("line", ["  20: },", '{"type": "text"},', "src/a/b.py", "const x = f("])
def test_last_line_of_source_or_paths_is_no_ending(line):
    (action,) = actions_of(calls(("bash", {"command": "make"}, "some words in lines\n" * 99 + line)))
    assert action.outcome == ""


def in_envelopes(text, levels, *, is_printed, is_error=False):
    """Return a result as servers wrap it: a field of JSON, in a string of JSON, in an object that a program prints."""
    for _ in range(levels):
        text = json.dumps(
            {"content": [{"type": "text", "text": text, "annotations": None}], "isError": is_error}, ensure_ascii=False
        )
    return (
        f"meta=None content=[TextContent(type='text', text={text!r}, annotations=None)] isError=False"
        if is_printed
        else text
    )


@pytest.mark.parametrize("is_printed", [False, True])
@pytest.mark.parametrize("levels", [1, 2, 3])
@pytest.mark.parametrize("words", [
    "Successfully wrote 38 lines to /srv/report.md", "Input validation error: 'hash' is a required property",
    "The process 7 doesn't accept input", "已成功创建报告文件",
])  # fmt: skip
def test_ending_in_an_envelope_is_its_words(words, levels, is_printed):
    result = in_envelopes("Row 1 of many rows. " * 30 + f"\n{words}", levels, is_printed=is_printed)
    (action,) = actions_of(calls(("run_it", {"command": "x"}, result)))
    assert action.outcome == words


@pytest.mark.parametrize("levels", [1, 2, 3])
def test_error_in_an_envelope_is_a_failure(levels):
    for is_error in (True, False):
        result = in_envelopes("No such note: the list has none of that name", levels, is_printed=True, is_error=is_error)
        (action,) = actions_of(calls(("run_it", {"command": "x"}, result)))
        assert (action.failed, action.outcome) == (is_error, "No such note: the list has none of that name")


@pytest.mark.parametrize("levels", [1, 2, 3])
@pytest.mark.parametrize("is_printed", [False, True])
def test_failure_in_an_envelope_is_its_first_error_and_a_list_of_fields_is_no_ending(levels, is_printed):
    failed = "Error calling the tool: no such column: note\n[SQL: SELECT note FROM notes]\n(See more on this page)"
    fields = "tool: find\n  about: Search across all of the content\n  encoding: the encoding of a text\n" * 20
    for text, outcome in ((failed, "Error calling the tool: no such column: note"), (fields, "")):
        result = in_envelopes(text, levels, is_printed=is_printed, is_error=text is failed)
        (action,) = actions_of(calls(("run_it", {"command": "x"}, result)))
        assert (action.failed, action.outcome) == (text is failed, outcome)


@pytest.mark.parametrize(("output", "why"), [
    ("E       assert 5 == 6\nFAILED tests/test_sum.py::test_adds - assert 5 == 6\nFAILED tests/test_sum.py::test_more",
     "E       assert 5 == 6; FAILED tests/test_sum.py::test_adds - assert 5 == 6"),
    (" FAIL  src/sum.test.ts > adds\nAssertionError: expected 5 to be 6", "AssertionError: expected 5 to be 6"),
    ("--- FAIL: TestSum (0.02s)\n    sum_test.go:31: Sum() = 5, want 6\nFAIL", "sum_test.go:31: Sum() = 5, want 6"),
    ("[lint] ERROR task failed\n[lint] cmd/main.go:8:2: x is unused", "[lint] cmd/main.go:8:2: x is unused"),
    ("make[1]: *** No rule to make target 'all'.  Stop.\nmake: *** [Makefile:9: build] Error 2",
     "make[1]: *** No rule to make target 'all'.  Stop."),
])  # fmt: skip
def test_failure_says_where_it_is_or_its_first_reasons(output, why):
    (action,) = actions_of(calls(("bash", {"command": "make test"}, f"Process exited with code 1\nOutput:\n{output}")))
    assert action.outcome.removeprefix("exit 1 ").strip().startswith(why)


@pytest.mark.parametrize(
    "text", ["--- FAIL: x\n" * 90_000, "FAILED " + "x" * 1_000_000, "E " * 500_000, "✗ a.b:1: " * 100_000]
)
def test_reasons_are_found_in_linear_time(text):
    started = time.process_time()
    actions_of(calls(("bash", {"command": "make test"}, f"Process exited with code 1\nOutput:\n{text}")))
    assert time.process_time() - started < 2


DOUBLED, LISTED = "a=xx;" + "a=$a$a;" * 999 + "rm $a", "a=xx;" + 'a="$a $a";' * 700 + "rm $a$a"


@pytest.mark.parametrize("unit", ["perl -{}", "sed -{}", "perl -i{}", "touch {}", "xargs {}", "<<A{}", "a=$b{}", "$"])
def test_what_a_command_does_is_found_in_linear_time(unit):
    """A pattern holds the interpreter lock: a quadratic one takes seconds for this."""
    started = time.process_time()
    for filling in ("i" * 8_000, "-i " * 2_600, " " * 8_000, "\n<<B" * 9_000, "$a" * 4_000, "''" * 4_000, DOUBLED, LISTED):
        actions_of(calls(("bash", {"command": "cat | " + unit.format(filling)}, "ok")))
    assert time.process_time() - started < 1


def test_a_plan_is_its_points_with_their_states():
    todos = [{"content": "Add the field", "status": "completed"}, {"content": "Run the tests", "status": "pending"}]
    steps = [{"step": "Add the field", "status": "completed"}, {"step": "Run the tests", "status": "pending"}]
    for name, given in (("TodoWrite", {"todos": todos}), ("update_plan", {"plan": steps, "explanation": "x"})):
        (action,) = actions_of(calls((name, given, "ok")))
        assert (action.kind, action.what) == ("planned", f"{name}(Add the field (completed); Run the tests (pending))")
    (action,) = actions_of(calls(("ExitPlanMode", {"plan": "# Plan\n1. Add it"}, "ok")))
    assert (action.kind, action.what) == ("planned", "ExitPlanMode(# Plan 1. Add it)")


def test_an_edit_that_was_refused_says_why():
    result = {"type": "tool_result", "tool_use_id": "t", "is_error": True, "content": "File has not been read yet."}
    call = {"type": "tool_use", "id": "t", "name": "Edit", "input": {"file_path": "a.py"}}
    messages = [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
    (action,) = actions_of(WIRE_FORMATS["anthropic"].read(messages).messages)
    assert (action.failed, action.outcome) == (True, "File has not been read yet.")


def record(run, stays=(), room_tokens=4_000):
    """Return the lines of the record of a run, behind which the calls of `stays` stay."""
    removed = Removed((*run, *stays), [range(len(run))], {}, actions_of((*run, *stays)))
    (lines,) = sections(removed, Budget(room_tokens, 2 * room_tokens, Counter("o200k_base")))
    return lines


def test_record_lists_only_last_runs_changes_and_plans():
    broken, fine = "Process exited with code 1\nerror: x", "Process exited with code 0\nOutput:\nbuilt"
    plans = [[{"step": step, "status": "pending"}] for step in ("old", "new")]
    run = calls(
        *[("bash", {"command": f"make {target} 2>&1 | tail -5"}, broken) for target in "ab"],
        ("Edit", {"file_path": "a.c"}, "Error: no such text"),
        ("update_plan", {"plan": plans[0]}, "ok"),
        ("bash", {"command": "cd /repo && TZ=UTC make a"}, fine),
        ("Edit", {"file_path": "a.c"}, "updated"),
        ("update_plan", {"plan": plans[1]}, "ok"),
    )
    title, failed = (
        "Commands and calls, each at its last run, and how it ended:",
        '- make b 2>&1 | tail -5: "exit 1 error: x"',
    )
    first = record(run[:9], run[9:])
    assert first[:2] + first[-2:] == [
        "Files changed:",
        '- a.c (the last change failed: "Error: no such text")',
        title,
        failed,
    ]
    assert "- update_plan(old (pending))" in record(run[:9])
    whole = record(run)
    assert whole[:2] == ["Files changed:", "- a.c (x2)"]
    assert whole[2:5] == [title, failed, '- TZ=UTC make a: "built"']
    assert "- update_plan(new (pending))" in whole


def test_run_is_left_out_if_a_later_one_repeats_it():
    run = calls(
        ("bash", {"command": "make lint 2>&1 | tail -5"}, "error: x"),
        ("bash", {"command": "make slow"}, "error: y"),
        ("bash", {"command": "make format && make lint && make test"}, "all good"),
    )
    assert record(run)[1:] == ['- make slow: "error: y"', '- make format && make lint && make test: "all good"']


def test_record_says_what_was_read_and_looked_for():
    run = calls(
        ("bash", {"command": "git diff --cached"}, "+x"),
        ("Read", {"file_path": "src/a.py"}, "x"),
        ("glob", {"pattern": "**/*.md", "path": "/srv/project"}, "README.md"),
        ("Read", {"file_path": "src/b.py"}, "x"),
        ("Edit", {"file_path": "src/b.py"}, "ok"),
    )
    assert record(run)[2:] == ["Read:", "- git diff --cached", "- src/a.py", "- glob(/srv/project **/*.md)"]


def test_calls_of_a_tool_without_an_ending_are_one_entry():
    lists = "[\n" + '{"tool": "find"},\n' * 60 + "]"
    run = calls(*(("route", {"query": f"part {n}"}, lists) for n in range(4)), ("pay", {"sum": 3}, "paid 3 to Ann"))
    assert record(run)[1:] == ["- route(part 3) (x4)", '- pay({"sum":3}): "paid 3 to Ann"']


def test_record_lists_each_commit_by_a_here_document():
    commits = [f"git commit -m \"$(cat <<'EOF'\nfix: part {n}\nEOF\n)\"" for n in range(2)]
    lines = record(calls(*(("bash", {"command": command}, "ok") for command in commits)))
    assert lines[1:] == [f'- git commit -m "$(cat <<\'EOF\' fix: part {n}: "ok"' for n in range(2)]


def test_the_short_form_names_twenty_changed_files_of_a_deep_tree():
    run = calls(*[("Edit", {"file_path": f"{'/deep' * 25}/{n}.ts"}, "ok") for n in range(20)])
    removed = Removed(run, [range(len(run))], {}, actions_of(run))
    budget = Budget(12_000, 24_000, Counter("o200k_base"))
    (told,) = extractive_records(removed, budget, most_tokens=0, files_tokens=FILES_TOKENS).values()
    assert "Quoted" not in told, "nothing is quoted"
    assert all(f"/{n}.ts" in told for n in range(20))


def test_each_entry_stands_in_the_record_of_the_gap_that_it_is_from_and_the_newest_win_the_space():
    run = calls(*(("bash", {"command": f"make part_{n}"}, "ok") for n in range(90)))
    gaps = [range(1, 61), range(61, 121), range(141, 181)]
    removed = Removed(run, gaps, {}, actions_of(run))
    older, newer, newest = sections(removed, Budget(3_000, 6_000, Counter("o200k_base")))
    assert newest == [
        "Commands and calls, each at its last run, and how it ended:",
        *(f'- make part_{n}: "ok"' for n in range(70, 90)),
    ]
    assert newer[1:] == [f'- make part_{n}: "ok"' for n in range(60 - len(newer[1:]), 60)]
    assert 0 < len(newer[1:]) < 30
    assert older == []


@pytest.mark.parametrize(("said", "reports"), [
    ("All 27 courses have been created. Now the rooms:", "All 27 courses have been created."),
    ("All tests pass. Here's a summary:\n- 229 pass", "All tests pass. - 229 pass"),
    ("Great! Now I need to make a page. I see it now. The build of a.py failed. ## Next\nDone", "The build of a.py failed."),
    ("- fast\n- `slow`\nAll of it. Here's the summary:", "- fast; - `slow` All of it."),
    ("You're right! I found 3 errors in it. Perfect! Let me see.", "I found 3 errors in it."),
    ("现在让我看看。共有 3 个错误。然后:", "共有 3 个错误。"),
    ("Alle 12 Tests laufen. Jetzt baue ich das Paket.", "Alle 12 Tests laufen."),
    ("全部 12 个测试通过。现在构建:", "全部 12 个测试通过。"),
    ("Let me look.", ""),
])  # fmt: skip
def test_record_keeps_outcomes_without_announcements(said, reports):
    calling = "summary:" not in said
    assert reported(said, calls=calling) == reports


def test_what_tools_leave_of_the_room_goes_to_what_was_said_and_nothing_is_told_twice():
    texts = [f"Found the cause of leak {n}." for n in range(40)]
    again = "Say that again, all of it?"
    texts += [again, "Reading on:", again, "Perfect!", "**Next:**", "x" * 9_999, "Done."]
    talk = [{"role": "user", "content": "go"}, *({"role": "assistant", "content": text} for text in texts)]
    told = record(WIRE_FORMATS["openai-chat"].read([*talk, *called("ok", "c", "Wait", {"s": 1})]).messages)[:-2]
    told = [line.removeprefix("- assistant message: ") for line in told]
    assert told[-3:] == [again, f"{'x' * 200} … {'x' * 300}", "Done."]
    assert told[:-3] == texts[43 - len(told) : 40]
    assert 15 < len(record(WIRE_FORMATS["openai-chat"].read(talk).messages)) < len(told)
