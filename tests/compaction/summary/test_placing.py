"""A compacted session reads in order: each record stands where the messages stood that it is of."""

import re
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import called, every_format, hostile_texts, spoken, tool_round

import ctx_hooks
from ctx_hooks.compaction.summary.extractive import Removed, ends_of
from ctx_hooks.compaction.summary.placing import gaps_of, with_records
from ctx_hooks.conversation.model import REMOVED_MESSAGE, Text, ToolCall
from ctx_hooks.conversation.placeholders import MARK
from ctx_hooks.formats import WIRE_FORMATS

SOURCE = "".join(f"def step_{n}(value):\n    return value + table_{n}[{n * 7}]\n" for n in range(60))
RECORD = re.compile(rf"{re.escape(MARK)} (\d+) messages? (?:was|were) removed here")
PLACE = re.compile(r"place_(\d{4})")


def placed(fmt, turns, texts):
    """Return a session in which each message says its place, with the task, calls, results and an answer in each turn."""
    messages = []

    def said(text):
        return f"{text}\nplace_{len(messages):04}: {texts[len(messages) % len(texts)]}"

    for n in range(turns):
        messages.append(spoken(fmt, "user", said(f"Please do thing {n}.")))
        for k in range(n % 5):
            place = len(messages)
            arguments = {"path": f"src/place_{place:04}.py", "text": texts[place % len(texts)]}
            result = f"place_{place + 1:04} is here\n{SOURCE}\nplace_{place + 1:04} ends"
            messages += tool_round(fmt, [(f"c{n}_{k}", result)], arguments=arguments)
        messages.append(spoken(fmt, "assistant", said(f"Thing {n} is done.")))
    return [*messages, spoken(fmt, "user", said("Go on."))]


def pieces(message):
    """Return what a message says itself and the record in it, as it is read, each as its text and how many it stands for."""
    texts = [part.arguments if isinstance(part, ToolCall) else part.text for part in message.parts]
    text, *_ = "\n".join(texts).partition(f"{MARK} Quoted from earlier")
    read = []
    while (found := RECORD.search(text)) and any(isinstance(part, Text) for part in message.parts):
        record, end, behind = text[found.start() :].partition(f"{MARK} End of the record.")
        read += [(text[: found.start()], 0), (record, int(found[1]))]
        text = behind.removeprefix(" The user says:") if end else ""
    return [*read, (text, 0)]


@every_format
@settings(max_examples=8)
@given(
    texts=st.lists(hostile_texts.filter(lambda text: "place_" not in text), min_size=1, max_size=5),
    turns=st.integers(3, 30),
    share=st.floats(0.1, 0.9),
)
@pytest.mark.parametrize("target_tokens", [None, "auto"])
def test_nothing_before_a_record_is_newer_and_nothing_behind_it_is_older(fmt, target_tokens, texts, turns, share):
    messages = placed(fmt, turns, texts)
    whole = ctx_hooks.compress(messages, format=fmt, budget_tokens=10**9).tokens_before
    budget_tokens = max(600, int(whole * share))
    done = ctx_hooks.compress(messages, format=fmt, budget_tokens=budget_tokens, target_tokens=target_tokens)
    newest, removed, left = -1, 0, 0
    for message in WIRE_FORMATS[fmt].read(done.messages).messages:
        found = pieces(message)
        removed += sum(count for _, count in found)
        left += any(text.strip() and not text.startswith(REMOVED_MESSAGE["en"]) for text, count in found if not count)
    assert removed + left == len(messages)
    for text, count in (piece for m in WIRE_FORMATS[fmt].read(done.messages).messages for piece in pieces(m)):
        places = [int(place) for place in PLACE.findall(text)]
        assert min(places, default=newest + 1) >= newest + bool(count)  # what stands for a result names its call's file
        newest = max(places, default=newest)
    assert newest == len(messages) - 1


def service(fmt, turns):
    """Return a conversation in which every question is answered, with the turns that speak."""
    said = [
        (f"Question {n}: may I change booking {n}?", f"Looking at {n}. " * 30 + f"Booking {n} costs {n}0.")
        for n in range(turns)
    ]
    return [spoken(fmt, role, text) for turn in said for role, text in zip(("user", "assistant"), turn, strict=True)]


@every_format
def test_record_pairs_each_question_with_its_answer(fmt):
    messages = [*service(fmt, 60), spoken(fmt, "user", "So what does it cost?")]
    sent = ctx_hooks.compress(messages, format=fmt, budget_tokens=6_000)
    assert sent.tokens_after < sent.tokens_before
    said = [m.text for m in WIRE_FORMATS[fmt].read(sent.messages).messages]
    lines = [line for text in said for line in text.splitlines()]
    pattern = r"(?:- assistant message: )?Looking at (\d+)\..* Booking (\d+) costs (\d+)0\.$"
    told = [(before, found) for before, line in pairwise(lines) if (found := re.match(pattern, line))]
    assert len(told) > 10
    assert all(found[1] == found[2] == found[3] for _, found in told)
    assert all(f"Question {found[1]}: may I change booking {found[1]}?" in before for before, found in told)
    assert sum(REMOVED_MESSAGE["en"] in text for text in said) <= 1


