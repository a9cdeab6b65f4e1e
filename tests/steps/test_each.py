"""What each step does, on the kind of text it is for."""

from __future__ import annotations

import json

import pytest

from ctx_hooks.budget import Budget
from ctx_hooks.pipeline import compress
from ctx_hooks.policy.settings import Policy
from ctx_hooks.steps import (
    json_layout,
    log_runs,
    long_texts,
    newest_loop,
    older_reasoning,
    oversized_results,
    repeats,
    terminal_noise,
)
from ctx_hooks.tokens.counter import Counter
from ctx_hooks.wire import CODECS


def exchange(n, result, *, name="run", arguments=None):
    call = {"id": f"c{n}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments or {"n": n})}}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"c{n}", "content": result},
    ]


def run(step, messages, *, goal=10, policy=None, window=20_000):
    codec = CODECS["openai-chat"]
    budget = Budget(goal, window, Counter("cl100k_base"), policy or Policy())
    return codec.write(compress(codec.read(messages), budget, (step.STEP,)).conversation)


def older(*exchanges):
    return [{"role": "user", "content": "start"}, *(m for e in exchanges for m in e), {"role": "user", "content": "go on"}]


def test_terminal_noise_drops_colours_and_trailing_blanks():
    noisy = "".join(f"\x1b[1;32mstep {n}\x1b[0m done    \n" for n in range(20))
    sent = run(terminal_noise, older(exchange(1, noisy)))
    assert sent[2]["content"] == "".join(f"step {n} done\n" for n in range(20))


def test_json_layout_drops_blanks_and_no_digit():
    text = json.dumps({"price": 1, "rows": [{"id": i, "name": "x"} for i in range(30)]}, indent=4).replace(": 1,", ": 1.10,")
    sent = run(json_layout, older(exchange(1, text)))[2]["content"]
    assert json.loads(sent) == json.loads(text)
    assert "1.10" in sent
    assert len(sent) < 0.7 * len(text)


def test_repeats_keep_the_later_copy_and_point_to_it():
    text = "the same file\n" * 60
    sent = run(repeats, older(exchange(1, text), exchange(2, text)))
    assert "comes again below" in sent[2]["content"]
    assert sent[4]["content"] == text


def test_a_file_that_was_read_again_counts_as_repeated_though_it_changed():
    arguments = {"file_path": "a.py"}
    first = exchange(1, "version one\n" * 60, name="read_file", arguments=arguments)
    second = exchange(2, "version two\n" * 60, name="read_file", arguments=arguments)
    sent = run(repeats, older(first, second))
    assert "comes again below" in sent[2]["content"]


def test_a_command_that_was_run_again_keeps_both_results():
    first = exchange(1, "one\n" * 200, name="bash", arguments={"command": "make"})
    second = exchange(2, "two\n" * 200, name="bash", arguments={"command": "make"})
    messages = older(first, second)
    assert run(repeats, messages) == messages


def test_log_runs_fold_lines_that_differ_in_figures_only():
    log = "".join(f"12:00:{n:02} worker {n} took {n * 7} ms\n" for n in range(50)) + "worker 7 crashed\n"
    sent = run(log_runs, older(exchange(1, log)))[2]["content"]
    assert sent.splitlines() == [
        "12:00:00 worker 0 took 0 ms",
        "… 48 more alike but for figures",
        "12:00:49 worker 49 took 343 ms",
        "worker 7 crashed",
    ]


def test_older_reasoning_goes_whole_and_the_current_loops_stays():
    thought = {"reasoning_content": "let me think " * 100}
    done = exchange(1, "ok")
    done[0] |= thought
    current = exchange(2, "ok")
    current[0] |= thought
    messages = [{"role": "user", "content": "a"}, *done, {"role": "user", "content": "b"}, *current]
    sent = run(older_reasoning, messages)
    assert "reasoning_content" not in sent[1]
    assert sent[4] == current[0]


def test_reasoning_stays_when_the_policy_says_so():
    done = exchange(1, "ok")
    done[0]["reasoning_content"] = "let me think " * 100
    messages = older(done)
    assert run(older_reasoning, messages, policy=Policy(reasoning="keep")) == messages


@pytest.mark.parametrize(
    ("direction", "begins", "ends"), [("head", True, False), ("tail", False, True), ("head_tail", True, True)]
)
def test_oversized_results_keep_the_ends_that_the_policy_names(direction, begins, ends):
    text = "FIRST\n" + "".join(f"line {n} of the middle\n" for n in range(4_000)) + "LAST"
    policy = Policy(tool_result_max_chars=4_000, tool_result_direction=direction)
    sent = run(oversized_results, older(exchange(1, text)), policy=policy)[2]["content"]
    assert (sent.startswith("FIRST"), sent.endswith("LAST")) == (begins, ends)
    assert len(sent) < 5_000
    assert "offset/limit" in sent


def test_oversized_results_keep_error_lines_out_of_the_middle():
    lines = [f"line {n} of the middle" for n in range(4_000)]
    lines[2_000] = "ERROR: disk quota exceeded on /dev/sda1"
    sent = run(oversized_results, older(exchange(1, "\n".join(lines))), policy=Policy(tool_result_max_chars=4_000))
    assert lines[2_000] in sent[2]["content"]


def test_a_result_that_may_not_be_truncated_stays_whole():
    text = json.dumps({"rows": "x " * 5_000, "context": {"truncation_skip": True}})
    messages = older(exchange(1, text))
    assert run(oversized_results, messages, policy=Policy(tool_result_max_chars=4_000)) == messages


def test_long_texts_keep_head_and_tail_and_old_images_become_a_line():
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 4_000}}
    messages = [
        {"role": "user", "content": [{"type": "text", "text": "look"}, image]},
        {"role": "assistant", "content": "seen"},
        {"role": "user", "content": "BEGIN " + "blah " * 10_000 + "END"},
        {"role": "assistant", "content": "read"},
        {"role": "user", "content": "go on"},
    ]
    sent = run(long_texts, messages)
    assert "image" in sent[0]["content"][1]["text"]
    assert sent[2]["content"].startswith("BEGIN")
    assert sent[2]["content"].endswith("END")
    assert len(sent[2]["content"]) < 30_000


def test_the_newest_loop_is_cut_only_when_the_budget_says_so():
    messages = [{"role": "user", "content": "q"}, *exchange(1, "row of the newest result\n" * 3_000)]
    codec = CODECS["openai-chat"]
    conversation = codec.read(messages)
    counter = Counter("cl100k_base")
    spared = compress(conversation, Budget(2_000, 20_000, counter, cut_newest=False), (newest_loop.STEP,))
    assert spared.conversation is conversation
    cut = compress(conversation, Budget(2_000, 20_000, counter, cut_newest=True), (newest_loop.STEP,))
    assert cut.fits
