"""What each step does, on the kind of text it is for."""

import json

import pytest
from strategies import called

import ctx_hooks
from ctx_hooks.compaction.pipeline import compress
from ctx_hooks.compaction.steps import parts, results
from ctx_hooks.formats import WIRE_FORMATS
from ctx_hooks.policy.settings import Policy
from ctx_hooks.tokens.budget import Budget
from ctx_hooks.tokens.counter import Counter


def exchange(n, result, *, name="run", arguments=None):
    return called(result, f"c{n}", name, arguments or {"n": n})


def run(step, messages, *, goal=10, policy=None, window=20_000):
    codec = WIRE_FORMATS["openai-chat"]
    budget = Budget(goal, window, Counter("cl100k_base"), policy or Policy())
    return codec.write(compress(codec.read(messages), budget, (step,)).conversation)


def older(*exchanges):
    return [{"role": "user", "content": "start"}, *(m for e in exchanges for m in e), {"role": "user", "content": "go on"}]


def test_repeats_leave_pinned_copies_whole():
    messages = older(exchange(1, "the same file\n" * 60), exchange(2, "the same file\n" * 60))
    messages[2]["context"] = {"pin": True}
    assert run(parts.REPEATS, messages) == messages


def test_repeated_failures_stay_with_their_calls():
    text = "Input validation error: the hash is missing\n" + "more about it\n" * 60 + '{"isError": true}'
    messages = older(exchange(1, text, name="run"), exchange(2, text))
    assert run(parts.REPEATS, messages) == messages


RULES = "Never touch main. " * 30


@pytest.mark.parametrize("role", ["system", "developer"])
def test_system_text_that_comes_again_is_sent_once_and_keeps_its_cache_marker(role):
    marked = [{"type": "text", "text": RULES, "cache_control": {"type": "ephemeral"}}]
    again = [
        {"role": role, "content": RULES},
        {"role": role, "content": marked},
        {"role": role, "content": f"{RULES}Or do."},
    ]
    sent = run(parts.REPEATS, [{"role": role, "content": RULES}, *older(again)])
    assert [sent[0]["content"], sent[4]["content"]] == [RULES, f"{RULES}Or do."]
    assert "is the same as one above" in sent[2]["content"]
    assert "is the same as one above" in sent[3]["content"][0]["text"]
    assert sent[3]["content"][0]["cache_control"] == {"type": "ephemeral"}


def test_a_copy_that_ends_what_came_between_says_which_text_holds_again():
    plan, work = (
        f"<mode>{name}</mode> In this mode {text}" for name, text in (("Plan", "only read. " * 40), ("Work", RULES))
    )
    system = [{"role": "system", "content": text} for text in (work, plan, work)]
    sent = run(parts.REPEATS, [*system, {"role": "user", "content": "go on"}])
    assert [m["content"] for m in sent[:2]] == [work, plan]
    assert sent[2]["content"].startswith('[ctx_hooks] The system text here begins "<mode>Work</mode> In')


def test_older_reasoning_goes_whole_and_the_current_loops_stays():
    thought = {"reasoning_content": "let me think " * 100}
    done = exchange(1, "ok")
    done[0] |= thought
    current = exchange(2, "ok")
    current[0] |= thought
    messages = [{"role": "user", "content": "a"}, *done, {"role": "user", "content": "b"}, *current]
    sent = run(parts.REASONING, messages)
    assert "reasoning_content" not in sent[1]
    assert sent[4] == current[0]