def test_the_record_stands_behind_the_task_and_tells_what_came_after_it():
    reads = [m for n in range(40) for m in called(f"# {n}\n{SOURCE}", f"c{n}", "read", {"path": f"src/part_{n}.py"})]
    edit = called("ok", "e", "Edit", {"file_path": "src/part_3.py", "old_string": "x"})
    messages = [{"role": "user", "content": "Rename the tables."}, *reads[:20], *edit, *reads[20:]]
    sent = ctx_hooks.compress(messages, format="openai-chat", budget_tokens=4_000, target_tokens="auto").messages
    task, *record = sent[0]["content"].split("\n")
    assert task == "Rename the tables."
    assert "- src/part_3.py" in record
    assert sum(bool(RECORD.search(str(message))) for message in sent) == 1


CALL, RESULT = called("ok")
U, A, S = ({"role": role, "content": f"{role} speaks"} for role in ("user", "assistant", "system"))
END = f"{MARK} End of the record. This message says:"


@pytest.mark.parametrize(("kept_before", "kept_behind", "sent"), [
    ([U], [CALL, RESULT], ["user speaks\n\nRECORD", "", ""]),
    ([U], [A], ["user speaks\n\nRECORD", "assistant speaks"]),
    ([U], [U], ["user speaks", "assistant: RECORD", "user speaks"]),
    ([A], [U], ["assistant speaks", f"RECORD\n{END}\n\nuser speaks"]),
    ([CALL, RESULT], [U], ["", "", "assistant: RECORD", "user speaks"]),
    ([CALL, RESULT], [CALL, RESULT], ["", "", "user: RECORD", "", ""]),
    ([U, S], [CALL, RESULT], ["user speaks", "system speaks", "user: RECORD", "", ""]),
    ([S], [U], ["system speaks", f"RECORD\n{END}\n\nuser speaks"]),
    ([], [A], ["user: RECORD", "assistant speaks"]),
    ([U], [], ["user speaks\n\nRECORD"]),
    ([{**U, "name": "ann"}], [A], ["user speaks", "user: RECORD", "assistant speaks"]),
])  # fmt: skip
def test_where_a_record_stands(kept_before, kept_behind, sent):
    conversation = WIRE_FORMATS["openai-chat"].read([*kept_before, A, U, *kept_behind])
    gap = range(len(kept_before), len(kept_before) + 2)
    messages = with_records(conversation, {}, set(gap), {gap: "RECORD"}, "en")
    told = [f"{m.role}: {m.text}" if m.text == "RECORD" else m.text for m in messages]
    assert told == sent


@given(st.sets(st.integers(0, 40)))
def test_gaps_cover_what_is_gone_and_touch_none_other(gone):
    gaps = gaps_of(gone)
    assert [i for gap in gaps for i in gap] == sorted(gone)
    assert not any(gap.stop in gone for gap in gaps)
    removed = Removed((), gaps, {}, ())
    for i in range(43):
        assert removed.gap(i) == next((n for n, gap in enumerate(gaps) if i in gap), -1)


def test_what_is_missing_between_lines_is_marked_on_a_line_of_its_own():
    assert set(ends_of("One line.\n" * 99).splitlines()) == {"One line.", "…"}
    assert ends_of("One two " * 99).count(" … ") == 1


def test_an_answer_may_begin_with_an_item_that_holds_nothing():
    fmt, empty = "openai-responses", {"type": "message", "role": "assistant", "content": []}
    messages = [spoken(fmt, "user", "Fix src/app.py please")]
    for n in range(40):
        messages += [empty, *tool_round(fmt, [(f"c{n}", f"x src/g{n}.py " * 60)], arguments={"path": f"src/f{n}.py"})]
    assert ctx_hooks.compress(messages, format=fmt, budget_tokens=1_200, target_tokens="auto").fits


def test_a_conversation_that_was_compacted_is_compacted_again():
    """A client may send what it was returned: what stands there for a removed message is no answer."""
    messages = [{"role": "user", "content": "Three."}]
    for n in range(30):
        answer = f"Old news {n}. " * 200 if n % 3 else REMOVED_MESSAGE["en"]
        messages[-1:-1] = [spoken("openai-chat", "user", f"Please never do thing {n}. " * 60)]
        messages[-1:-1] = [spoken("openai-chat", "assistant", answer)]
    assert ctx_hooks.compress(messages, format="openai-chat", budget_tokens=8_000).fits
