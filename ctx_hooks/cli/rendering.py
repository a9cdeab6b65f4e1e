"""Figures as people read them, and the templates that show them."""

import math
from collections.abc import Sequence
from datetime import datetime, timezone
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from ctx_hooks.cli.terminal import counted
from ctx_hooks.compaction.steps import StepReport

MINUS = "−"
UNITS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
SHORT_FROM = 10_000
EARLIER = "earlier_compactions"
EARLIER_WHY = "what the conversation's earlier compactions removed, less the quoted text"
SMALL = 0.1
"""A smaller amount or share needs more digits than usual."""


def whole(value: float) -> str:
    """Return a whole number with its thousands apart."""
    return f"{value:,.0f}".replace("-", MINUS)


def short(value: float) -> str:
    """Return a number in three digits and a unit, as `12.3 M`."""
    size = abs(value)
    if size < SHORT_FROM:
        text = f"{size:,.0f}" if size == int(size) else f"{size:.3g}"
    else:
        scale, unit = next((s, u) for s, u in UNITS if size >= s * 0.9995)
        text = f"{size / scale:.3g} {unit}"
    return f"{MINUS}{text}" if value < 0 else text


def dollars(value: float) -> str:
    """Return an amount with cents, and with as many digits more as a small one needs."""
    size = abs(value)
    digits = 2 if size >= SMALL or not size else 1 - math.floor(math.log10(size))
    text = f"${size:,.{digits}f}"
    return f"{MINUS}{text}" if value < 0 else text


def percent(fraction: float | None) -> str:
    """Return a share in percent, a dash for none."""
    if fraction is None:
        return "–"
    return f"{100 * fraction:.0f} %" if fraction >= SMALL or not fraction else f"{100 * fraction:.1f} %"


def nice(value: float) -> float:
    """Return the least of 1, 2, 3, 4, 5, 6, 8, 10, 20 and so on that is not below a value; 1 for 0."""
    if value <= 0:
        return 1.0
    power = float(10 ** math.floor(math.log10(value)))
    return next(step * power for step in (1, 2, 3, 4, 5, 6, 8, 10) if step * power >= value * 0.999999)


@cache
def _templates() -> Environment:
    found = Environment(
        loader=PackageLoader("ctx_hooks.cli"),
        autoescape=select_autoescape(("html",)),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.globals["utc"] = lambda seconds: datetime.fromtimestamp(seconds, timezone.utc)
    found.filters |= {each.__name__: each for each in (whole, short, dollars, percent, counted)}
    return found


def render(template: str, **values: Any) -> str:
    """Return a file of `templates/` with these values; in HTML every text is escaped."""
    return _templates().get_template(template).render(values)


def all_steps(steps: Sequence[StepReport], saved_tokens: int) -> tuple[StepReport, ...]:
    """Return the steps of the newest compaction, and as the last one the rest of the tokens that the request lost."""
    rest = saved_tokens - sum(step.tokens_saved for step in steps)
    return (*steps, StepReport(EARLIER, rest, 0, EARLIER_WHY)) if rest else tuple(steps)
