"""The page of events and metrics is what their classes declare. After a change the test writes it anew, and fails once."""

import inspect
import re
from dataclasses import fields

from documentation import ROOT

from ctx_hooks.telemetry.figures import CallNames, metrics_of
from ctx_hooks.telemetry.listeners import EVENTS

PAGE = ROOT / "docs" / "appendix" / "events.md"
HEAD = """\
# Events and metrics

`tests/docs/test_events.py` writes this page from the classes of the events. [Telemetry](../telemetry.md) says where they go.

Fields have their names in the event file. Beside a field are other sinks that have it: log line, span, spend log, headers.
Times are in epoch seconds. `call` of an event about a request has:

"""


def described(kind):
    """Return what the docstring of a class says, and what it says of each attribute."""
    text, _, listed = inspect.getdoc(kind).partition("\nAttributes:\n")
    parts = re.split(r"^    (\w+): ", listed, flags=re.MULTILINE)[1:]
    return " ".join(text.split()), {name: " ".join(what.split()) for name, what in zip(parts[::2], parts[1::2], strict=True)}


def table(head, rows):
    return "".join(f"| {' | '.join(row)} |\n" for row in [head, ["---"] * len(head), *rows])


def sinks(field):
    named = field.metadata.get("sinks", {})
    return ", ".join(f"{sink} `{name}`" if name else sink for sink, name in named.items() if sink != "column")


def page():
    parts = [HEAD, table(("name", "what"), ((f"`{name}`", what) for name, what in described(CallNames)[1].items()))]
    metrics = {
        f"`ctx_hooks_{m.name}{'_total' * (m.kind == 'counter')}`": m for e in EVENTS.values() for _, m in metrics_of(e)
    }
    rows = ((name, m.kind, ", ".join(f"`{label}`" for label in m.label_names), m.text) for name, m in metrics.items())
    parts += ["\n## Metrics\n\n", table(("metric", "kind", "labels", "what"), sorted(rows))]
    for kind in dict.fromkeys(EVENTS.values()):
        (text, said), names = described(kind), [f"`{name}`" for name, of in EVENTS.items() if of is kind]
        rows = ((f"`{each.name}`", said.get(each.name, ""), sinks(each)) for each in fields(kind) if each.name != "name")
        parts += [f"\n## {', '.join(names)}\n\n{text}\n\n", table(("field", "what", "also in"), rows)]
    return "".join(parts)


def test_the_page_is_what_the_classes_declare():
    before = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(page(), encoding="utf-8")
    assert before == page(), "it was written anew: look at it"
