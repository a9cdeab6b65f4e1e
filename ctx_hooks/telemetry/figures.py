"""The sinks and metrics of each field of an event, declared with the field: a sink knows no figure by itself."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from functools import cache, partial
from operator import attrgetter
from typing import Any, Literal

from ctx_hooks.formats.fields import MAPPINGS

Sink = Literal["log", "span", "spend", "header"]

SECONDS = (0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
"""Buckets from a small request, decided in 0.1 ms, to the time limit."""
ANSWER_SECONDS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1_000.0)
"""Buckets from a short answer to a long one that reasons; LiteLLM gives up after 6,000 s, most clients after 600."""


@dataclass(frozen=True, slots=True)
class Labels:
    """Labels of a metric whose values callers or operators choose; those with LiteLLM's meaning have its names.

    `paths` are the places of the values in an event. `most` sets of values have series of their own in each process, in
    all metrics; further ones are "other".
    """

    names: tuple[str, ...]
    paths: tuple[str, ...]
    most: int


CALLER = Labels(
    ("requested_model", "team", "team_alias", "api_key_alias"),
    ("call.model_group", "call.team_id", "call.team_alias", "call.key_alias"),
    1_000,
)
"""A metric keeps 0.7 KB for each. A named caller's figures are complete, and sums over all stay right."""
MODEL = Labels(("requested_model",), ("call.model_group",), 100)
"""For histograms, each of fifteen series."""
deployment_at = partial(Labels, ("deployment",), most=1_000)
"""The label of a deployment, from the path of its name in an event."""


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric to which the value of a field adds; a text adds 1, and a mapping adds the value of each key.

    Attributes:
        kind: of metric.
        name: without `ctx_hooks_`, and without the `_total` of a counter.
        text: its description.
        labels: names of the event's own fields, and labels with a bound.
        key: the label that the keys of a mapping are; "" for none.
        part: the attribute of the value that is the figure, "" for the value itself.
        scale: the factor of the figure.
        above: the figure counts only above this; None for any figure.
        unless: the text that does not count.
        needs: a field without which the figure is a guess; "" if there is none.
        buckets: of a histogram.
    """

    kind: Literal["counter", "gauge", "histogram"]
    name: str
    text: str
    labels: tuple[str | Labels, ...] = ()
    key: str = ""
    part: str = ""
    scale: float = 1.0
    above: float | None = None
    unless: str = ""
    needs: str = ""
    buckets: tuple[float, ...] = ()

    @property
    def label_names(self) -> tuple[str, ...]:
        """The names of all labels, in order."""
        own = ((label,) if isinstance(label, str) else label.names for label in self.labels)
        return (*(name for names in own for name in names), *filter(None, [self.key]))

    def labelled(self, event: Any) -> Any:
        """Return the values in an event that its labels show."""
        return _getter(self.labels)(event) if self.labels else ()

    def figures(self, event: Any, value: Any) -> Iterator[tuple[str, float]]:
        """Yield what an event field's value adds, each with its key in a mapping, else ""."""
        if value is None or value == self.unless or (self.needs and getattr(event, self.needs) is None):
            return
        if self.part:
            value = getattr(value, self.part)
        for key, found in value.items() if isinstance(value, MAPPINGS) else [("", value)]:
            figure = self.scale * (1 if isinstance(found, str) else found)
            if self.above is None or figure > self.above:
                yield key, figure


counter = partial(Metric, "counter", above=0.0)
"""A counter cannot fall, so negative figures have their own counter, with a `scale` of -1."""
gauge = partial(Metric, "gauge")
"""It has the newest value of any worker."""
histogram = partial(Metric, "histogram")


def shown(*to: Sink | Metric, name: str = "", **names: str) -> dict[str, Any]:
    """Return the metadata of a field: the sinks that have it, and the metrics that its value adds to.

    `name` is its name there, "" for the field's own; `names` are different names in single sinks, as `span`.
    """
    sinks = {each: name for each in to if isinstance(each, str)}
    return {"sinks": {**sinks, **names}, "metrics": tuple(each for each in to if isinstance(each, Metric))}


def figures_for(sink: Sink, event: Any) -> dict[str, Any]:
    """Return the fields of an event that a sink has and that are not None, by their names there, in order."""
    names = names_for(sink, event.__class__)
    return {name: value for name, field_name in names if (value := getattr(event, field_name)) is not None}


@cache
def names_for(sink: Sink, kind: type[Any]) -> tuple[tuple[str, str], ...]:
    """Return each name that a sink has for a field of a class of events, with the field's own."""
    found = ((each.metadata.get("sinks", {}), each.name) for each in fields(kind))
    return tuple((sinks[sink] or name, name) for sinks, name in found if sink in sinks)


@cache
def _getter(labels: tuple[str | Labels, ...]) -> Callable[[Any], Any]:
    return attrgetter(*(path for label in labels for path in ([label] if isinstance(label, str) else label.paths)))


@cache
def metrics_of(kind: type[Any]) -> tuple[tuple[Callable[[Any], Any], Metric], ...]:
    """Return each metric of a class of events, with the getter of its field's value."""
    return tuple((attrgetter(each.name), metric) for each in fields(kind) for metric in each.metadata.get("metrics", ()))
