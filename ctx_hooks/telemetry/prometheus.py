"""The figures of events as Prometheus metrics, in the registry and the multiprocess mode of LiteLLM's own.

Labels that mean the same have LiteLLM's names and values, "None" for none among them: one query can join both.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from ctx_hooks.runtime.warnings import one_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from prometheus_client import CollectorRegistry

    from ctx_hooks.telemetry.archive_events import ArchiveEvent, RetrievalEvent
    from ctx_hooks.telemetry.call import CallNames
    from ctx_hooks.telemetry.events import (
        AnswerEvent,
        DecisionEvent,
        FailureEvent,
        LimitEvent,
        OverflowEvent,
        SummaryEvent,
        TruncationEvent,
    )
    from ctx_hooks.telemetry.listeners import EventName, Listener

CALLER = ("requested_model", "team", "team_alias", "api_key_alias")
MOST_CALLERS = MOST_DEPLOYMENTS = 1_000
"""So many have label sets of their own in each process, of which a metric keeps 0.7 KB each. Further ones are "other" in
all metrics: the figures of a caller with a name are whole, and sums over all stay right."""
MOST_MODELS = 100
"""Model groups with histograms of their own, each of fifteen series."""
LONGEST_NAME_CHARS = 100
"""Behind a wildcard the caller names the model, at any length."""
OTHER = "other"
TOKEN_BUCKETS = tuple(2**n for n in range(10, 22))
"""From 1,024 to 2,097,152 provider tokens: windows are powers of two, or near one."""
SECOND_BUCKETS = (0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
"""From a small request, decided in 0.1 ms, to `compression_timeout_seconds`."""


class Names:
    """The label sets that names have: those of the first `most`, and "other" for all further ones.

    >>> names = Names(1)
    >>> names.labels_of("gpt", ""), names.labels_of("o3", "")
    (('gpt', 'None'), ('other', 'other'))
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._labels: dict[tuple[str, ...], tuple[str, ...]] = {}

    def labels_of(self, *names: str) -> tuple[str, ...]:
        """Return the values of the labels for these names; a name is one printable line of at most 100 characters."""
        key = tuple(name[: LONGEST_NAME_CHARS + 1] for name in names)
        known = self._labels.get(key)
        if known is None:
            if len(self._labels) >= self._most:
                return (OTHER,) * len(names)
            known = self._labels[key] = tuple(one_line(name, LONGEST_NAME_CHARS) or str(None) for name in key)
        return known


