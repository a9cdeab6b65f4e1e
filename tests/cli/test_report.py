"""`ctx-hooks report`: the figures of known events are those on the page, names are escaped, and the page stands alone."""

import html
import json
import random
import re
import shutil
import subprocess
import tracemalloc
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from told_events import ANSWER, CALL, DECISION, EVENTS, FAILURE, OVERFLOW, RETRIEVAL, SUMMARY

from ctx_hooks.cli import main
from ctx_hooks.cli.rendering import dollars, nice, percent, short, whole
from ctx_hooks.cli.report.event_files import event_files
from ctx_hooks.cli.report.page import MOST_NAMES, OTHERS, Figures, page
from ctx_hooks.cli.report.sessions import MOST_SESSIONS, MOST_TURNS
from ctx_hooks.compaction.steps import StepReport
from ctx_hooks.telemetry.event_file import to_json
from ctx_hooks.telemetry.events import LimitEvent
from ctx_hooks.tokens.usage import Billed

DAY = 86_400
START = 1_700_000_000.0


def call(n, **names):
    return replace(CALL, call_id=f"call-{n}", request_id=f"request-{n}", **names)


def answer(n, **fields):
    return replace(ANSWER, time_seconds=START + n * DAY, call=call(n), **fields)


KNOWN = [
    replace(DECISION, time_seconds=START, call=call(0)),
    answer(0, provider_tokens_saved=5_500, dollars_saved=-0.5, billed=Billed(4_500, 0, 4_500, 10)),
    answer(1, rereads={"read": 1, "grep": 1}, provider_tokens_saved=20_000, dollars_saved=2.25,
           billed=Billed(5_500, 4_500, 0, 10)),
    answer(2, decision="fits", provider_tokens_saved=0, dollars_saved=0.0, billed=Billed(10_000, 6_500, 0, 1)),
    answer(3, decision="retried", beyond_window=True, provider_tokens_saved=0, dollars_saved=0.0, billed=None),
    replace(OVERFLOW, mode="enforce", time_seconds=START + 3 * DAY, call=call(3)),
    replace(DECISION, decision="failed", time_seconds=START + 4 * DAY, call=call(4), provider_tokens_after=9_000),
    replace(FAILURE, time_seconds=START + 4 * DAY, call=call(4)),
    answer(5, mode="observe", provider_tokens_saved=7_000, dollars_saved=0.75, billed=Billed(30_000, 0, 0, 3)),
    replace(OVERFLOW, mode="observe", time_seconds=START + 6 * DAY, call=call(6)),
    replace(FAILURE, mode="observe", decided="compressed", time_seconds=START + 6 * DAY, call=call(6)),
    answer(7, decision="fallback", provider_tokens_saved=0, dollars_saved=0.0, billed=None),
    LimitEvent("limit_learned", "id:model", "limit", 8_000, 10_000),
]  # fmt: skip


@pytest.fixture
def report(tmp_path):
    """Return the page of events and of raw lines."""

    def made(*events):
        lines = [event if isinstance(event, str) else to_json(event) for event in events]
        (tmp_path / "events.1.jsonl").write_text("".join(f"{line}\n" for line in lines))
        assert main(["report", str(tmp_path), "-o", str(tmp_path / "report.html")]) == 0
        return (tmp_path / "report.html").read_text()

    return made


def tiles(text):
    """Return each name on the page with its figure."""
    return dict(re.findall(r'<dt>([^<]+)</dt><dd class="[^"]*" title="[^"]*">([^<]+)</dd>', text))


def rows(text, title):
    """Return the cells of each row of the table with that title."""
    (table,) = re.findall(rf"<caption>{title}</caption>.*?</table>", text, re.DOTALL)
    return [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in re.findall(r"<tr>(<td.*?)</tr>", table)]


