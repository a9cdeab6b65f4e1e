"""Long users' texts stay whole while there is room; a request of most of the budget leaves room for its work."""

import json

import pytest
from strategies import every_format, spoken, tool_round

import ctx_hooks
from ctx_hooks.formats import WIRE_FORMATS
from ctx_hooks.tokens.counter import Counter

BUDGET_TOKENS = 12_000
every_mode = pytest.mark.parametrize("target_tokens", [None, "auto"])


def plan(fraction):
    """Return a plan that takes about a fraction of the budget, with headings and lists."""
    sections, counter, tokens = [], Counter("o200k_base"), 0
    while tokens < fraction * BUDGET_TOKENS:
        k = len(sections)
        items = "\n".join(f"- item {k}.{j} says how field f{j} becomes column {k * 7 + j}" for j in range(8))
        sections.append(f"## Section {k}\n\nModule {k} reads its settings from conf_{k}.yaml:\n\n{items}\n\n")
        tokens += counter.text(sections[-1])
    return "".join(sections)


def session(fmt, said, rounds=60):
    """Return a session that begins with `said`; every second round edits a file."""
    items = [spoken(fmt, "user", said)]
    for n in range(rounds):
        name, file = ("edit_file", f"src/mod_{n}.py") if n % 2 else ("read_file", f"src/seen_{n}.py")
        items += tool_round(fmt, [(f"c{n}", f"value_{n} = compute({n})\n" * 40)], name=name, arguments={"file_path": file})
    return items


def read(fmt, items):
    return WIRE_FORMATS[fmt].read(items).messages


@every_format
@every_mode
@pytest.mark.parametrize("fraction", [0.3, 0.45, 0.55])
@pytest.mark.parametrize("is_older", [False, True])
def test_long_text_stays_whole_while_there_is_room(fmt, target_tokens, fraction, is_older):
    said = plan(fraction)
    items = session(fmt, said)
    if is_older:
        items += [
            spoken(fmt, "assistant", "That part is done."),
            spoken(fmt, "user", "Now the tests."),
            *session(fmt, "")[1:21],
        ]
    sent = ctx_hooks.compress(items, format=fmt, budget_tokens=BUDGET_TOKENS, target_tokens=target_tokens)
    assert sent.fits
    assert sent.tokens_after < sent.tokens_before
    texts = "\n".join(m.text for m in read(fmt, sent.messages)).replace("\n> ", "\n").replace("\n>\n", "\n\n")
    assert said.strip() in texts


@every_format
@every_mode
@pytest.mark.parametrize("fraction", [0.8, 1.1, 1.6])
def test_longest_request_leaves_room_for_its_work(fmt, target_tokens, fraction):
    said = plan(fraction)
    items = session(fmt, said)
    sent = ctx_hooks.compress(items, format=fmt, budget_tokens=BUDGET_TOKENS, target_tokens=target_tokens)
    assert sent.fits
    before, after = read(fmt, items), read(fmt, sent.messages)
    assert after[-1].results[0].text == before[-1].results[0].text
    assert sum(len(m.results) for m in after) > 4
    assert sum(f"mod_{n}.py" in json.dumps(sent.messages) for n in range(1, 60, 2)) == 30
    text = next(m.text for m in after if m.role == "user")
    head, notice, *_ = text.split("[ctx_hooks]")
    notice, _, tail = notice.partition("\n")
    assert said.startswith(head.strip("\n"))
    assert said.rstrip().endswith(tail.strip())
    assert "characters were left out" in notice
    assert head.rstrip().endswith(said.split("\n\n")[2 + 3 * (head.count("## Section") - 1)][-20:]), "whole lists"
