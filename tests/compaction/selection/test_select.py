"""Lines that the conversation still refers to outlive those that nothing refers to, and dialogue keeps its evidence."""

import json

import pytest
from strategies import called

import ctx_hooks
from ctx_hooks.texts.identifiers import identifiers


def session(results, question):
    read = [m for n, text in enumerate(results) for m in called(text, f"c{n}", arguments={"part": n})]
    return [{"role": "user", "content": "Look through the logs."}, *read, {"role": "user", "content": question}]


def filler(n):
    """Return 150 lines without an identifier or a figure, by which they would be folded into one."""
    numbers = (f"{n:02}{k:03}".translate(str.maketrans("0123456789", "ghijklmnop")) for k in range(150))
    return "\n".join(f"nothing of note happened on this quiet line number {number}" for number in numbers)


def sent_text(messages, budget, **options):
    return json.dumps(ctx_hooks.compress(messages, format="openai-chat", budget_tokens=budget, **options).messages)


def test_a_line_whose_identifier_is_used_later_survives():
    results = [filler(n) for n in range(20)]
    results[3] += "\nretry policy lives in src/net/backoff_policy.rs:88\n"
    messages = session(results, "Now change it.")
    messages.insert(-1, {"role": "assistant", "content": "I will edit src/net/backoff_policy.rs:88 next."})
    assert "retry policy lives in src/net/backoff_policy.rs:88" in sent_text(messages, 4_000)


def test_short_results_stay_where_their_line_saves_little():
    note = "the written part went into the folder of all notes, and the index of the folder was made anew from it"
    command = "python write_note.py " + "--with-everything " * 117
    calls = [called(f"{'done ' * 40}{n}\n{note} {n}", f"c{n}", "bash", {"command": f"{command} {n}"}) for n in range(60)]
    asked = [{"role": "user", "content": "go on"}, *(m for call in calls for m in call)]
    came = {m["tool_call_id"]: m["content"] for m in asked if m["role"] == "tool"}
    sent = ctx_hooks.compress(asked, format="openai-chat", budget_tokens=4_000).messages
    kept = {m["tool_call_id"]: m["content"] for m in sent if m["role"] == "tool"}
    assert 0 < len(kept) < len(came)
    assert all(text == came[i] or len(text) <= 0.6 * len(came[i]) for i, text in kept.items())


def test_a_patch_of_a_thirtieth_of_the_budget_stays_whole_in_an_older_call():
    patch = "*** Begin Patch\n" + "".join(f"+ line {n} of the patch\n" for n in range(80)) + "*** End Patch"
    messages = session([filler(n) for n in range(20)], "Now change it.")
    messages[7]["tool_calls"][0]["function"]["arguments"] = json.dumps({"path": "notes.txt", "patch": patch})
    out = ctx_hooks.compress(messages, format="openai-chat", budget_tokens=16_000).messages
    kept = [json.loads(c["function"]["arguments"]) for m in out for c in m.get("tool_calls") or () if c["id"] == "c3"]
    assert [found["patch"] for found in kept] == [patch]


def test_a_line_in_the_middle_of_a_result_that_is_larger_than_its_share_of_the_window_survives():
    results = [filler(0), f"{filler(1) * 6}\nretries = backoff_policy(8443)\n{filler(2) * 6}", filler(3)]
    messages = session(results, "Now change it.")
    messages.insert(-1, {"role": "assistant", "content": "I will edit backoff_policy next."})
    assert "retries = backoff_policy(8443)" in sent_text(messages, 4_000, window_tokens=5_000)


@pytest.mark.parametrize(("said", "evidence", "question"), [
    ("We talked about this and that, nothing important, part {n} of the day.",
     "My grandmother's piano was tuned by Mr Albrecht in spring.", "Who tuned the piano?"),
    ("今天没有什么特别的事情,只是随便聊聊第{n}件小事。", "外婆的钢琴是阿尔布雷希特先生在春天调的音。", "钢琴是谁调音的?"),
], ids=["English", "Chinese"])  # fmt: skip
def test_a_turn_of_plain_dialogue_that_answers_the_question_survives(said, evidence, question):
    turns = [said.format(n=n) for n in range(400)]
    turns[41] = evidence
    messages = [{"role": ("user", "assistant")[n % 2], "content": t} for n, t in enumerate((*turns, question))]
    sent = ctx_hooks.compress(messages, format="openai-chat", budget_tokens=2_500).messages
    assert any(evidence in str(m["content"]) for m in sent)


def test_scattered_turns_of_a_dialogue_have_the_room_that_lines_for_the_gaps_would_take():
    said = [f"Fact {n}: {('the piano of room' if n % 3 else 'a walk by the sea of day')} {n} is old." for n in range(400)]
    turns = [{"role": ("user", "assistant")[n % 2], "content": text} for n, text in enumerate((*said, "Which piano?"))]
    sent = ctx_hooks.compress(turns, format="openai-chat", budget_tokens=2_000).messages
    assert sum("removed here to fit the context window" in m["content"] and "\n" not in m["content"] for m in sent) <= 1


def test_identifiers_are_what_names_something():
    found = set(identifiers("See src/app.py and user_id=42, the getValue call of x.y; not plain words."))
    assert {"src/app.py", "user_id", "getValue"} <= found
    assert not {"plain", "words", "not"} & found


def test_a_name_behind_an_escape_is_read_without_it():
    """In JSON a line break before a name is the letter "n"; in a path of Windows that letter is the name's."""
    arguments = json.dumps({"cmd": "cat <<EOF_1\nEOF_1\n\tsrc/a.py", "path": r"C:\repo\new_file.py"})
    assert {"EOF_1", "src/a.py", "new_file.py"} <= set(identifiers(arguments))
    assert not {"nEOF_1", "tsrc/a.py", "nsrc/a.py"} & {*identifiers(arguments)}
    assert "new_file.py" in identifiers(r"See C:\repo\new_file.py")
    printed = json.dumps({"notes": json.dumps("Why EOF_1\nNonGoals and more")})
    assert {"EOF_1", "NonGoals"} <= set(identifiers(f"Output: {printed}"))
