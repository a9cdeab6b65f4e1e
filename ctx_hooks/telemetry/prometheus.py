"""The metrics that events' fields declare, in the registry and the multiprocess mode of LiteLLM's own Prometheus metrics.

Labels with the same meaning have LiteLLM's names and values, including "None" for no value: one query can join both.
"""

import re
from collections.abc import Callable, Mapping
from functools import cache, partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from ctx_hooks.runtime.warnings import one_line
from ctx_hooks.telemetry.figures import Labels, Metric, metrics_of
from ctx_hooks.telemetry.listeners import EVENTS, Listener

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

LONGEST_NAME_CHARS = 100
"""Behind a wildcard the caller names the model, at any length."""
LONG_ID = re.compile(r"^([0-9a-f]{8})[0-9a-f]{56}(?=:)")
"""The id that LiteLLM's Router makes for a deployment without one, and how much of it a label has."""
MOST_SERIES = 20_000
"""Of these the way from an event's values to the series is kept; beyond them the labels are made for each event."""
ADDS = {"counter": "inc", "gauge": "set", "histogram": "observe"}
"""The name of it in the Prometheus client."""


class Metrics:
    """The metrics of one registry; `listeners` has the listener for each event."""

    def __init__(self, registry: "CollectorRegistry", events: Mapping[str, Any] = EVENTS) -> None:
        from prometheus_client import Counter, Gauge, Histogram  # noqa: PLC0415 - optional

        kinds: dict[str, Any] = {
            "counter": Counter,
            "gauge": partial(Gauge, multiprocess_mode="mostrecent"),
            "histogram": Histogram,
        }
        self._known: dict[tuple[str, ...], dict[tuple[str, ...], tuple[str, ...]]] = {}
        self._series: dict[tuple[Any, ...], Any] = {}
        self._made: dict[str, Any] = {}
        for metric in (metric for kind in events.values() for _, metric in metrics_of(kind)):
            if metric.name not in self._made:
                options = {"buckets": metric.buckets} if metric.buckets else {}
                make, name, labels = kinds[metric.kind], f"ctx_hooks_{metric.name}", metric.label_names
                self._made[metric.name] = make(name, metric.text, labels, registry=registry, **options)
        self.listeners: dict[str, Listener] = {n: self._record for n, kind in events.items() if metrics_of(kind)}

    def _record(self, event: Any) -> None:
        for value_of, metric in metrics_of(event.__class__):
            for key, figure in metric.figures(event, value_of(event)):
                add = self._series.get((metric.name, key, metric.labelled(event))) or self._series_of(event, metric, key)
                add(figure)

    def _series_of(self, event: Any, metric: Metric, key: str) -> Callable[[float], object]:
        """Return what adds to the series of an event's labels; it is kept for further events."""
        own = [(getattr(event, x),) if isinstance(x, str) else self._values(event, x) for x in metric.labels]
        labels = [*(value for values in own for value in values), *([key] if metric.key else [])]
        add: Callable[[float], object] = getattr(self._made[metric.name].labels(*labels), ADDS[metric.kind])
        if len(self._series) < MOST_SERIES:
            self._series[metric.name, key, metric.labelled(event)] = add
        return add

    def _values(self, event: Any, labels: Labels) -> tuple[str, ...]:
        """Return the labels' values, each one printable line; "other" if as many others have series of their own."""
        names = tuple(attrgetter(path)(event)[: LONGEST_NAME_CHARS + 1] for path in labels.paths)
        known = self._known.setdefault(labels.names, {})
        if names not in known and len(known) >= labels.most:
            return ("other",) * len(names)
        if names not in known:
            known[names] = tuple(one_line(LONG_ID.sub(r"\1", name), LONGEST_NAME_CHARS) or str(None) for name in names)
        return known[names]


@cache
def process_metrics() -> Metrics | None:
    """Return the metrics in the registry that LiteLLM shows; None if `prometheus_client` is not installed."""
    try:
        from prometheus_client import REGISTRY  # noqa: PLC0415 - optional
    except ImportError:
        return None
    return Metrics(REGISTRY)
