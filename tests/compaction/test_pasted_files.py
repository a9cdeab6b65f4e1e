"""A request that was pasted together: the window is filled, files go whole, and their names stay."""

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import every_format, spoken

import ctx_hooks
from ctx_hooks.compaction.selection.blocks import blocks, names_of

QUESTION = {"role": "user", "content": "Which of these files opens a socket?"}
STYLES = {
    "headings": "--- {name}\n{body}\n",
    "elements": '<file path="{name}">\n{body}\n</file>\n',
    "documents": "<document>\n<source>{name}</source>\n<document_content>\n{body}\n</document_content>\n</document>\n",
    "fences": "{name}:\n```python\n{body}\n```\n",
}


def body_of(n):
    return "\n".join(f"def step_{n}_{k}(value_{k}):\n    return value_{k} + {n * 100 + k}\n" for k in range(40))


def pasted(style, files=30):
    names = [f"src/module_{n}/part_{n}.py" for n in range(files)]
    return names, "Please review.\n" + "".join(style.format(name=name, body=body_of(n)) for n, name in enumerate(names))


@pytest.mark.parametrize("style", STYLES.values(), ids=STYLES)
@pytest.mark.parametrize("target_tokens", [None, "auto"])
def test_a_pasted_file_stands_whole_or_is_named_as_left_out(style, target_tokens):
    names, text = pasted(style)
    messages = [{"role": "user", "content": text}, QUESTION]
    result = ctx_hooks.compress(messages, format="openai-chat", budget_tokens=8_000, target_tokens=target_tokens)
    assert result.fits
    sent = result.messages[0]["content"]
    whole = [n for n in range(len(names)) if body_of(n) in sent]
    assert 5 <= len(whole) < len(names)
    placeholder = next(line for line in sent.splitlines() if line.startswith("[ctx_hooks]"))
    for n, name in enumerate(names):
        assert (body_of(n) in sent) != (name in placeholder)
        assert body_of(n) in sent or f"def step_{n}_" not in sent
    assert "call" not in placeholder
    assert result.messages[-1] == QUESTION


@every_format
def test_a_request_that_nobody_has_answered_fills_the_window(fmt):
    _, text = pasted(STYLES["elements"], files=60)
    said = (text, text.replace("step", "other"), QUESTION["content"])
    messages = [spoken(fmt, "user", words) for words in said]
    answered = [messages[0], spoken(fmt, "assistant", "Read."), *messages[1:]]
    single = ctx_hooks.compress(messages, format=fmt, budget_tokens=30_000, target_tokens="auto")
    going_on = ctx_hooks.compress(answered, format=fmt, budget_tokens=30_000, target_tokens="auto")
    assert single.tokens_before > 45_000
    assert 27_000 <= single.tokens_after <= 30_000
    assert going_on.tokens_after <= 21_000


def test_a_long_pasted_text_says_how_much_of_it_is_not_there():
    _, text = pasted(STYLES["headings"], files=20)
    result = ctx_hooks.compress([{"role": "user", "content": text}, QUESTION], format="openai-chat", budget_tokens=6_000)
    sent = result.messages[0]["content"]
    placeholder = next(line for line in sent.splitlines() if line.startswith("[ctx_hooks]"))
    gone, total = (int(figure.replace(",", "")) for figure in re.findall(r"\d[\d,]*", placeholder)[:2])
    assert total == len(text)
    kept = "".join(text[a:b] for a, b in blocks(text, 6_000) if text[a:b] in sent)
    assert gone == total - len(kept)


LINES = [
    "```", "```python a.py", "~~~", "<file path='a.py'>", "</file>", "<document>", "</document>", "--- a/b.py", "", "x y",
    "### File: c.go", "word " * 400, "a\u2028b", "<file name='q'>one</file>", "path.py:",
]  # fmt: skip


@settings(max_examples=60)
@given(lines=st.lists(st.sampled_from(LINES), max_size=40), most=st.integers(1, 5_000))
def test_blocks_cover_a_text_side_by_side(lines, most):
    text = "\n".join(lines)
    spans = blocks(text, most)
    assert "".join(text[a:b] for a, b in spans) == text
    assert all(a < b for a, b in spans)
    assert max((b - a for a, b in spans), default=0) <= max(500, most)


def test_names_are_those_of_files_and_not_of_code():
    text = 'requests.get(name="session")\n\nconnect(path="/tmp/socket")\n\n```\nplain\n```\n'
    assert names_of(text, blocks(text, 10_000)) == ()


def test_what_an_assistant_has_written_is_not_called_a_result():
    answer = {"role": "assistant", "content": "\n".join(f"point {n}: the value is {n * 7}" for n in range(2_000))}
    messages = [{"role": "user", "content": "Explain."}, answer, {"role": "user", "content": "Shorter, please."}]
    sent = ctx_hooks.compress(messages, format="openai-chat", budget_tokens=2_500).messages
    text = json.dumps(sent)
    assert "Part of this text" in text
    assert "repeat the call" not in text
