"""A conversation leaves figures and names wherever the plugin writes, and none of its text.

What LiteLLM itself logs and traces of it is LiteLLM's: its lines have another component, its attributes another prefix.
"""

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from marked import FAULT, MARK, marked_session, nested, recorded
from prometheus_client.parser import text_string_to_metric_families
from routes import CHAT, GEMINI, MESSAGES, RESPONSES, ROUTES

from ctx_hooks.testing import LOOPBACK
from ctx_hooks.testing.behaviour import WORDINGS, Wording

pytest.importorskip("opentelemetry.sdk.trace", reason="the OpenTelemetry SDK is not installed")

FOUR = (CHAT, MESSAGES, RESPONSES, GEMINI)
ENDS = ("fitting", "compressed", "observed", "hopeless", "hasty")
ODD = ({"role": "user", "content": nested(f"{MARK}-nested")}, f"{MARK}-string", {MARK: MARK})
"""Messages that are none, or cannot be read."""
QUOTING = Wording(f"prompt is too long: {{input}} tokens > {{limit}} maximum. It was: {MARK}-quoted")
OURS = ("ctx_hooks", "gen_ai.request.m")
"""What the attributes of spans begin with that the plugin sets: its own, and model and output as conventions name them."""


@dataclass(frozen=True)
class Written:
    """What was written of all conversations, and how they were answered."""

    folder: Path
    log: str
    metrics: str
    sent: str
    answers: list[httpx.Response]

    def lines(self, name: str) -> list[Any]:
        return [json.loads(line) for line in (self.folder / name).read_text().splitlines()]


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("marked")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(WORDINGS, "quoting", QUOTING)
        with recorded(folder) as (proxy, provider):
            ends = [(route, end, (n + m) % 2 == 1) for n, route in enumerate(FOUR) for m, end in enumerate(ENDS)]
            ends += [(route, end, end != "rescued") for route in ROUTES for end in ("rescued", "rescued-in-stream")]
            sessions = [route.post(proxy, {**marked_session(route, end), "stream": stream}) for route, end, stream in ends]
            faulty = marked_session(CHAT, "compressed")
            faulty["messages"][1]["content"] += FAULT
            sessions.append(CHAT.post(proxy, faulty))
            sent = provider.requests()[-1]["payload"]["messages"]
            assert [m["content"] for m in sent if m in faulty["messages"]], "a fault of ours ends in the last resort"
            unread = []
            for odd in ODD:
                payload = marked_session(CHAT, "counted")
                unread.append(CHAT.post(proxy, {**payload, "messages": [*payload["messages"], odd]}))
            events, spend = folder / "events.1.jsonl", folder / "spend"
            # What cannot be read is answered, but nothing is known that its answer could say more of.
            told = _answered(sessions)
            proxy.wait_until(lambda: events.read_text().count('"name":"answer"') >= told, "the answers' events")
            given = _answered([*sessions, *unread])
            proxy.wait_until(lambda: spend.read_text().count('"status": "success"') == given, "the answers' spend")
            metrics = LOOPBACK.get(f"{proxy.url}/metrics/", headers=proxy.headers).text
            yield Written(folder, proxy.log(), metrics, json.dumps(provider.requests()), [*sessions, *unread])


def _answered(answers: list[httpx.Response]) -> int:
    return sum(answer.status_code == httpx.codes.OK for answer in answers)


def test_marked_texts_met_every_kind_of_decision(written):
    decisions = [event for event in written.lines("events.1.jsonl") if event["name"] == "decision"]
    assert {d["decision"] for d in decisions} == {"fits", "compressed", "retried", "failed"}
    assert {d["trigger"] for d in decisions} == {"none", "budget", "overflow", "timeout"}
    assert {d["mode"] for d in decisions} == {"enforce", "observe"}
    assert {d["format"] for d in decisions} == {"openai-chat", "anthropic", "openai-responses", "gemini"}
    assert "failed: RuntimeError" in {d["reason"] for d in decisions}
    assert any("must be a mapping" in d["reason"] for d in decisions)
    assert all(f"{MARK}-{part}" in written.sent for part in ("0", "nested", "quoted", "fault"))


def test_log_has_no_text(written):
    lines = [json.loads(line) for line in written.log.splitlines() if line.startswith("{")]
    ours = [line for line in lines if line["component"] == "ctx_hooks"]
    told = "\n".join(line["message"] for line in ours)
    events = ("event=decision", "event=answer")
    for what in (*events, "too long to compress", "failed and drops the oldest turns", "a listener to overflow failed"):
        assert what in told
    assert {line["stacktrace"].splitlines()[-1] for line in ours if "stacktrace" in line} == {"RuntimeError", "ValueError"}
    assert [line for line in ours if MARK in json.dumps(line)] == []


def test_metrics_have_no_text_and_count_events_once(written):
    counted, happened = Counter(), Counter()
    for sample in (s for family in text_string_to_metric_families(written.metrics) for s in family.samples):
        assert MARK not in str(sample) or not sample.name.startswith("ctx_hooks")
        counted[sample.name, sample.labels.get("decision", "")] += sample.value
    for event in written.lines("events.1.jsonl"):
        if event["name"] in ("answer", "failure"):
            happened["ctx_hooks_requests_total", event["decision"]] += 1
            happened["ctx_hooks_saved_provider_tokens_total", ""] += max(event.get("provider_tokens_saved") or 0, 0)
    assert len(happened) == 5
    assert {key: counted[key] for key in happened} == happened


def test_headers_have_no_text(written):
    ours = [(k, v) for answer in written.answers for k, v in answer.headers.items() if k.startswith("x-ctx-hooks")]
    assert {v for k, v in ours if k == "x-ctx-hooks-decision"} >= {"fits", "compressed", "retried", "failed"}
    assert [header for header in ours if MARK in str(header)] == []


def test_private_event_file_has_no_text(written):
    files = [*written.folder.glob("events.*"), *written.folder.glob(".events.*")]
    assert {file.stat().st_mode & 0o777 for file in files} == {0o600}
    assert [event for event in written.lines("events.1.jsonl") if MARK in json.dumps(event)] == []


def test_spans_have_no_text(written):
    spans = written.lines("spans")
    told = [(span["attributes"], *(e for e in span["events"] if e["name"].startswith("ctx_hooks."))) for span in spans]
    ours = [({k: v for k, v in attributes.items() if k.startswith(OURS)}, *events) for attributes, *events in told]
    assert {event["name"] for _, *events in ours for event in events} == {"ctx_hooks.decision", "ctx_hooks.overflow"}
    assert {"compressed", "retried"} <= {attributes.get("ctx_hooks.decision") for attributes, *_ in ours}
    assert [attributes for attributes, *_ in ours if MARK in json.dumps(attributes)] == []
    assert [events for _, *events in ours if MARK in json.dumps(events)] == []


def test_logged_metadata_has_no_text(written):
    spend = written.lines("spend")
    figures = [logged["metadata"]["spend_logs_metadata"] or {} for logged in spend]
    assert {"compressed", "retried"} <= {f["ctx_hooks"].get("decision") for f in figures if "ctx_hooks" in f}
    assert [logged for logged in spend if MARK in json.dumps(logged)] == []
