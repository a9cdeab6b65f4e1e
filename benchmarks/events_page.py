"""Write docs/appendix/events.md: every metric and event, with what the docstrings and the metadata of their classes say.

uv run python benchmarks/events_page.py
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence
from dataclasses import Field, fields
from pathlib import Path
from typing import Any

from ctx_hooks.telemetry.figures import CallNames, metrics_of
from ctx_hooks.telemetry.listeners import EVENTS

PAGE = Path(__file__).resolve().parents[1] / "docs" / "appendix" / "events.md"
HEAD = """\
# Events and metrics

`benchmarks/events_page.py` writes this page from the classes of the events. [Telemetry](../telemetry.md) says where they go.

Fields have their names in the event file. In brackets are the other sinks that have a field, with its name there if it
differs: log line, span, spend log, headers. Times are in epoch seconds.

"""
METRICS = """\
## Metrics

In brackets are the kind and the labels. `caller` are LiteLLM's labels `requested_model`, `team`, `team_alias` and
`api_key_alias`.

"""
CALLER = ("requested_model", "team", "team_alias", "api_key_alias")
CALL = """
## `call`

`call` of an event about a request has:

"""


def described(kind: type) -> tuple[str, dict[str, str]]:
    """Return what the docstring of a class says, and what it says of each attribute."""
    text, _, listed = (inspect.getdoc(kind) or "").partition("\nAttributes:\n")
    parts = re.split(r"^    (\w+): ", listed, flags=re.MULTILINE)[1:]
    said = {name: " ".join(what.split()) for name, what in zip(parts[::2], parts[1::2], strict=True)}
    return " ".join(text.split()), said


def listed(rows: Sequence[tuple[str, str, str]]) -> str:
    """Return a Markdown list of names with their sinks or labels and their meaning; names without either share a line."""
    plain = [f"`{name}`" for name, aside, what in rows if not aside and not what]
    lines = [
        f"- `{name}`{f' ({aside})' * bool(aside)}{f': {what}' * bool(what)}\n" for name, aside, what in rows if aside or what
    ]
    return "".join([*[f"- {', '.join(plain)}\n"] * bool(plain), *lines])


def sinks(declared: Field[Any]) -> str:
    """Return the sinks that have a field, with its name there if that is another one."""
    named = declared.metadata.get("sinks", {})
    return ", ".join(f"{sink} `{name}`" if name else sink for sink, name in named.items())


def _labels(names: Sequence[str]) -> str:
    """Return the labels of a metric, those of a caller as one."""
    by_caller = set(CALLER) <= set(names)
    own = [f"`{name}`" for name in names if not (by_caller and name in CALLER)]
    return "".join(f", {label}" for label in [*own, *["`caller`"] * by_caller])


def page() -> str:
    """Return the whole page."""
    metrics = {m.name: m for event in EVENTS.values() for _, m in metrics_of(event)}
    rows = [
        (f"ctx_hooks_{name}{'_total' * (m.kind == 'counter')}", f"{m.kind}{_labels(m.label_names)}", m.text)
        for name, m in metrics.items()
    ]
    calls = [(name, "", what) for name, what in described(CallNames)[1].items()]
    parts = [HEAD, METRICS, listed(sorted(rows)), CALL, listed(calls)]
    for kind in dict.fromkeys(EVENTS.values()):
        text, said = described(kind)
        names = ", ".join(f"`{name}`" for name, event in EVENTS.items() if event is kind)
        of_fields = [(each.name, sinks(each), said.get(each.name, "")) for each in fields(kind) if each.name != "name"]
        parts += [f"\n## {names}\n\n{text}\n\n", listed(of_fields)]
    return "".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