@pytest.mark.parametrize(
    ("direction", "begins", "ends"), [("head", True, False), ("tail", False, True), ("head_tail", True, True)]
)
def test_oversized_results_keep_the_ends_that_the_policy_names(direction, begins, ends):
    text = "FIRST\n" + "".join(f"line {n} of the middle\n" for n in range(4_000)) + "LAST"
    policy = Policy(tool_results={"max_chars": 4_000, "direction": direction})
    read = exchange(1, text, name="read_file", arguments={"path": "a.log"})
    sent = run(results.OVERSIZED, older(read), policy=policy)[2]["content"]
    assert (sent.startswith("FIRST"), sent.endswith("LAST")) == (begins, ends)
    assert len(sent) < 5_000
    assert "offset/limit" in sent


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("direction", ["head", "tail", "head_tail"])
@pytest.mark.parametrize("text", [
    "x\n" * 3_000 + "a much longer line of text\n" * 3_000,
    "a much longer line of text\n" * 3_000 + "x\n" * 3_000,
    "error: x\n" * 3_000 + "汉字一行文本。\n" * 3_000,
    "汉" * 90_000,
])  # fmt: skip
def test_policy_limits_are_exact(text, direction, language):
    limits = {"max_lines": 2_000, "max_bytes": 51_200, "direction": direction}
    policy = Policy(language=language, tool_results=limits)
    for messages in older(exchange(1, text)), [{"role": "user", "content": "Look."}, *exchange(1, text)]:
        sent = run(results.OVERSIZED, messages, policy=policy)
        cut = next(m["content"] for m in sent if m["role"] == "tool" and "[ctx_hooks]" in m["content"])
        assert cut.count("\n") < 2_000
        assert len(cut.encode()) <= 51_200
        assert len(cut.encode()) > 25_600 or cut.count("\n") > 1_000
        assert ("limit for tool outputs" if language == "en" else "工具输出的限制") in cut


def test_oversized_results_keep_error_lines_out_of_the_middle():
    lines = [f"line {n} of the middle" for n in range(4_000)]
    lines[2_000] = "ERROR: disk quota exceeded on /dev/sda1"
    sent = run(results.OVERSIZED, older(exchange(1, "\n".join(lines))), policy=Policy(tool_results={"max_chars": 4_000}))
    assert lines[2_000] in sent[2]["content"]


@pytest.mark.parametrize("text", [
    json.dumps({"context": {"truncation_skip": True}, "rows": "x " * 5_000}),
    "[ctx_hooks] 3 of 4 lines kept to save context; repeat the call for all.\n" + "x y\n" * 5_000,
    "x y\n" * 5_000 + "[ctx_hooks]",
], ids=["its own JSON", "a placeholder", "the mark"])  # fmt: skip
def test_nothing_in_a_results_text_keeps_it_from_being_cut(text):
    sent = run(results.OVERSIZED, older(exchange(1, text)), policy=Policy(tool_results={"max_chars": 4_000}))
    assert len(sent[2]["content"]) < 5_000


def test_older_images_become_a_line():
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 4_000}}
    shown = {"role": "user", "content": [{"type": "text", "text": "look"}, image]}
    messages = [shown, *called([image], "c1", "screenshot", {}), {"role": "user", "content": "go on"}]
    sent = run(parts.MEDIA, messages)
    assert "image" in sent[0]["content"][1]["text"]
    assert "image" in str(sent[2]["content"])
    assert "base64" not in str(sent)


@pytest.mark.parametrize(
    ("newest_lines", "cut_newest", "is_cut"), [(1_000, True, True), (1_000, False, False), (500, True, False)]
)
def test_the_newest_results_leave_half_of_the_room_to_older_exchanges_that_need_it(newest_lines, cut_newest, is_cut):
    messages = [
        {"role": "user", "content": "q"},
        *exchange(1, "row of the older result\n" * 1_500),
        *exchange(2, "row of the newest result\n" * newest_lines),
    ]
    conversation = WIRE_FORMATS["openai-chat"].read(messages)
    counter = Counter("cl100k_base")
    budget = Budget(9_000, 20_000, counter, cut_newest=cut_newest)
    sent = results.LARGE_NEWEST.apply(conversation, budget)
    newest_tokens = counter.messages((sent.messages[i] for i in sent.newest_loop), "openai-chat")
    assert (sent is not conversation) == is_cut
    assert not is_cut or 0.3 * budget.goal_tokens < newest_tokens <= 0.5 * budget.goal_tokens


def test_what_was_run_is_told_although_what_is_protected_leaves_no_room_within_the_target():
    """The budget has room for it, which stands behind the target."""
    turns = [
        m for n in range(90) for m in called(f"line of part {n}\n" * 40, f"c{n}", "bash", {"command": f"make part_{n}"})
    ]
    messages = [
        {"role": "system", "content": "Mind the rule. " * 2_000},
        {"role": "user", "content": "Build all parts."},
        *turns,
    ]
    sent = ctx_hooks.compress(messages, format="openai-chat", budget_tokens=12_000, target_tokens=7_000)
    (record,) = [m["content"] for m in sent.messages if m["role"] == "user"]
    assert sent.fits
    assert record.count("- make part_") >= 8