class Metrics:
    """The metrics of one registry. A gauge has the newest value of any worker: it is what was learned last."""

    def __init__(self, registry: CollectorRegistry) -> None:
        from prometheus_client import Counter, Gauge, Histogram  # noqa: PLC0415 - optional

        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(f"ctx_hooks_{name}", text, labels, registry=registry)

        def gauge(name: str, text: str, *labels: str) -> Gauge:
            return Gauge(f"ctx_hooks_{name}", text, labels, registry=registry, multiprocess_mode="mostrecent")

        def histogram(name: str, text: str, buckets: tuple[float, ...], *labels: str) -> Histogram:
            return Histogram(f"ctx_hooks_{name}", text, labels, registry=registry, buckets=buckets)

        self._callers = Names(MOST_CALLERS)
        self._models = Names(MOST_MODELS)
        self._deployments = Names(MOST_DEPLOYMENTS)

        self._requests = counter("requests", "Requests by what they ended in, each once", "decision", "mode", *CALLER)
        self._attempts = counter("attempts", "Attempts that were sent", "decision", "trigger", "mode", *CALLER)
        self._overflows = counter("overflows", "Attempts that a provider refused as too long", "kind", "mode", *CALLER)
        self._beyond_window = counter("answers_beyond_window", "Answered requests that exceed the window", "mode", *CALLER)
        self._saved_tokens = counter("saved_provider_tokens", "Input tokens that bills were lowered by", "mode", *CALLER)
        self._spent_tokens = counter("spent_provider_tokens", "Input tokens that bills were raised by", "mode", *CALLER)
        self._saved_dollars = counter("saved_dollars", "Dollars that bills were lowered by", "mode", *CALLER)
        self._spent_dollars = counter(
            "spent_dollars", "Dollars that bills were raised by, as where a compaction rewrites the cache", "mode", *CALLER
        )
        self._truncations = counter(
            "silent_truncations", "Answers to requests that were too long and not refused", "deployment"
        )
        self._limits = counter("limits_learned", "Limits that deployments have shown to a tenant", "kind", "deployment")

        self._summaries = counter("summaries", "Summaries that a model was asked for", "outcome", *CALLER)
        self._summary_dollars = counter("summary_dollars", "Dollars that summaries have cost", *CALLER)
        self._retrievals = counter("retrievals", "Calls of the retrieval tool that were answered", "source", *CALLER)
        self._archive_texts = counter("archive_texts", "Texts that came to the archive", "outcome", "backend")

        by_model = "mode", "requested_model"
        self._request_saved_tokens = histogram(
            "request_saved_provider_tokens", "Input tokens that a bill was lowered by", TOKEN_BUCKETS, *by_model
        )
        self._request_sent_tokens = histogram(
            "request_sent_provider_tokens", "Input tokens of a bill", TOKEN_BUCKETS, *by_model
        )
        self._phase_seconds = histogram("phase_seconds", "Time of a phase of a decision", SECOND_BUCKETS, "phase")

        self._limit_tokens = gauge(
            "learned_limit_tokens", "The limit that was learned last, in provider tokens", "kind", "deployment"
        )
        self._window_tokens = gauge("window_tokens", "The window that was fitted to last, in provider tokens", "deployment")
        self._factor = gauge("provider_tokens_per_local_token", "The factor that was used last", "deployment")

    @property
    def listeners(self) -> Mapping[EventName, Listener]:
        """What is done with each event."""
        return {
            "decision": self._decided,
            "overflow": self._refused,
            "answer": self._answered,
            "failure": self._ended,
            "silent_truncation": self._truncated,
            "limit_learned": self._learned,
            "after_summary": self._summarised,
            "retrieval": self._retrieved,
            "archive": self._archived,
        }

    def _decided(self, event: DecisionEvent) -> None:
        caller = self._caller_of(event.call)
        if event.decision != "failed":
            self._attempts.labels(event.decision, event.trigger, event.mode, *caller).inc()
        for phase, milliseconds in event.milliseconds.items():
            self._phase_seconds.labels(phase).observe(milliseconds / 1e3)
        if event.local_tokens_before is not None:
            deployment = self._deployments.labels_of(event.call.deployment)
            self._window_tokens.labels(*deployment).set(event.window_tokens)
            self._factor.labels(*deployment).set(event.factor)

    def _refused(self, event: OverflowEvent) -> None:
        self._overflows.labels(event.kind, event.mode, *self._caller_of(event.call)).inc()

    def _ended(self, event: AnswerEvent | FailureEvent) -> None:
        self._requests.labels(event.decision, event.mode, *self._caller_of(event.call)).inc()

    def _answered(self, event: AnswerEvent) -> None:
        caller = event.mode, *self._caller_of(event.call)
        model = event.mode, *self._models.labels_of(event.call.model_group)
        tokens, dollars = event.provider_tokens_saved or 0, event.dollars_saved or 0.0
        self._ended(event)
        if event.beyond_window:
            self._beyond_window.labels(*caller).inc()
        if event.billed is not None:
            self._request_sent_tokens.labels(*model).observe(event.billed.input_tokens)
        if tokens > 0:
            self._request_saved_tokens.labels(*model).observe(tokens)
        # A counter cannot fall, and a gauge of the balance would be lost with each worker: gain and loss stand apart.
        if tokens:
            (self._saved_tokens if tokens > 0 else self._spent_tokens).labels(*caller).inc(abs(tokens))
        if dollars:
            (self._saved_dollars if dollars > 0 else self._spent_dollars).labels(*caller).inc(abs(dollars))

    def _truncated(self, event: TruncationEvent) -> None:
        self._truncations.labels(*self._deployments.labels_of(event.deployment_id)).inc()

    def _learned(self, event: LimitEvent) -> None:
        labels = event.kind, *self._deployments.labels_of(event.deployment)
        self._limits.labels(*labels).inc()
        self._limit_tokens.labels(*labels).set(event.limit_tokens)

    def _summarised(self, event: SummaryEvent) -> None:
        caller = self._caller_of(event.call)
        self._summaries.labels(event.outcome, *caller).inc()
        self._summary_dollars.labels(*caller).inc(event.dollars or 0.0)

    def _retrieved(self, event: RetrievalEvent) -> None:
        self._retrievals.labels(event.source, *self._caller_of(event.call)).inc()

    def _archived(self, event: ArchiveEvent) -> None:
        self._archive_texts.labels(event.outcome, event.backend).inc(event.texts)

    def _caller_of(self, call: CallNames) -> tuple[str, ...]:
        return self._callers.labels_of(call.model_group, call.team_id, call.team_alias, call.key_alias)


@cache
def process_metrics() -> Metrics | None:
    """Return the metrics in the registry that LiteLLM shows; None where `prometheus_client` is not installed."""
    try:
        from prometheus_client import REGISTRY  # noqa: PLC0415 - optional
    except ImportError:
        return None
    return Metrics(REGISTRY)
