"""Every alert fires on a bad day and none on a quiet one, and every query of the runbook gives what the page says.

Series, alerts and queries of both days go through `promtool test rules`; names and labels are those that events declare.
"""

import json
import re
import shutil
import subprocess

import pytest
import yaml
from documentation import ROOT, blocks

from ctx_hooks.telemetry.prometheus import METRICS

PROMTOOL = shutil.which("promtool")
RULES = ROOT / "docs" / "deploy" / "alerts.yml"
ALERTS = {
    rule["alert"]: rule
    for group in yaml.safe_load(RULES.read_text())["groups"]
    for rule in group["rules"]
    if "alert" in rule
}
PAGE = "docs/operations.md"
TEXT = (ROOT / PAGE).read_text(encoding="utf-8")
QUERIES = [block.text for block in blocks("promql")]
SHOWN = [block.text for block in blocks("text") if block.page == PAGE]
OTHERS = {"process_resident_memory_bytes", "up"}
"""Metrics of Prometheus and its client."""

LOCAL = 'requested_model="local",team_alias="red",mode="enforce"'
CLAUDE = 'requested_model="claude",team_alias="blue",mode="enforce"'
RATES = {
    f'requests_total{{{LOCAL},decision="fits"}}': (96, 68), f'requests_total{{{LOCAL},decision="compressed"}}': (4, 10),
    f'requests_total{{{LOCAL},decision="failed"}}': (0, 2), f'requests_total{{{CLAUDE},decision="fits"}}': (99, 99),
    f'requests_total{{{CLAUDE},decision="retried"}}': (1, 1), f"overflows_total{{{LOCAL}}}": (1, 16),
    f"overflows_total{{{CLAUDE}}}": (1, 1), f"cached_prompt_tokens_total{{{LOCAL}}}": (500, 250),
    f"uncached_prompt_tokens_total{{{LOCAL}}}": (500, 750), f"cached_prompt_tokens_total{{{CLAUDE}}}": (800, 800),
    f"uncached_prompt_tokens_total{{{CLAUDE}}}": (200, 200), f"compression_timeouts_total{{{LOCAL}}}": (0, 1),
    f"rereads_total{{{LOCAL}}}": (4, 16),
    'phase_seconds_bucket{phase="total",le="1.0"}': (100, 0),
    **{f'phase_seconds_bucket{{phase="total",le="{le}"}}': (100, 100) for le in ("3.0", "+Inf")},
    **{f'phase_seconds_bucket{{phase="known",le="{le}"}}': (100, 100) for le in ("0.001", "+Inf")},
    'phase_seconds_bucket{phase="compressing",le="1.0"}': (100, 0),
    **{f'phase_seconds_bucket{{phase="compressing",le="{le}"}}': (100, 100) for le in ("3.0", "+Inf")},
    'fail_open_total{consequence="forwards the request unchanged"}': (0, 1),
    'fail_open_total{consequence="goes on without Redis"}': (0, 10),
}  # fmt: skip
"""What counters grow by in five minutes: on the day before, and in two bad hours."""
VALUES = {
    'ctx_hooks_window_tokens{deployment="id-local"}': ("32000x288", "8000x24"),
    'process_resident_memory_bytes{job="litellm",instance="litellm:4000"}': ("1e9x288", "1.8e9x24"),
    'up{job="litellm",instance="litellm:4000"}': ("1x288", "1x24"),
    'up{job="litellm",instance="bare:4000"}': ("_x288", "1x24"),
    'ctx_hooks_build_info{version="0.1.0",instance="litellm:4000"}': ("1x288", "1x24"),
    **{f'ctx_hooks_build_info{{version="0.2.0",instance="new-{n}"}}': ("_x288", "1x24") for n in range(3)},
    # The first of its kind: Prometheus has seen no zero before it.
    'ctx_hooks_sinks_disabled_total{sink="event file"}': ("_x288", "1x24"),
    'ctx_hooks_ignored_settings_total{scope="team"}': ("_x288", "_x20 3x3"),
    'ctx_hooks_fail_open_total{consequence="archives nothing of a request"}': ("_x288", "_x22 1x1"),
}  # fmt: skip
FIRED = {
    "CtxHooksOverflowsRise": [{"requested_model": "local"}], "CtxHooksRequestsFail": [{"requested_model": "local"}],
    "CtxHooksCompressionRises": [{"requested_model": "local"}], "CtxHooksCacheShareFalls": [{"requested_model": "local"}],
    "CtxHooksRereadsRise": [{"requested_model": "local"}],
    "CtxHooksDecisionsSlow": [{}], "CtxHooksCompressionTimesOut": [{"requested_model": "local"}],
    "CtxHooksMemoryRises": [{"job": "litellm", "instance": "litellm:4000"}],
    "CtxHooksFailsOpen": [{"consequence": c} for c in ("forwards the request unchanged", "archives nothing of a request")],
    "CtxHooksSinkOff": [{"sink": "event file"}],
    "CtxHooksSettingsIgnored": [{"scope": "team"}], "CtxHooksWindowShrinks": [{"deployment": "id-local"}],
    "CtxHooksRedisFails": [{}], "CtxHooksWorkersDiffer": [{}],
    "CtxHooksNotLoaded": [{"job": "litellm", "instance": "bare:4000"}],
}  # fmt: skip
END = "26h"
STEP = 2**-20
"""To which figures are rounded, without an error of its own."""


