"""The metrics that events' fields declare, in the registry and the multiprocess mode of LiteLLM's own Prometheus metrics.

Labels with the same meaning have LiteLLM's names and values, including "None" for no value: one query can join both.
"""

from collections.abc import Mapping
from functools import cache, partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from ctx_hooks.runtime.warnings import one_line
from ctx_hooks.telemetry.figures import metrics_of
from ctx_hooks.telemetry.listeners import EVENTS, Listener

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

LONGEST_NAME_CHARS = 100
"""Behind a wildcard the caller names the model, at any length."""
OTHER = "other"
ADDS = {"counter": "inc", "gauge": "set", "histogram": "observe"}
"""The name of it in the Prometheus client."""


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
    """The metrics of one registry.

    Args:
        registry: where they are shown.
        events: the classes of events by name.

    Attributes:
        listeners: the listener for each event.
    """

    def __init__(self, registry: "CollectorRegistry", events: Mapping[str, Any] = EVENTS) -> None:
        from prometheus_client import Counter, Gauge, Histogram  # noqa: PLC0415 - optional

        kinds: dict[str, Any] = {
            "counter": Counter,
            "gauge": partial(Gauge, multiprocess_mode="mostrecent"),
            "histogram": Histogram,
        }
        self._names: dict[tuple[str, ...], Names] = {}
        self._made: dict[str, Any] = {}
        for metric in (metric for kind in events.values() for _, metric in metrics_of(kind)):
            self._names |= {label.names: Names(label.most) for label in metric.labels if not isinstance(label, str)}
            if metric.name not in self._made:
                options = {"buckets": metric.buckets} if metric.buckets else {}
                make, name, labels = kinds[metric.kind], f"ctx_hooks_{metric.name}", metric.label_names
                self._made[metric.name] = make(name, metric.text, labels, registry=registry, **options)
        self.listeners: dict[str, Listener] = {n: self._record for n, kind in events.items() if metrics_of(kind)}

    def _record(self, event: Any) -> None:
        known: dict[tuple[tuple[str, ...], str], tuple[str, ...]] = {}
        for value_of, metric in metrics_of(event.__class__):
            value = value_of(event)
            for key, figure in metric.figures(event, value) if value is not None else ():
                labels: list[str] = []
                for label in metric.labels:
                    if isinstance(label, str):
                        labels.append(getattr(event, label))
                    else:
                        if (label.names, key) not in known:
                            values = [attrgetter(path)(event) if path else key for path in label.paths]
                            known[label.names, key] = self._names[label.names].labels_of(*values)
                        labels += known[label.names, key]
                if metric.key:
                    labels.append(key)
                series = self._made[metric.name].labels(*labels)
                getattr(series, ADDS[metric.kind])(figure)


@cache
def process_metrics() -> Metrics | None:
    """Return the metrics in the registry that LiteLLM shows; None if `prometheus_client` is not installed."""
    try:
        from prometheus_client import REGISTRY  # noqa: PLC0415 - optional
    except ImportError:
        return None
    return Metrics(REGISTRY)
