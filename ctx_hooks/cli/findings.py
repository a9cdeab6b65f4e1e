"""The findings of a command: what each is, how bad, and what to do about it. `findings.yaml` has the words."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from string import Template
from typing import Literal

import yaml
from rich.console import Console
from rich.styled import Styled
from rich.table import Table
from rich.text import Text

Level = Literal["fails", "weak", "note", "ok"]
"""`fails`: requests are not treated as they should be. `weak`: they are, and could be better. `note`: good to know."""
STYLES: dict[Level, str] = {"fails": "bold red", "weak": "yellow", "note": "cyan", "ok": "green"}
LEVEL_CHARS = 7


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding: its name for programs (`window_unknown`); how bad it is; the finding in words; the advice, or ""."""

    name: str
    level: Level
    text: str
    advice: str = ""


@cache
def _words() -> dict[str, dict[str, str]]:
    words: dict[str, dict[str, str]] = yaml.safe_load(Path(__file__).with_name("findings.yaml").read_text(encoding="utf-8"))
    return words


def finding(key: str, **values: object) -> Finding:
    """Return a finding by its key in `findings.yaml`, with the values for the places in its words."""
    words = _words()[key]
    text, advice = (Template(words.get(part, "")).substitute(values) for part in ("text", "advice"))
    return Finding(words.get("name", key), words["level"], text, advice)  # type: ignore[arg-type]  # a level each


def print_findings(out: Console, findings: Iterable[Finding]) -> None:
    """Print findings, each with its level in front and its advice below."""
    grid = Table.grid(padding=(0, 0))
    grid.add_column(width=LEVEL_CHARS)
    grid.add_column(overflow="fold")
    for finding in findings:
        grid.add_row(Text(finding.level, style=STYLES[finding.level]), finding.text)
        if finding.advice:
            grid.add_row("", Styled(finding.advice, "dim"))
    out.print(grid)