class Words(HTMLParser):
    """What a browser makes of the page: its tags with their attributes, and its words."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.words = [], []
        self.handle_starttag = lambda tag, attrs: self.tags.append((tag, dict(attrs)))
        self.handle_data = self.words.append
        self.feed(text)


def words_of(text):
    return " ".join("".join(Words(text).words).split())


def test_headline_counts_what_became_of_long_requests(report):
    done, would = map(words_of, report(*KNOWN).split("Observed: what would have been done"))
    assert "Of 6 requests, 5 were too long for the model: 1 failed, 1 went to a fallback, and 3 were answered" in done
    assert "1 request cost $0.50 more than without the compaction, $0.50 each" in done
    assert "Of 2 requests, 2 were too long for the model: 1 failed, 0 went to a fallback" in would
    assert "and 1 other would have been answered shorter." in would
    assert "With mode: enforce, 1 of the 1 failed would have been sent shorter;" in would
    assert "With mode: enforce" not in done


def test_tiles_keep_enforced_and_observed_apart(report):
    done, would = report(*KNOWN).split("Observed: what would have been done")
    assert tiles(done) == {
        "Too long for their model": "5", "Input tokens saved": "25.5 k", "Dollars saved": "$1.75",
        "Read from prompt caches": "55 %",
    }  # fmt: skip
    assert tiles(would) == {
        "Too long for their model": "2", "Input tokens that would have been saved": "7,000",
        "Dollars that would have been saved": "$0.75", "Read from prompt caches": "0 %",
    }  # fmt: skip
    assert "$2.25 saved, −$0.50 for rewriting caches" in words_of(done)


@pytest.mark.parametrize(("event", "reason"), [
    (answer(0, dollars_saved=0.0), "the prices of these models are 0 or not known to LiteLLM"),
    (answer(0, decision="fits", provider_tokens_saved=0), "no request was answered shorter"),
    (answer(0, beyond_window=True, provider_tokens_saved=0), "the shorter requests exceed their window"),
])  # fmt: skip
def test_saved_tile_of_zero_says_why(event, reason, report):
    assert reason in words_of(report(event))


def test_each_name_has_its_own_figures(report):
    other = replace(answer(8), call=call(8, team_alias="", team_id="t9", model_group="other"))
    text = report(*KNOWN, other, other)
    head = ["6", "5", "1", "1", "3", "25,500", "$1.75", "2", "55 %"]
    assert rows(text, "Model groups") == [
        ["group", *head],
        ["other", "2", "2", "0", "0", "2", "11,000", "$0.025", "0", "23 %"],
    ]
    assert [day[::2][:2] for day in rows(text, "Days")[:2]] == [["2023-11-22", "2"], ["2023-11-21", "1"]]
    assert rows(text, "Teams, observed") == [["Research", "2", "2", "1", "0", "1", "7,000", "$0.75", "0", "0 %"]]


def test_steps_outcomes_and_other_events_are_counted(report):
    text = report(*KNOWN)
    assert rows(text, "Steps of compactions") == [["oldest turns", "2", "10,000"], ["earlier compactions", "2", "−3,600"]]
    assert dict(rows(text, "Outcomes of requests, and other events")) == {
        "fits": "1", "fallback": "1", "compressed": "2", "retried": "1", "failed": "1",
        "compressed, observed": "1", "failed, observed": "1",
        "Limits learned from providers": "1", "Attempts that a provider refused as too long": "2",
    }  # fmt: skip


def test_lines_that_are_no_events_are_counted(report):
    text = report(*KNOWN, "{not json", json.dumps({"name": "decision"}))
    assert "Left out: 2 lines, no events." in text


def test_order_and_files_of_events_change_nothing(tmp_path, capsys):
    shuffled = random.Random(1).sample(KNOWN, len(KNOWN))
    (tmp_path / "events.1.jsonl").write_text("".join(to_json(e) + "\n" for e in shuffled[:5]))
    (tmp_path / "events.2.jsonl.1").write_text("".join(to_json(e) + "\n" for e in shuffled[5:]))
    figures, sessions = sessions_of(KNOWN)
    assert main(["report", str(tmp_path), str(tmp_path / "*.jsonl"), "-o", "-"]) == 0
    assert capsys.readouterr().out == page(figures, sessions) + "\n"


HOSTILE = """</td><script>alert(1)</script><img src=x onerror='alert("2")'>"""


def test_hostile_name_is_shown_and_not_run(report):
    step = replace(DECISION.steps[0], name=HOSTILE)
    for field in ("model_group", "team_alias", "client", "call_id", "key_alias"):
        hostile = replace(CALL, **{field: HOSTILE})
        decision = replace(DECISION, call=hostile, steps=(step,), reason=HOSTILE)
        text = report(decision, replace(ANSWER, call=hostile), replace(OVERFLOW, call=hostile))
        assert not {tag for tag, _ in Words(text).tags} & {"script", "img"}
        assert HOSTILE in "".join(Words(text).words), field


def test_page_asks_for_nothing_from_elsewhere(report):
    text = report(*KNOWN)
    assert not re.findall(r"https?:|//\w|@import|url\(", text)
    assert not [tag for tag, attrs in Words(text).tags if tag in ("script", "link") or {"src", "href"} & set(attrs)]
    assert "default-src 'none'" in html.unescape(text)


@pytest.mark.parametrize("text", ["", "{}\n"])
def test_without_an_event_the_old_page_stays(tmp_path, capsys, text):
    given, made = tmp_path / "request.json", tmp_path / "report.html"
    given.write_text(text)
    made.write_text("a good report")
    assert main(["report", str(given), "-o", str(made)]) == 2
    assert made.read_text() == "a good report"
    assert "no events" in capsys.readouterr().err


def test_folder_has_its_event_files(tmp_path):
    for name in ("events.1.jsonl", "events.1.jsonl.1", "events.2.jsonl", ".events.1.lock", "report.html"):
        (tmp_path / name).touch()
    every = ["events.1.jsonl", "events.1.jsonl.1", "events.2.jsonl"]
    for name, expected in (("", every), ("*.2.*", every[2:]), ("report.html", ["report.html"])):
        found = event_files([str(tmp_path / name), str(tmp_path / "." / name)])
        assert [path.name for path in found] == expected


def test_memory_does_not_grow_with_events():
    figures = Figures()
    for n in range(2 * MOST_NAMES):
        who = replace(CALL, call_id=str(n), model_group=str(n), team_alias=str(n), client=str(n))
        figures.count(replace(ANSWER, call=who, time_seconds=n * DAY))
        figures.count(replace(DECISION, call=who, provider_tokens_before=9_900 + n))
        if n == MOST_NAMES + 100:
            tracemalloc.start()
    grown_bytes, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert grown_bytes < 500_000
    assert figures.done.total["answers"] == 2 * MOST_NAMES
    assert figures.done.by_name["Team"][OTHERS]["answers"] == MOST_NAMES
    assert len(page(figures)) < 200_000


def test_figures_are_written_as_people_read_them():
    assert " ".join(map(short, (0, 9_999, 12_345, 999_999, -68_432_100, 2.5))) == "0 9,999 12.3 k 1 M −68.4 M 2.5"
    assert list(map(dollars, (0, 1_234.5, -0.0123, 0.00002))) == ["$0.00", "$1,234.50", "−$0.012", "$0.000020"]
    assert list(map(percent, (0.004, 0.555, None))) == ["0.4 %", "56 %", "–"]
    assert (whole(-1_234), *map(nice, (0, 7.2e6, 1_000))) == ("−1,234", 1, 8e6, 1_000)


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


@pytest.mark.parametrize(("mode", "heading"), [
    ("enforce", "Sent"), ("observe", "Would be sent"),
])  # fmt: skip
def test_observed_request_is_not_called_sent(mode, heading):
    text = page(*sessions_of([replace(e, mode=mode) for e in turn(0, 9_900, 4_400, OVERFLOW, steps=STEPS)]))
    assert f"{heading}</th>" in text
    enforced = ("What ctx_hooks did", "refused and retried", "were answered shorter", "Input tokens saved", "Enforced")
    assert heading != "Would be sent" or not [words for words in enforced if words in text]


def test_steps_add_up_to_the_whole_reduction():
    sizes = [(9_900, 4_400), (74_056, 9_219), (5_000, 5_000)]
    decided = [e for steps in ((), STEPS) for n, size in enumerate(sizes) for e in turn(n, *size, steps=steps)]
    figures, _ = sessions_of(decided)
    assert sum(figures.step_tokens.values()) == 2 * sum(before - after for before, after in sizes)


@pytest.mark.parametrize("order", [1, -1])
def test_session_explains_each_request(order):
    _, (session,) = sessions_of([event for events in STORY for event in events][::order])
    turns = list(session.turns.values())
    assert [(t.received_tokens, t.sent_tokens) for t in turns[:3]] == [(4_000, 4_000), (9_900, 4_400), (11_000, 5_500)]
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
