"""`ctx-hooks doctor`: whether the plugin works in this installation, and what in a configuration could be better."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from pathlib import Path

from ctx_hooks.cli.configuration import Configuration, read_configuration
from ctx_hooks.cli.doctor.installation import installation_findings
from ctx_hooks.cli.doctor.redis import redis_finding
from ctx_hooks.cli.findings import Finding, finding, print_findings
from ctx_hooks.cli.terminal import FAILED, console, print_json, working
from ctx_hooks.cli.weak_spots import weak_spots


def run(*, config: Path | None, proxy: bool, as_json: bool) -> int:
    """Print the findings of each section as soon as they are made; return the exit code."""
    read = read_configuration(config) if config else None
    out = console()
    told: dict[str, list[Finding]] = {}
    for name, look in _sections(read, proxy=proxy):
        with working(name):
            told[name] = list(look())
        if not as_json:
            out.print(f"\n{name}", style="bold")
            print_findings(out, told[name])
    failing, weak = ([f for found in told.values() for f in found if f.level == level] for level in ("fails", "weak"))
    if as_json:
        findings = [{"section": name, **asdict(f)} for name, found in told.items() for f in found]
        print_json({"works": not failing, "findings": findings})
    elif failing:
        out.print("\n1 check fails." if len(failing) == 1 else f"\n{len(failing)} checks fail.", style="bold red")
    else:
        out.print("\nNo check fails." if weak else "\nEverything works.", style="bold green")
    return FAILED if failing else 0


def _sections(config: Configuration | None, *, proxy: bool) -> Iterator[tuple[str, Callable[[], Iterable[Finding]]]]:
    yield "The installation", installation_findings
    if proxy:
        yield "An overflow on every route of a real proxy", _overflow
    yield "Redis", lambda: [redis_finding(config)]
    if config is not None:
        yield "The configuration", lambda: _configuration(config)


def _overflow() -> Iterable[Finding]:
    try:
        from ctx_hooks.cli.doctor.overflow import overflow_findings  # noqa: PLC0415 - it may be what is missing

        return overflow_findings()
    except ImportError as error:
        return [finding("proxy_missing", error=error)]
    except RuntimeError as error:
        return [finding("proxy_fails", error=error)]


def _configuration(config: Configuration) -> Iterator[Finding]:
    yield from (finding("mistake", mistake=line) for line in config.mistakes)
    found = weak_spots(config)
    yield from found
    if not found and not config.mistakes:
        yield finding("configuration", deployments=len(config.listed))
