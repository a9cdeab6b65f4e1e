"""Sinks that fail cost no request, no compression and no more than one warning each."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest
from configurations import WINDOW, configuration, deployment, importable
from proxies import Proxy
from routes import CHAT, MESSAGES_TO_OPENAI, SIZE

from ctx_hooks.testing import agent_session

pytest.importorskip("opentelemetry.sdk.trace", reason="the OpenTelemetry SDK is not installed")

PLUGIN = """
from prometheus_client import Counter
taken = Counter("ctx_hooks_requests", "A metric of somebody else by the name of the plugin's")

from opentelemetry.sdk.trace import Span
from opentelemetry.sdk.trace.export import SpanExporter
from litellm.integrations.opentelemetry import OpenTelemetry, OpenTelemetryConfig

class Down(SpanExporter):
    def export(self, spans):
        raise ConnectionError("the collector is down")

add_event = Span.add_event

def refuse(self, name, *arguments, **named):
    if name.startswith("ctx_hooks."):
        raise RuntimeError("no more events")
    return add_event(self, name, *arguments, **named)

Span.add_event = refuse
otel = OpenTelemetry(config=OpenTelemetryConfig(exporter=Down()))

import ctx_hooks
handler = ctx_hooks.proxy_handler_instance

def fail(event):
    raise ValueError("a listener that fails")

ctx_hooks.on("decision", fail)
"""
REQUESTS = 4
ONCE = (
    "ctx_hooks failed and records nothing for Prometheus",
    "the event file sink failed and is switched off",
    "the OpenTelemetry sink failed and is switched off",
)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_every_request_is_answered_and_fitted_and_each_sink_is_warned_of_once(provider, tmp_path):
    environment = importable(tmp_path, "failing_plugin", PLUGIN)
    (tmp_path / "events.1.jsonl").symlink_to("/dev/full")
    config = configuration(
        provider.url,
        deployment(provider.url, "fitted", "openai/large", max_input_tokens=WINDOW),
        litellm_settings={"callbacks": ["failing_plugin.handler", "failing_plugin.otel"]},
        callback_settings={"ctx_hooks": {"events": {"path": str(tmp_path)}}},
    )
    with Proxy(config, environment) as proxy:
        for stream in (False, True):
            for route in (CHAT, MESSAGES_TO_OPENAI):
                answer = route.post(proxy, {**agent_session(route.fmt, **SIZE, model="fitted"), "stream": stream})
                assert answer.status_code == httpx.codes.OK, answer.text
                assert answer.headers["x-ctx-hooks-decision"] == "compressed"
        assert [r["status"] for r in provider.requests()] == [httpx.codes.OK] * REQUESTS
        told = proxy.log().splitlines()
    assert {text: told.count(text) for text in ONCE} == dict.fromkeys(ONCE, 1)
    assert told.count("a listener to decision failed") == REQUESTS
