"""A compacted session reads in order: the task, the record of what is gone behind it, a line for an answer that is gone."""

import re

from strategies import called, every_format, spoken

import ctx_hooks
from ctx_hooks.compaction.summary.extractive import ends_of
from ctx_hooks.compaction.summary.placing import with_summary
from ctx_hooks.conversation.placeholders import REMOVED_MESSAGE
from ctx_hooks.formats import WIRE_FORMATS

SOURCE = "".join(f"def step_{n}(value):\n    return value + table_{n}[{n * 7}]\n" for n in range(60))


def service(fmt, turns):
    """Return a conversation in which every question is answered, with the turns that speak."""
    said = [
        (f"Question {n}: may I change booking {n}?", f"Looking at {n}. " * 30 + f"Booking {n} costs {n}0.")
        for n in range(turns)
    ]
    return [spoken(fmt, role, text) for turn in said for role, text in zip(("user", "assistant"), turn, strict=True)]


@every_format
def test_where_an_answer_is_gone_a_line_says_what_it_was(fmt):
    messages = [*service(fmt, 60), spoken(fmt, "user", "So what does it cost?")]
    sent = ctx_hooks.compress(messages, format=fmt, budget_tokens=6_000)
    assert sent.tokens_after < sent.tokens_before
    said = [m.get("content") or m["parts"][0]["text"] for m in sent.messages if m["role"] in ("assistant", "model")]
    lines = [text for text in said if "removed here; the assistant said last" in text]
    pattern = r"1 message was removed here; the assistant said last: Looking at (\d+)\..* … .* Booking (\d+) costs (\d+)0\.$"
    told = [re.search(pattern, line) for line in lines]
    assert len(lines) > 2
    assert all(found and found[1] == found[2] == found[3] for found in told)
    assert sum("[ctx_hooks] An earlier message was removed" in text for text in said) <= 1
    assert not any(
        f"> Looking at {found[1]}." in str(message).replace("said: ", "> ") for found in told for message in sent.messages
    )


def test_the_record_stands_behind_the_task_and_tells_what_came_after_it():
    reads = [m for n in range(40) for m in called(f"# {n}\n{SOURCE}", f"c{n}", "read", {"path": f"src/part_{n}.py"})]
    edit = called("ok", "e", "Edit", {"file_path": "src/part_3.py", "old_string": "x"})
    messages = [{"role": "user", "content": "Rename the tables."}, *reads[:20], *edit, *reads[20:]]
    sent = ctx_hooks.compress(messages, format="openai-chat", budget_tokens=4_000, target_tokens="auto").messages
    task, *record, end = sent[0]["content"].split("\n")
    assert task == "Rename the tables."
    assert "- src/part_3.py" in record
    assert end == "[ctx_hooks] End of the record. The conversation follows without these messages."
    assert sum("[ctx_hooks] End of the record" in str(message) for message in sent) == 1


def test_the_record_stands_behind_the_task_even_if_what_stood_before_it_was_cut():
    reads = [m for n in range(40) for m in called(SOURCE, f"c{n}", "read", {"path": f"src/part_{n}.py"})]
    messages = [{"role": "user", "content": "<rules>"}, {"role": "user", "content": "Rename the tables."}, *reads]
    conversation = WIRE_FORMATS["openai-chat"].read(messages)
    for gone, places in (({0, *range(2, 60)}, [0]), (range(2, 60), [1]), ({0}, [])):
        sent = with_summary(conversation, {}, gone, "SUMMARY", {}, "en")
        assert [n for n, m in enumerate(sent) if m.text.startswith("Rename the tables.\n\nSUMMARY\n")] == places


def test_what_is_missing_between_lines_is_marked_on_a_line_of_its_own():
    assert ends_of("One.\nTwo.\n" + "x" * 99 + "\nEnd.", 10, 5) == "One.\nTwo.\n…\nEnd."
    assert ends_of("One two " + "x" * 99 + " end.", 8, 5) == "One two … end."


def test_a_conversation_that_was_compacted_is_compacted_again():
    """A client may send what it was returned: what stands there for a removed message is no answer."""
    messages = [{"role": "user", "content": "Three."}]
    for n in range(30):
        answer = f"Old news {n}. " * 200 if n % 3 else REMOVED_MESSAGE
        messages[-1:-1] = [spoken("openai-chat", "user", f"Please never do thing {n}. " * 60)]
        messages[-1:-1] = [spoken("openai-chat", "assistant", answer)]
    assert ctx_hooks.compress(messages, format="openai-chat", budget_tokens=8_000).fits
