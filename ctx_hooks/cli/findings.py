"""What a command finds out: what it is, how bad, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from rich.console import Console

Level = Literal["fails", "weak", "note", "ok"]
"""`fails`: requests are not treated as they should be. `weak`: they are, and could be better. `note`: good to know."""
STYLES: dict[Level, str] = {"fails": "bold red", "weak": "yellow", "note": "cyan", "ok": "green"}
LEVEL_CHARS = 7


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding.

    Attributes:
        name: what was looked at, for programs: `window_unknown`.
        level: how bad it is.
        text: what was found.
        advice: what to do; "" where nothing has to be done.
    """

    name: str
    level: Level
    text: str
    advice: str = ""


def print_findings(out: Console, findings: Iterable[Finding]) -> None:
    """Print findings, each with its level in front and its advice below."""
    from rich.styled import Styled  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    grid = Table.grid(padding=(0, 0))
    grid.add_column(width=LEVEL_CHARS)
    grid.add_column(overflow="fold")
    for finding in findings:
        grid.add_row(Text(finding.level, style=STYLES[finding.level]), finding.text)
        if finding.advice:
            grid.add_row("", Styled(finding.advice, "dim"))
    out.print(grid)
