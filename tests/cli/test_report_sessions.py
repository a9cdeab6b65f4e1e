"""The sessions of the report, and the page as a browser shows it: widths, console, colours."""

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from told_events import ANSWER, CALL, DECISION, EVENTS, FAILURE, OVERFLOW, RETRIEVAL, SUMMARY

from ctx_hooks import cli
from ctx_hooks.cli.report.figures import Figures
from ctx_hooks.cli.report.page import page
from ctx_hooks.cli.report.sessions import MOST_SESSIONS, MOST_TURNS, MOST_WINDOWS
from ctx_hooks.compaction.pipeline import StepReport
from ctx_hooks.tokens.usage import Billed


def turn(n, before, after, *further, session="4b24", **fields):
    """Return the events of a request that was answered, and further ones of it."""
    call = replace(CALL, request_id=f"request-{n}", call_id=f"call-{n}", session=session)
    at, decision = 1_700_000_000.0 + 60 * n, "fits" if before == after else "compressed"
    decided = replace(DECISION, decision=decision, provider_tokens_before=before, provider_tokens_after=after, **fields)
    answered = replace(ANSWER, decision=decision, billed=Billed(after, after // 2, 0, 70))
    return [replace(event, call=call, time_seconds=at + i) for i, event in enumerate((decided, *further, answered))]


STEPS = (StepReport("oldest_turns", 5_000, 12, "the oldest gave way"), StepReport("repeats", 100, 1))
REREAD = replace(ANSWER, rereads={"read": 2}, billed=None)
STORY = [
    turn(0, 4_000, 4_000, steps=()),
    turn(1, 9_900, 4_400, steps=STEPS),
    turn(2, 11_000, 5_500, steps=STEPS),
    turn(3, 12_000, 5_000, OVERFLOW, SUMMARY, RETRIEVAL, steps=STEPS),
    turn(4, 90_000, 5_100, REREAD, steps=STEPS),
    turn(5, 91_000, 5_200, FAILURE, steps=STEPS, reason="nothing is left to cut")[:-1],
]


def sessions_of(events):
    figures = Figures()
    for event in events:
        figures.count(event)
    return figures, figures.largest.sessions(events)


@pytest.mark.parametrize(("modes", "heading"), [
    (("enforce", "enforce"), "Sent"), (("observe", "observe"), "Would be sent"),
    (("observe", "enforce"), "Sent, or would be"),
])  # fmt: skip
def test_observed_request_is_not_called_sent(modes, heading):
    events = [e for n, mode in enumerate(modes) for e in turn(n, 9_900, 4_400, steps=STEPS, mode=mode)]
    figures, sessions = sessions_of(events)
    assert f"{heading}</th>" in page(figures, sessions)


def test_pipe_and_wrong_times_show_no_session():
    figures, _ = sessions_of(turn(1, 9_900, 4_400))
    undated = [replace(event, time_seconds=1e15) for event in turn(2, 9_900, 4_400)]
    assert figures.largest.sessions(()) == figures.largest.sessions(undated) == []


@pytest.mark.parametrize("order", [1, -1])
def test_session_explains_each_request(order):
    _, (session,) = sessions_of([event for events in STORY for event in events][::order])
    turns = list(session.turns.values())
    assert [(t.received_tokens, t.sent_tokens) for t in turns[:3]] == [(4_000, 4_000), (9_900, 4_400), (11_000, 5_500)]
    assert [t.at_seconds - 1_700_000_000 for t in turns] == [0, 60, 120, 180, 240, 300]
    compacted = ["oldest turns: 5,000 tokens of 12 messages", "repeats: 100 tokens of 1 message"]
    assert [[happened.words for happened in turn.happened()] for turn in turns] == [
        [],
        compacted,
        [],  # the compaction before it
        [
            *compacted,
            "1 attempt refused, then answered",
            "8,000 characters retrieved, from the archive",
            "summary of 40 messages by small: accepted",
        ],
        ["read again: read, 2 times"],
        ["refused in the end: nothing is left to cut"],
    ]
    assert session.figures == {"compaction": 2, "rescue": 1, "failure": 1, "reread": 1, "retrieval": 1, "summary": 1}


def test_chart_shows_the_window():
    _, (session,) = sessions_of([event for events in STORY for event in events])
    assert session.most_tokens == MOST_WINDOWS * 10_000
    assert session.line("window_tokens").startswith("M0 66.7H1V66.7H2")
    assert session.line("cached_tokens", filled=True).startswith("M0 100V93.3H1")
    assert session.line("received_tokens").count("V-") == 2
    gap = [*STORY[0], replace(STORY[1][0], mode="enforce", provider_tokens_after=None, provider_tokens_before=None)]
    assert sessions_of(gap)[1][0].line("sent_tokens", filled=True) == "M0 100V80.0H1V100"


def test_sessions_with_the_largest_cuts_are_shown():
    events = [event for n in range(40) for event in turn(n, 10_000 + n, 5_000, session=f"{n:04x}")]
    events += [event for n in range(100, 110 + MOST_TURNS) for event in turn(n, 20_000, 5_000)]
    figures, found = sessions_of(events)
    assert [s.key[0] for s in found] == ["4b24", *(f"{n:04x}" for n in range(39, 40 - MOST_SESSIONS, -1))]
    assert [(len(s.turns), s.is_longer) for s in found[:2]] == [(MOST_TURNS, True), (1, False)]
    text = page(figures, found)
    assert text.count("<details") == MOST_SESSIONS
    assert text.count('<details class="session" open>') == 1
    assert "call-39" in text


TEMPLATE = Path(cli.__file__).with_name("templates") / "style.css"
TEXTS = [("ink", "paper"), ("ink", "card"), ("ink", "warn"), ("soft", "paper"), ("soft", "card"), ("bad", "card")]
GRAPHICS = [("done", "card"), ("would", "card"), ("bad", "card"), ("soft", "card"), ("done", "paper"), ("other", "card")]


def luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_colours_have_the_contrast_of_wcag_aa(scheme):
    root = re.findall(r":root \{(.*?)\}", TEMPLATE.read_text(encoding="utf-8"), re.DOTALL)[scheme]
    colours = dict(re.findall(r"--(\w+): (#[0-9a-f]{6});", root))
    for least, pairs in ((4.5, TEXTS), (3.0, GRAPHICS)):
        for pair in pairs:
            low, high = sorted(luminance(colours[name]) for name in pair)
            assert (high + 0.05) / (low + 0.05) >= least, pair


CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
MEASURES = """<script>addEventListener("load", () => {
for (const each of document.querySelectorAll("details")) each.open = true;
const wide = [...document.querySelectorAll(".table")].filter(each => each.scrollWidth > each.clientWidth).length;
parent.postMessage([innerWidth, document.scrollingElement.scrollWidth <= innerWidth, wide].join(" "), "*") })</script>"""
FRAME = """<!doctype html><iframe style="border:0;width:{width}px;height:800px" src="page.html"></iframe>
<script>addEventListener("message", event => document.body.dataset.found = event.data)</script>"""


@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
@pytest.mark.parametrize("width", [390, 768, 1280])
def test_nothing_scrolls_sideways_in_a_browser(width, tmp_path):
    """In a frame, since a window of Chromium has 500 pixels at least; the page itself may run no script."""
    long = [replace(event, call=replace(event.call, team_alias="a" * 80, call_id="c" * 80)) for event in STORY[4]]
    figures, sessions = sessions_of([*EVENTS, *long, *(event for events in STORY for event in events)])
    text = page(figures, sessions)
    measured = text.replace("default-src 'none'", "default-src 'none'; script-src 'unsafe-inline'", 1)
    (tmp_path / "page.html").write_text(measured.replace("</main>", f"</main>{MEASURES}"), encoding="utf-8")
    (tmp_path / "frame.html").write_text(FRAME.format(width=width), encoding="utf-8")
    own = ["--headless", "--no-sandbox", "--window-size=1400,900", "--allow-file-access-from-files", "--dump-dom"]
    asked = [*own, "--enable-logging=stderr", f"--user-data-dir={tmp_path}", (tmp_path / "frame.html").as_uri()]
    shown = subprocess.run([CHROMIUM, *asked], capture_output=True, text=True, timeout=120, check=True)
    assert re.findall(r'data-found="([^"]*)"', shown.stdout) == [f"{width} true 0"]
    assert "CONSOLE" not in shown.stderr
