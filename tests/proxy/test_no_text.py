"""A conversation leaves figures and names wherever the plugin writes, and none of its text.

What LiteLLM itself logs and traces of it is LiteLLM's: its lines have another component, its attributes another prefix.
"""

import itertools
import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from configurations import WINDOW, configuration, deployment, importable
from prometheus_client.parser import text_string_to_metric_families
from proxies import Proxy
from routes import CHAT, GEMINI, MESSAGES, RESPONSES, ROUTES

from ctx_hooks.testing import LOOPBACK, FakeProvider, ProviderSettings, Reply, agent_session
from ctx_hooks.testing.behaviour import WORDINGS, Wording
from ctx_hooks.testing.conversations import TOOL

pytest.importorskip("opentelemetry.sdk.trace", reason="the OpenTelemetry SDK is not installed")

MARK = "zqxj"
"""Stands in no word, name or identifier; every text has it with a number of its own."""
FAULT, SLOW = f"{MARK}-fault", f"{MARK}-slow"
"""Where a conversation holds one, a step fails and quotes the conversation, or its compression takes too long."""
TEXTS = frozenset({"content", "text", "output", "description", "path", "instructions", "system"})
PLUGIN = f"""
import json, logging, os
from litellm import _logging
_logging.numeric_level = logging.INFO  # as the environment sets it: LITELLM_LOG=INFO, JSON_LOGS=true
_logging.verbose_proxy_logger.setLevel(logging.INFO)
_logging._turn_on_json()
import ctx_hooks
import ctx_hooks.compaction.pipeline
from ctx_hooks.compaction.steps import Step
from ctx_hooks.runtime.deadline import CompressionTimeoutError
from litellm.integrations.custom_logger import CustomLogger
from litellm.integrations.opentelemetry import OpenTelemetry, OpenTelemetryConfig
from opentelemetry.sdk.trace.export import ConsoleSpanExporter

def fail(conversation, budget):
    if {SLOW!r} in repr(conversation):
        raise CompressionTimeoutError
    if {FAULT!r} in repr(conversation):
        raise RuntimeError(repr(conversation))
    return conversation

ctx_hooks.compaction.pipeline.STEPS = (Step("fault", "for this test", fail), *ctx_hooks.compaction.pipeline.STEPS)
handler = ctx_hooks.proxy_handler_instance

def listen(event):
    raise ValueError("a listener that fails")

ctx_hooks.on("overflow", listen)

def written(name):
    return open(os.path.join(os.environ["MARKED_FOLDER"], name), "a", encoding="utf-8", buffering=1)

def line(span):
    return span.to_json(indent=None) + os.linesep

class Spend(CustomLogger):
    file = written("spend")

    async def async_log_success_event(self, kwargs, response_obj, start_time, end_time):
        logged = kwargs["standard_logging_object"]
        figures = {{name: logged[name] for name in ("status", "metadata", "request_tags")}}
        self.file.write(json.dumps(figures, default=str) + "\\n")

    async_log_failure_event = async_log_success_event

spend = Spend()
otel = OpenTelemetry(config=OpenTelemetryConfig(exporter=ConsoleSpanExporter(out=written("spans"), formatter=line)))
"""
"""A step that fails, a listener that fails while the provider's error is being handled, and files of LiteLLM's spans and
of what its loggers are given."""
CALLBACKS = ["marked_plugin.handler", "prometheus", "marked_plugin.otel", "marked_plugin.spend"]
KINDS = {"chat": "openai", "claude": "anthropic", "gemini": "gemini"}
"""The provider behind a group's name, as the routes call them."""
KNOWN = {"max_input_tokens": WINDOW}
ENDS = {
    "fitting": ("large", {}), "compressed": ("large", KNOWN), "hopeless": ("tiny", {}), "hasty": ("large", KNOWN),
    "observed": ("large", {**KNOWN, "ctx_hooks": {"mode": "observe"}}), "rescued": ("served", {}),
    "rescued-in-stream": ("served", {}), "counted": ("large", {"ctx_hooks": {"max_turns": 1_000}}),
}  # fmt: skip
"""Each end that a request can have: the provider's model, and what the proxy knows of it."""
QUOTING = Wording(f"prompt is too long: {{input}} tokens > {{limit}} maximum. It was: {MARK}-quoted")
OURS = ("ctx_hooks", "gen_ai.request.m")
"""What the attributes of spans begin with that the plugin sets: its own, and model and output as conventions name them."""


