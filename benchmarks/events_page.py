"""Write docs/appendix/events.md: every metric and event, with what the docstrings and the metadata of their classes say.

uv run python benchmarks/events_page.py
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Sequence
from dataclasses import Field, fields
from pathlib import Path
from typing import Any

from ctx_hooks.telemetry.figures import CallNames, metrics_of
from ctx_hooks.telemetry.listeners import EVENTS

PAGE = Path(__file__).resolve().parents[1] / "docs" / "appendix" / "events.md"
HEAD = """\
# Events and metrics

`benchmarks/events_page.py` writes this page from the classes of the events. [Telemetry](../telemetry.md) says where they go.

Fields have their names in the event file. Beside a field are other sinks that have it: log line, span, spend log, headers.
Times are in epoch seconds. `call` of an event about a request has:

"""


def described(kind: type) -> tuple[str, dict[str, str]]:
    """Return what the docstring of a class says, and what it says of each attribute."""
    text, _, listed = (inspect.getdoc(kind) or "").partition("\nAttributes:\n")
    parts = re.split(r"^    (\w+): ", listed, flags=re.MULTILINE)[1:]
    said = {name: " ".join(what.split()) for name, what in zip(parts[::2], parts[1::2], strict=True)}
    return " ".join(text.split()), said


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    return "".join(f"| {' | '.join(row)} |\n" for row in [head, ["---"] * len(head), *rows])


def sinks(declared: Field[Any]) -> str:
    """Return the sinks that have a field, with its name there if that is another one."""
    named = declared.metadata.get("sinks", {})
    return ", ".join(f"{sink} `{name}`" if name else sink for sink, name in named.items() if sink != "column")


def page() -> str:
    """Return the whole page."""
    parts = [HEAD, table(("name", "what"), ((f"`{name}`", what) for name, what in described(CallNames)[1].items()))]
    metrics = {m.name: m for event in EVENTS.values() for _, m in metrics_of(event)}
    rows = [
        (
            f"`ctx_hooks_{name}{'_total' * (m.kind == 'counter')}`",
            m.kind,
            ", ".join(f"`{label}`" for label in m.label_names),
            m.text,
        )
        for name, m in metrics.items()
    ]
    parts += ["\n## Metrics\n\n", table(("metric", "kind", "labels", "what"), sorted(rows))]
    for kind in dict.fromkeys(EVENTS.values()):
        text, said = described(kind)
        names = ", ".join(f"`{name}`" for name, event in EVENTS.items() if event is kind)
        of_fields = (
            (f"`{each.name}`", said.get(each.name, ""), sinks(each)) for each in fields(kind) if each.name != "name"
        )
        parts += [f"\n## {names}\n\n{text}\n\n", table(("field", "what", "also in"), of_fields)]
    return "".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
