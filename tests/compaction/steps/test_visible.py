"""What a lossless step does to any text: no visible character goes, none comes, and a second pass changes nothing."""

import json
import unicodedata
from itertools import groupby

import pytest
from hostile_texts import behind_header, kinds
from hypothesis import given, settings
from strategies import hostile_texts

from ctx_hooks.compaction.pipeline import LOSSLESS, LOSSY, STEPS
from ctx_hooks.compaction.steps import json_layout, log_runs, terminal_noise
from ctx_hooks.texts.json_text import strings
from ctx_hooks.texts.pieces import PIECE_CHARS

REWRITES = {"terminal_noise": terminal_noise.clean, "json_layout": json_layout.compact}
every_rewrite = pytest.mark.parametrize("rewrite", REWRITES.values(), ids=REWRITES)
every_kind = pytest.mark.parametrize("kind", kinds.values(), ids=kinds)
thorough = settings(max_examples=60)


def visible(text):
    """Return the characters that a terminal prints, one after another: no control sequence, no blank, no control."""
    shown, i = [], 0
    while i < len(text):
        end = _sequence_end(text, i) if text[i] == "\x1b" else i
        if end == i:
            shown.append(text[i])
            end = i + 1
        i = end
    return [c for c in shown if not c.isspace() and unicodedata.category(c) != "Cc"]


def _sequence_end(text, start):
    """Return where the control sequence from `start` ends, `start` itself if it is none or not complete."""
    i = start + 2
    if text[start + 1 : i] == "[":
        while i < len(text) and "0" <= text[i] <= "?":
            i += 1
        while i < len(text) and " " <= text[i] <= "/":
            i += 1
        return i + 1 if i < len(text) and "@" <= text[i] <= "~" else start
    if text[start + 1 : i] == "]":
        while i < len(text) and text[i] >= " ":
            i += 1
        return i + 1 if text[i : i + 1] == "\x07" else i + 2 if text[i : i + 2] == "\x1b\\" else start
    if text[start + 1 : start + 3] in ("(0", "(A", "(B"):
        return start + 3
    return i if text[start + 1 : i] in ("7", "8", "=", ">") else start


def test_each_step_is_lossless_or_lossy():
    assert sorted(s.name for s in (*LOSSLESS, *LOSSY)) == sorted(s.name for s in STEPS)
    assert not set(LOSSLESS) & set(LOSSY)
    assert {step.name for step in LOSSLESS} == REWRITES.keys()


@every_rewrite
@thorough
@given(text=hostile_texts)
def test_a_lossless_step_keeps_every_visible_character(rewrite, text):
    assert visible(rewrite(text)) == visible(text)


@every_rewrite
@thorough
@given(text=hostile_texts)
def test_a_lossless_step_never_lengthens_a_text_and_is_done_at_once(rewrite, text):
    once = rewrite(text)
    assert len(once) <= len(text) + text.count(",")
    assert rewrite(once) == once


@every_kind
def test_a_long_text_keeps_every_visible_character_across_the_pieces_it_is_read_in(kind):
    for text in (kind(2 * PIECE_CHARS), behind_header(kind)(2 * PIECE_CHARS)):
        shown = visible(text)
        for rewrite in REWRITES.values():
            once = rewrite(text)
            assert once == text or visible(once) == shown
            assert rewrite(once) == once


@pytest.mark.parametrize(("text", "expected"), [
    ("line one\r\r\n", "line one\r\n"), ("a\rb\rc", "a\rb\rc"), ("progress 100%\r", "progress 100%\r"),
    ("abc\rX", "abc\rX"), ("\x1b[1;32mok\x1b[0m \t\n", "ok\n"), ("name\x1b[40G[ OK ]", "name [ OK ]"),
    ("\x1b]0;title\x07text", "text"), ("\x1b]0;title and text", "\x1b]0;title and text"),
    ("\x1b[\x1b[0m31m", "\x1b[\x1b[0m31m"), ("a\n\n\n\n\n \n\nb", "a\n\nb"),
])  # fmt: skip
def test_terminal_noise_drops_what_shows_nothing_alone(text, expected):
    assert terminal_noise.clean(text) == expected


@thorough
@given(text=hostile_texts)
def test_json_loses_no_more_than_blanks_between_its_values(text):
    """Strings, figures, escapes and doubled keys stay to the letter."""
    compact = json_layout.compact(text)
    if compact != text:
        assert [string for _, string in strings(compact)] == [string for _, string in strings(text)]
        assert json.loads(compact, object_pairs_hook=list) == json.loads(text, object_pairs_hook=list)


def test_what_is_no_json_keeps_its_layout():
    for text in ("[12:00:01] 5\n[12:00:02] 6\n", "{\n  a: 1\n}", "[\n1 2\n]", '["open\n', "[\n" * 5_000):
        assert json_layout.compact(text) == text


@thorough
@given(text=hostile_texts)
def test_a_folded_run_counts_the_lines_it_left_out_and_they_were_alike(text):
    folded = log_runs.fold(text)
    if folded == text:
        return
    lines = text.splitlines(keepends=True)
    given_lines = iter(lines)
    for line in folded.splitlines(keepends=True):
        number, _, rest = line.removeprefix("… ").partition(" more ")
        if rest.strip() in ("alike but for figures", "redrawn in its place"):
            left_out = [next(given_lines) for _ in range(int(number))]
            assert len(left_out) == int(number) >= 2
            words = ("".join(c for c in dropped if c.isalpha() and c not in "abcdefABCDEF") for dropped in left_out)
            assert len(list(groupby(words))) == 1
        else:
            assert next(given_lines) == line
    assert next(given_lines, None) is None


def test_progress_that_was_redrawn_keeps_its_first_and_last_state():
    bar = "".join(f"\rprogress [{'=' * (n // 10):10}] {n}%" for n in range(101))
    folded = log_runs.fold(f"building{bar}\ndone\n")
    assert folded.splitlines() == [
        "building",
        "progress [          ] 0%",
        "… 98 more redrawn in its place",
        "progress [========= ] 99%",
        "progress [==========] 100%",
        "done",
    ]