def series(*, is_bad):
    """Return the series of a day and two hours, which are bad or like the day, a sample every five minutes."""
    found = {}
    for name, (before, after) in RATES.items():
        rate = after if is_bad else before
        found[f"ctx_hooks_{name}"] = f"0+{before}x288 {before * 288 + rate}+{rate}x23"
    for name, (before, after) in VALUES.items():
        found[name] = f"{before} {after if is_bad else before.replace('288', '24')}"
    return [{"series": name, "values": values} for name, values in found.items()]


def queries():
    """Yield each query of the page with the samples that stand below it: labels and value."""
    for query, lines in zip(QUERIES, SHOWN, strict=True):
        samples = [line.rpartition(" ") for line in lines.splitlines()]
        expected = [{"labels": labels, "value": round(float(value) / STEP) * STEP} for labels, _, value in samples]
        yield {"expr": f"round({query}, {STEP})", "eval_time": END, "exp_samples": expected}


def run_promtool(tmp_path, days):
    """Run the alerts and queries of days through promtool."""
    written = {"rule_files": [str(RULES)], "evaluation_interval": "5m", "tests": days}
    (tmp_path / "days.json").write_text(json.dumps(written))
    done = subprocess.run([PROMTOOL, "test", "rules", tmp_path / "days.json"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


needs_promtool = pytest.mark.skipif(PROMTOOL is None, reason="no promtool on this machine")


@needs_promtool
def test_every_alert_fires_on_a_bad_day_alone_and_every_query_shows_what_its_page_says(tmp_path):
    days = [
        {"interval": "5m", "input_series": series(is_bad=bad), "alert_rule_test": list(expected(FIRED if bad else {}))}
        for bad in (False, True)
    ]
    days[1]["promql_expr_test"] = list(queries())
    run_promtool(tmp_path, days)


NEEDS_A_DAY = {"CtxHooksCacheShareFalls", "CtxHooksWindowShrinks"}
"""They compare with the day before, and say nothing without one."""


def expected(fired):
    """Return what promtool expects: for each alert the labels with which it fires, none if it is not named."""
    for name, rule in ALERTS.items():
        labels = [{**rule["labels"], **own} for own in fired.get(name, ())]
        yield {
            "eval_time": END,
            "alertname": name,
            "exp_alerts": [{"exp_labels": each, "exp_annotations": rule["annotations"]} for each in labels],
        }


@needs_promtool
def test_alerts_fire_if_the_day_before_had_no_series(tmp_path):
    bad = [{"series": f"ctx_hooks_{name}", "values": f"_x288 {rate}+{rate}x24"} for name, (_, rate) in RATES.items() if rate]
    bad += [{"series": name, "values": f"_x288 {after}"} for name, (_, after) in VALUES.items()]
    fired = {name: labels for name, labels in FIRED.items() if name not in NEEDS_A_DAY}
    run_promtool(tmp_path, [{"interval": "5m", "input_series": bad, "alert_rule_test": list(expected(fired))}])


def growing(name, labels, *, before=0, after=0):
    """Return a counter of the model `local` that grows by these figures in five minutes of a day and of two hours."""
    values = f"0+{before}x288 {before * 288 + after}+{after}x23" if before else f"_x288 {after}+{after}x24"
    return {"series": f'ctx_hooks_{name}{{requested_model="local",{labels}}}', "values": values}


@needs_promtool
@pytest.mark.parametrize(
    ("cached", "rereads", "fired"),
    [(500, 10, ("CtxHooksCacheShareFalls", "CtxHooksRereadsRise")), (890, 3, ())],
    ids=["worse than observed", "like the observed"],
)
@pytest.mark.parametrize("are_others_observed", [True, False])
def test_enforced_requests_of_a_first_day_are_compared_with_observed_ones(
    cached, rereads, fired, are_others_observed, tmp_path
):
    """A pilot beside a hundred times as many observed requests, or everybody after an observed day."""
    after = 1 if are_others_observed else 0
    observed = {
        "requests_total": 5000,
        "cached_prompt_tokens_total": 90_000,
        "uncached_prompt_tokens_total": 10_000,
        "rereads_total": 200,
    }
    enforced = {"requests_total": 50, "cached_prompt_tokens_total": cached, "uncached_prompt_tokens_total": 1000 - cached}
    grown = [growing(name, 'mode="observe"', before=rate, after=rate * after) for name, rate in observed.items()]
    grown += [growing(name, 'mode="enforce"', after=rate) for name, rate in enforced.items()]
    grown.append(growing("rereads_total", 'mode="enforce"', after=rereads))
    alerts = list(expected({name: [{"requested_model": "local"}] for name in fired}))
    asked = [alert for alert in alerts if alert["alertname"] in ("CtxHooksCacheShareFalls", "CtxHooksRereadsRise")]
    run_promtool(tmp_path, [{"interval": "5m", "input_series": grown, "alert_rule_test": asked}])


@needs_promtool
@pytest.mark.parametrize("missing", [12])
def test_no_alert_fires_after_a_gap_in_the_scrapes(missing, tmp_path):
    """Counters that had counted before the gap, and count nothing after it."""
    quiet = []
    for name, (before, after) in RATES.items():
        total = (before or after) * 288
        quiet.append({"series": f"ctx_hooks_{name}", "values": f"{total}x{309 - missing} _x{missing} {total}x1"})
    for name, (before, after) in VALUES.items():
        value = after.split()[-1].partition("x")[0] if "_total" in name else before.partition("x")[0]
        if value != "_" and "sinks_disabled" not in name:
            quiet.append({"series": name, "values": f"{value}x{309 - missing} _x{missing} {value}x1"})
    run_promtool(tmp_path, [{"interval": "5m", "input_series": quiet, "alert_rule_test": list(expected({}))}])


def test_each_alert_has_its_section_of_the_runbook_and_each_section_ends_in_a_query_or_a_command():
    sections = dict(part.split("\n", 1) for part in TEXT.split("\n## ")[1:])
    anchors = {f"{PAGE}#{title.lower().replace(' ', '-')}" for title in sections}
    assert {rule["annotations"]["runbook"] for rule in ALERTS.values()} <= anchors
    assert [title for title, text in sections.items() if not text.rstrip().endswith("```")] == []


def used():
    """Yield each metric of the plugin that series, rules, dashboard and runbook name, with the labels that they match on."""
    named = [each["series"] for each in series(is_bad=True)]
    texts = [RULES.read_text(), (ROOT / "docs" / "grafana.json").read_text().replace('\\"', '"'), *QUERIES, *named]
    for name, matched in re.findall(r"\b(ctx_hooks_\w+?)(?:_bucket|_sum|_count)?\b(\{[^}]*\})?", " ".join(texts)):
        yield name, set(re.findall(r'(\w+)[=!]~?"', matched))


def test_every_metric_and_label_that_is_asked_for_exists():
    of_prometheus = {"instance", "job", "le"}
    metrics = [metric for of_event in METRICS.values() for metric in of_event]
    named = {f"ctx_hooks_{m.name}{'_total' * (m.kind == 'counter')}": {*m.labels, *of_prometheus} for m in metrics}
    assert {
        name: labels - named.get(name, set())
        for name, labels in used()
        if labels - named.get(name, set()) or name not in named
    } == {}