def nested(text):
    """Return a message's content that is nested too deeply to be read."""
    value = text
    for _ in range(200):
        value = [value]
    return [{"type": "text", "text": text, "extra": value}]


ODD = ({"role": "user", "content": nested(f"{MARK}-nested")}, f"{MARK}-string", {MARK: MARK})
"""Messages that are none, or cannot be read."""


def marked_session(route, end, **fields):
    """Return a session of 5,000 tokens for an end's group: every text, name, argument and result has a mark."""
    numbers, mark = itertools.count(), SLOW if end == "hasty" else MARK

    def marked(value, name=""):
        if isinstance(value, dict):
            return {k: marked(v, k) for k, v in value.items()}
        if isinstance(value, list):
            return [marked(v, name) for v in value]
        if name == "arguments":
            return json.dumps(marked(json.loads(value)))
        if name in TEXTS and isinstance(value, str):
            return f"{mark}-{next(numbers)} {value}"
        return f"{TOOL}_{MARK}" if value == TOOL else value

    session = agent_session(route.fmt, turns=6, result_chars=2_500, model=f"{end}-{route.group}", question="And now?")
    return marked(session) | fields


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
    settings = ProviderSettings(window_tokens=WINDOW, windows={"tiny": 60, "large": 1_000_000})
    with pytest.MonkeyPatch.context() as patch, FakeProvider(settings, lambda *_: Reply(f"{MARK}-answer")) as provider:
        patch.setitem(WORDINGS, "quoting", QUOTING)
        provider.configure(wording="quoting")
        config = configuration(
            provider.url,
            *(
                deployment(provider.url, f"{end}-{to}", f"{kind}/{model}", **info)
                for end, (model, info) in ENDS.items()
                for to, kind in KINDS.items()
            ),
            litellm_settings={"callbacks": CALLBACKS},
            callback_settings={"ctx_hooks": {"events": {"path": str(folder)}}},
        )
        with Proxy(config, importable(folder, "marked_plugin", PLUGIN) | {"MARKED_FOLDER": str(folder)}) as proxy:
            yield all_answered(proxy, provider, folder)


def all_answered(proxy, provider, folder):
    four = (CHAT, MESSAGES, RESPONSES, GEMINI)
    ends = [(route, end, (n + m) % 2 == 1) for n, route in enumerate(four) for m, end in enumerate(list(ENDS)[:5])]
    ends += [(route, end, end != "rescued") for route in ROUTES for end in ("rescued", "rescued-in-stream")]
    answers = [route.post(proxy, marked_session(route, end, stream=stream)) for route, end, stream in ends]
    faulty = marked_session(CHAT, "compressed")
    faulty["messages"][1]["content"] += FAULT
    answers.append(CHAT.post(proxy, faulty))
    kept = provider.requests()[-1]["payload"]["messages"]
    assert [m["content"] for m in kept if m in faulty["messages"]], "a fault of ours ends in the last resort"
    talk = marked_session(CHAT, "counted")
    unread = [CHAT.post(proxy, {**talk, "messages": [*talk["messages"], odd]}) for odd in ODD]
    for file, line, told in (
        ("events.1.jsonl", '"name":"answer"', answers),  # nothing is known of what cannot be read
        ("spend", '"status": "success"', [*answers, *unread]),
    ):
        given = sum(answer.status_code == httpx.codes.OK for answer in told)
        proxy.wait_until(lambda f=folder / file, line=line, n=given: f.read_text().count(line) >= n, f"{given} of {line}")
    metrics = LOOPBACK.get(f"{proxy.url}/metrics/", headers=proxy.headers).text
    return Written(folder, proxy.log(), metrics, json.dumps(provider.requests()), [*answers, *unread])


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
    attributes = [{k: v for k, v in span["attributes"].items() if k.startswith(OURS)} for span in spans]
    events = [event for span in spans for event in span["events"] if event["name"].startswith("ctx_hooks.")]
    assert {event["name"] for event in events} == {"ctx_hooks.decision", "ctx_hooks.overflow"}
    assert {"compressed", "retried"} <= {found.get("ctx_hooks.decision") for found in attributes}
    assert [told for told in (*attributes, *events) if MARK in json.dumps(told)] == []


def test_logged_metadata_has_no_text(written):
    spend = written.lines("spend")
    figures = [logged["metadata"]["spend_logs_metadata"] or {} for logged in spend]
    assert {"compressed", "retried"} <= {f["ctx_hooks"].get("decision") for f in figures if "ctx_hooks" in f}
    assert [logged for logged in spend if MARK in json.dumps(logged)] == []
