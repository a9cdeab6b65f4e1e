"""The pages that promise something state the figures that the package has."""

import re
from dataclasses import fields

import pytest
from documentation import ROOT

from ctx_hooks.addons.retrieval import rounds
from ctx_hooks.addons.retrieval.archive import archive
from ctx_hooks.addons.summaries import stored as stored_summaries
from ctx_hooks.attempts import learned, observations, request
from ctx_hooks.compaction import cut_points
from ctx_hooks.compaction.selection import user_words
from ctx_hooks.compaction.steps import parts
from ctx_hooks.flow import running
from ctx_hooks.litellm_compat import stream_events
from ctx_hooks.overflow import retry_plan, texts
from ctx_hooks.policy import resolve
from ctx_hooks.policy.settings import Policy
from ctx_hooks.runtime import worker
from ctx_hooks.store import shared_store
from ctx_hooks.telemetry.events import CallNames
from ctx_hooks.telemetry.listeners import EVENTS
from ctx_hooks.telemetry.prometheus import METRICS
from ctx_hooks.tokens import budget, units

DAY = 24 * 3600
WORDS = {2: "two", 3: "three", 6: "six", 7: "seven"}
MOST_RETRIES = next(rule.le for rule in Policy.model_fields["rescue_attempts"].metadata if hasattr(rule, "le"))
SAYS = [
    ("security", f"at most {texts.MOST_CHARS:,} characters"),
    ("security", f"at most {running.RUNNING_REQUESTS:,} requests"),
    ("security", f"a day, ratios {WORDS[observations.RULES['ratios'].kept_seconds / DAY]} days"),
    ("security", f"the key {WORDS[learned.KEPT_SECONDS / DAY]} days after the last write"),
    ("security", f"{WORDS[stored_summaries.KEPT_SECONDS / DAY]} days after the last write"),
    ("security", f"{running.MOST_HELD_BYTES / 1e6:.0f} MB in all"),
    ("appendix/design_notes", f"in one of {WORDS[worker.PLACES]} threads"),
    (
        "appendix/design_notes",
        f"above {request.MOST_REQUEST_BYTES / 1e6:.0f} MB, or of more than {request.MOST_MESSAGES:,} messages",
    ),
    ("appendix/design_notes", f"at least {observations.LEAST_LIMIT_TOKENS:,} tokens"),
    ("appendix/design_notes", f"at most {WORDS[rounds.MOST_ROUNDS]} rounds"),
    ("operations", f"until a command takes less than {shared_store.SLOW_SECONDS * 1000:.0f} ms"),
    ("security", f"at most {WORDS[stream_events.MOST_READ]} events"),
    ("addons", f"A read takes at most {archive.GET_SECONDS} s"),
    ("how_it_works", f"up to {WORDS[MOST_RETRIES]} times"),
    ("how_it_works", f"up to {cut_points.MOST_WORDS_FRACTION} of the budget beside fixed text"),
    ("how_it_works", f"without tools {user_words.DIALOGUE_WORDS_FRACTION} of the target"),
    ("how_it_works", f"above {parts.REQUEST_FRACTION} of the budget beside fixed text"),
    ("how_it_works", f"if it stands in {WORDS[user_words.REPEATED_TIMES]} messages"),
    ("how_it_works", f"the median of the last {observations.REMEMBERED}"),
    ("how_it_works", f"up to {cut_points.MARGIN_FRACTION:.0%}".replace("%", " %") + " of the budget"),
    ("policies", f"overrides of more than {resolve.LONGEST_OVERRIDES_CHARS:,} characters"),
    ("policies", f"names of more than {resolve.LONGEST_NAME_CHARS}"),
    ("appendix/design_notes", f"below {retry_plan.LEAST_OUTPUT_TOKENS} tokens"),
    ("appendix/design_notes", f"the budget and {request.LEAST_ANSWER_TOKENS:,} tokens for an answer"),
    ("appendix/design_notes", f"less {units.ESTIMATE_ERROR_FRACTION:.0%}".replace("%", " %") + " of the input"),
    ("policies", ", ".join(f"{tokens:,}" for _, tokens in budget.DYNAMIC_RESERVES[:0:-1])),
]
IN_WORDS = {
    "a quarter of a second": shared_store.HURRY_SECONDS == 0.25,
    "at most a quarter of the window": budget.LARGEST_RESERVE_FRACTION == 0.25,
    "forgotten after a day": observations.RULES["limit"].kept_seconds == DAY,
    "counts as at least half of the window": observations.OTHERS_FLOOR_FRACTION == 0.5,
    "know each other's ratios within ten seconds": learned.WRITE_SECONDS + learned.REFRESH_SECONDS < 10,
    "the mean size of the last ten messages": budget.DYNAMIC_MESSAGES == 10,
}


def text_of(page):
    return re.sub(r"\s+", " ", (ROOT / "docs" / f"{page}.md").read_text())


@pytest.mark.parametrize(("page", "sentence"), SAYS)
def test_a_figure_is_the_packages(page, sentence):
    assert sentence in text_of(page)


@pytest.mark.parametrize("sentence", IN_WORDS)
def test_a_figure_in_words_is_the_packages(sentence):
    assert any(sentence in text_of(page) for page in ("appendix/design_notes", "security", "policies", "how_it_works"))
    assert IN_WORDS[sentence]


def test_page_lists_every_field_and_metric():
    parts = (ROOT / "docs" / "appendix" / "events.md").read_text(encoding="utf-8").split("\n## ")
    listed = {title: set(re.findall(r"`(\w+)`", text)) for title, _, text in (part.partition("\n") for part in parts)}
    metrics = {f"ctx_hooks_{m.name}{'_total' * (m.kind == 'counter')}" for of_event in METRICS.values() for m in of_event}
    assert {name for name in listed["Metrics"] if name.startswith("ctx_hooks_")} == metrics
    assert listed["`call`"] >= {field.name for field in fields(CallNames)}
    for kind in EVENTS.values():
        title = ", ".join(f"`{name}`" for name, event in EVENTS.items() if event is kind)
        assert {field.name for field in fields(kind)} - {"name"} <= listed[title], title
