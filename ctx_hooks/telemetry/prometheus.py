"""The metrics of events, beside LiteLLM's own Prometheus metrics, whose labels they share, with "None" for no value."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from ctx_hooks.runtime.warnings import one_line
from ctx_hooks.telemetry.listeners import Listener

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

LONGEST_NAME_CHARS = 100
"""Behind a wildcard the caller names the model, at any length."""
LONG_ID = re.compile(r"^([0-9a-f]{8})[0-9a-f]{56}(?=:)")
"""The id that LiteLLM's Router makes for a deployment without one, and how much of it a label has."""
MOST_NAMED = 1_000
"""Callers and deployments with series of their own, of 0.7 KB, in each process; further ones are "other". A named caller's
figures are complete, and sums over all stay right."""
MOST_PLACES = 5_000
"""Different labels of events whose series are kept at hand: the client takes three times as long to find a series."""
SECONDS = (0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
"""Buckets from a small request, decided in 0.1 ms, to the time limit."""
ADDS = {"counter": "inc", "gauge": "set", "histogram": "observe"}
"""The method of each kind in the Prometheus client."""


class Names(NamedTuple):
    """Labels whose values callers or operators choose, and the fields of an event with the values."""

    labels: tuple[str, ...]
    fields: tuple[str, ...]


NO_NAMES = Names((), ())
CALLER = Names(
    ("requested_model", "team", "team_alias", "api_key_alias"),
    ("call.model_group", "call.team_id", "call.team_alias", "call.key_alias"),
)
CHOSEN = Names(("deployment",), ("call.deployment",))
LEARNED = Names(("deployment",), ("deployment",))


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric, the place of its figure in an event, and its labels: fields of the event, names, and a mapping's keys.

    A text adds 1, a mapping each of its values, and None or "" nothing; a counter leaves out figures below zero.
    """

    kind: Literal["counter", "gauge", "histogram"]
    name: str
    text: str
    figure: str = "name"
    fields: tuple[str, ...] = ("mode",)
    names: Names = NO_NAMES
    key: str = ""
    scale: float = 1.0

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of all labels, in order."""
        return (*self.fields, *self.names.labels, *filter(None, [self.key]))

    def figures(self, found: Any) -> list[tuple[str, float]]:
        """Return what a figure of an event adds, each with its key in a mapping, else ""."""
        if found is None or found == "":
            return []
        if isinstance(found, dict):
            return [(key, value * self.scale) for key, value in found.items()]
        figure = 1 if isinstance(found, str) else found * self.scale
        return [] if figure < 0 and self.kind == "counter" else [("", figure)]


counter, gauge, histogram = partial(Metric, "counter"), partial(Metric, "gauge"), partial(Metric, "histogram")
of_caller = partial(counter, names=CALLER)
REQUESTS = of_caller("requests", "Requests by their outcome, each once", fields=("decision", "mode"))
METRICS: Mapping[str, tuple[Metric, ...]] = {
    "decision": (
        of_caller("attempts", "Attempts; one that has failed was not sent", fields=("decision", "trigger", "mode")),
        of_caller("compression_timeouts", "Attempts that lost their oldest turns to the time limit", "timed_out"),
        gauge("window_tokens", "The window that was fitted to last", "fitted_window_tokens", (), CHOSEN),
        histogram("phase_seconds", "Time of a decision, by phase and in total", "milliseconds", (), key="phase", scale=1e-3),
    ),
    "overflow": (of_caller("overflows", "Attempts that a provider refused as too long", fields=("kind", "mode")),),
    "rejection": (of_caller("rejections", "Changed requests that were refused as invalid", fields=("status", "mode")),),
    "answer": (
        REQUESTS,
        of_caller("saved_provider_tokens", "Input tokens that bills were lowered by", "provider_tokens_saved"),
        of_caller("spent_provider_tokens", "Input tokens that bills were raised by", "provider_tokens_saved", scale=-1.0),
        of_caller("saved_dollars", "Dollars that bills were lowered by", "dollars_saved"),
        of_caller("spent_dollars", "Dollars that bills were raised by", "dollars_saved", scale=-1.0),
        of_caller("cached_prompt_tokens", "Billed input tokens that a prompt cache served", "cached_tokens"),
        of_caller("uncached_prompt_tokens", "All other billed input tokens", "uncached_tokens"),
        of_caller("rereads", "Calls made again whose earlier result was removed or shortened", "rereads"),
    ),
    "failure": (REQUESTS,),
    "limit_learned": (gauge("learned_limit_tokens", "The newest learned limit", "limit_tokens", ("kind",), LEARNED),),
    "summary": (
        of_caller("summaries", "Summaries that a model was asked for", fields=("outcome",)),
        of_caller("summary_dollars", "Dollars that summaries have cost", "dollars", ()),
    ),
    "retrieval": (of_caller("retrievals", "Calls of the retrieval tool that were answered", fields=("source",)),),
    "archive": (counter("archive_texts", "Texts that came to the archive", "texts", ("outcome", "backend")),),
    "start": (
        gauge("build_info", "1, with the versions that run", fields=("version", "litellm_version")),
        gauge("policy_info", "1, with a digest of the settings and the mode of the defaults", fields=("digest", "mode")),
        gauge("settings_mistakes", "Mistakes in the settings of the configuration", "mistakes", ("digest",)),
    ),
    "fault": (
        counter("fail_open", "Faults that left a request, an answer or an error as it was", "consequence", ("consequence",)),
        counter("sinks_disabled", "Sinks of events that have failed and are off until the next start", "sink", ("sink",)),
    ),
    "settings_ignored": (of_caller("ignored_settings", "Requests with ignored settings", "scopes", (), key="scope"),),
}
"""The metrics by the name of the events that add to them."""


class Metrics:
    """The metrics of one registry; `listeners` has the listener for each event."""

    def __init__(self, registry: "CollectorRegistry") -> None:
        from prometheus_client import Counter, Gauge, Histogram  # noqa: PLC0415 - optional

        kinds: dict[str, Any] = {
            "counter": Counter,
            "gauge": partial(Gauge, multiprocess_mode="mostrecent"),
            "histogram": partial(Histogram, buckets=SECONDS),
        }
        metrics = {metric.name: metric for of_event in METRICS.values() for metric in of_event}
        self._made = {
            name: kinds[metric.kind](f"ctx_hooks_{name}", metric.text, metric.labels, registry=registry)
            for name, metric in metrics.items()
        }
        self._known: dict[Names, dict[tuple[str, ...], tuple[str, ...]]] = {}
        self._places: dict[Any, dict[tuple[str, str], Callable[[float], object]]] = {}
        self.listeners: dict[str, Listener] = {name: partial(self._record, _place_of(name)) for name in METRICS}

    def _record(self, place_of: Callable[[Any], Any], event: Any) -> None:
        place = place_of(event)
        if place not in self._places:
            if len(self._places) >= MOST_PLACES:
                self._places.clear()
            self._places[place] = {}
        series = self._places[place]
        for metric in METRICS[event.name]:
            found = getattr(event, metric.figure)
            if not found and metric.kind == "counter" and (metric.name, "") in series:
                continue  # most figures of a request that fits are 0
            for key, figure in metric.figures(found):
                if (metric.name, key) not in series:
                    series[metric.name, key] = self._add(metric, key, event)
                series[metric.name, key](figure)

    def _add(self, metric: Metric, key: str, event: Any) -> Callable[[float], object]:
        """Return the method that adds to a metric under the labels of an event and a key of its figure."""
        own = [getattr(event, name) for name in metric.fields]
        names = self._shown(metric.names, tuple(attrgetter(name)(event) for name in metric.names.fields))
        series = self._made[metric.name].labels(*own, *names, *([key] if metric.key else []))
        found: Callable[[float], object] = getattr(series, ADDS[metric.kind])
        return found

    def _shown(self, labels: Names, values: tuple[str, ...]) -> tuple[str, ...]:
        """Return the values of labels, each one printable line; "other" if MOST_NAMED others have series of their own."""
        known = self._known.setdefault(labels, {})
        if values not in known and len(known) >= MOST_NAMED:
            return ("other",) * len(values)
        if values not in known:
            known[values] = tuple(one_line(LONG_ID.sub(r"\1", name), LONGEST_NAME_CHARS) or str(None) for name in values)
        return known[values]


def _place_of(event: str) -> Callable[[Any], Any]:
    """Return the function that takes the values of all labels out of an event of that name."""
    fields = (name for metric in METRICS[event] for name in (*metric.fields, *metric.names.fields))
    return attrgetter("name", *dict.fromkeys(fields))


@cache
def process_metrics() -> Metrics | None:
    """Return the metrics in the registry that LiteLLM shows; None if `prometheus_client` is not installed."""
    try:
        from prometheus_client import REGISTRY  # noqa: PLC0415 - optional
    except ImportError:
        return None
    return Metrics(REGISTRY)
