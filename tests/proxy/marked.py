"""A proxy with every sink on, and conversations whose every text carries a mark."""

import itertools
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from configurations import WINDOW, configuration, deployment, importable
from proxies import Proxy
from routes import Route

from ctx_hooks.testing import FakeProvider, ProviderSettings, agent_session
from ctx_hooks.testing.behaviour import Reply
from ctx_hooks.testing.conversations import TOOL
from ctx_hooks.testing.rules import Format

MARK = "zqxj"
"""Stands in no word, name or identifier; every text has it with a number of its own."""
TEXTS = frozenset({"content", "text", "output", "description", "path", "instructions", "system"})
KINDS = {"chat": "openai", "claude": "anthropic", "gemini": "gemini"}
"""The provider behind a group's name, as the routes call them."""
FAULT = "zqxj-fault"
"""Where a conversation holds it, a step fails and quotes the conversation."""
SLOW = "zqxj-slow"
"""Where a conversation holds it, its compression takes too long."""
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


@contextmanager
def recorded(folder: Path) -> Iterator[tuple[Proxy, FakeProvider]]:
    """Serve a group for each end that a request can have; events, spans and spend are written to the folder."""
    environment = importable(folder, "marked_plugin", PLUGIN)
    environment |= {"MARKED_FOLDER": str(folder)}
    windows = {"tiny": 60, "large": 1_000_000}
    settings = ProviderSettings(window_tokens=WINDOW, windows=windows, wording="quoting")
    with FakeProvider(settings, lambda *_: Reply(f"{MARK}-answer")) as provider:

        def group(name: str, model: str, **info: Any) -> list[dict[str, Any]]:
            return [deployment(provider.url, f"{name}-{to}", f"{kind}/{model}", **info) for to, kind in KINDS.items()]

        models = [
            *group("fitting", "large"),
            *group("compressed", "large", max_input_tokens=WINDOW),
            *group("observed", "large", max_input_tokens=WINDOW, ctx_hooks={"mode": "observe"}),
            *group("rescued", "served"),
            *group("rescued-in-stream", "served"),
            *group("hopeless", "tiny"),
            *group("hasty", "large", max_input_tokens=WINDOW),
            *group("counted", "large", ctx_hooks={"max_turns": 1_000}),
        ]
        config = configuration(
            provider.url,
            *models,
            litellm_settings={
                "callbacks": ["marked_plugin.handler", "prometheus", "marked_plugin.otel", "marked_plugin.spend"]
            },
            callback_settings={"ctx_hooks": {"events": {"path": str(folder)}}},
        )
        with Proxy(config, environment) as proxy:
            yield proxy, provider


def marked_session(route: Route, end: str, question: str = "And now?") -> dict[str, Any]:
    """Return a session of 5,000 tokens for an end's group: every text, name, argument, result and picture has a mark."""
    numbers = itertools.count()
    payload = agent_session(route.fmt, turns=6, result_chars=2_500, model=f"{end}-{route.group}", question=question)
    payload = _marked(payload, numbers, SLOW if end == "hasty" else MARK)
    _last_text(route.fmt, payload).append(_picture(route.fmt, f"{MARK}{next(numbers):03d}A"))
    return payload


def _marked(value: Any, numbers: Iterator[int], mark: str, name: str = "") -> Any:
    if isinstance(value, Mapping):
        return {k: _marked(v, numbers, mark, k) for k, v in value.items()}
    if isinstance(value, list):
        return [_marked(v, numbers, mark, name) for v in value]
    if name == "arguments":
        return json.dumps(_marked(json.loads(value), numbers, mark))
    if name in TEXTS and isinstance(value, str):
        return f"{mark}-{next(numbers)} {value}"
    return f"{TOOL}_{MARK}" if value == TOOL else value


def _last_text(fmt: Format, payload: dict[str, Any]) -> list[Any]:
    """Return the parts of the user's last message, to which a picture can be added."""
    if fmt == "gemini":
        return payload["contents"][-1]["parts"]  # type: ignore[no-any-return]
    last = payload["input" if fmt == "openai-responses" else "messages"][-1]
    last["content"] = [{"type": "input_text" if fmt == "openai-responses" else "text", "text": last["content"]}]
    return last["content"]  # type: ignore[no-any-return]


PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYAAAAAYAAjCB0C8AAAAASUVORK5CYII="


def _picture(fmt: Format, mark: str) -> dict[str, Any]:
    """Return a picture with a mark of eight characters behind its last byte."""
    data = PIXEL.rstrip("=") + "A" + mark
    if fmt == "anthropic":
        return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}
    if fmt == "gemini":
        return {"inlineData": {"mimeType": "image/png", "data": data}}
    url = f"data:image/png;base64,{data}"
    if fmt == "openai-responses":
        return {"type": "input_image", "image_url": url}
    return {"type": "image_url", "image_url": {"url": url}}


def nested(text: str) -> Any:
    """Return a message's content that is nested too deeply to be read."""
    value: Any = text
    for _ in range(200):
        value = [value]
    return [{"type": "text", "text": text, "extra": value}]
