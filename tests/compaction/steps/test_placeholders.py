"""A placeholder's statement is true of the result it stands for, whatever became of the others."""

import json
import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from strategies import called

import ctx_hooks
from ctx_hooks.compaction.selection.apply import LEAST_LINES_CHARS
from ctx_hooks.compaction.summary.outcomes import ENDING_CHARS

TEXTS = (
    "the same file, line after line\n" * 40, "another version of the file\n" * 50,
    "".join(f"12:00:{n:02} worker {n} took {n * 7} ms\n" for n in range(60)),
    json.dumps({"rows": [{"id": n, "name": "x"} for n in range(80)]}, indent=4), "\x1b[32mall is well\x1b[0m   \n" * 100,
    "all is well\n" * 100, "ERROR: no such file\n" * 40, "FAILED: disk full\n" * 60, "x" * 9_000, "begins " + "y" * 1_500,
    "words without a name\n" * 40 + "\nsee\nthe file\nsrc/unit_7.py\n\n" + "words without a name\n" * 40,
)  # fmt: skip
NAMES = ("read_file", "Read", "get_job_status", "bash")
calls = st.tuples(st.sampled_from(NAMES), st.sampled_from(["a.py", "b.py"]), st.sampled_from(TEXTS))


def session(made):
    read = [m for n, (name, path, text) in enumerate(made) for m in called(text, f"c{n}", name, {"path": path})]
    return [{"role": "user", "content": "start"}, *read, {"role": "user", "content": "Go on."}]


def figure(text, pattern):
    return int(re.search(pattern, text)[1].replace(",", ""))


def assert_true(line, sent, made, n):
    """Check what the placeholder `line` says of the call `n`, whose result is now `sent`, against what was returned."""
    name, path, text = made[n]
    later = made[n + 1 :]
    if "returned this output again" in line:
        assert any(b == text and f"A later {a} call" in line for a, _, b in later)
    elif "characters removed" in line:
        assert figure(line, r": ([\d,]+) characters removed") == len(text)
        assert f"{name}({path})" in line
        assert ("repeat the call" in line) == (name in ("read_file", "Read"))
        last = text.strip().splitlines()[-1].strip()
        ended = last if len(last) <= ENDING_CHARS else f"…{last[1 - ENDING_CHARS :].lstrip()}"
        assert name != "bash" or f"it ended {json.dumps(ended, ensure_ascii=False)}" in line
    elif "Parts of this output" in line:
        assert LEAST_LINES_CHARS <= len(sent) - len(line) < len(text)
    else:
        assert figure(line, r"of its ([\d,]+) or more") <= len(text)
        assert len(sent) - len(line) <= figure(line, r"at most ([\d,]+) are kept") + 10


@pytest.mark.parametrize("target_tokens", [None, "auto"])
@settings(max_examples=25)
@example(made=[("bash", "a.py", TEXTS[4]), ("bash", "b.py", TEXTS[5]), ("bash", "a.py", TEXTS[7])], budget=600)
@example(made=[("bash", "a.py", TEXTS[9]), ("bash", "b.py", TEXTS[5]), ("bash", "a.py", TEXTS[7])], budget=600)
@example(made=[("bash", "a.py", TEXTS[10]), ("bash", "b.py", TEXTS[5]), ("bash", "c.py", TEXTS[7])], budget=900)
@given(made=st.lists(calls, min_size=3, max_size=10), budget=st.integers(200, 4_000))
def test_a_placeholders_statement_is_true_of_the_original(target_tokens, made, budget):
    policy = ctx_hooks.Policy(tool_results={"max_chars": 2_000})
    result = ctx_hooks.compress(
        session(made), format="openai-chat", budget_tokens=budget, target_tokens=target_tokens, policy=policy
    )
    for message in result.messages:
        if message["role"] == "tool":
            lines = [line for line in message["content"].splitlines() if line.startswith("[ctx_hooks]")]
            assert len(lines) <= 1
            for line in lines:
                assert_true(line, message["content"], made, int(message["tool_call_id"][1:]))
