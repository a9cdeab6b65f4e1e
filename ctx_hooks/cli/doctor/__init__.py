"""`ctx-hooks doctor`: whether the plugin works in this installation, and what in a configuration could be better."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ctx_hooks.cli.terminal import FAILED, console, json_option, print_json, working

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from ctx_hooks.cli.configuration import Configuration
    from ctx_hooks.cli.findings import Finding


@click.command()
@click.argument("config", type=click.Path(path_type=Path), required=False)
@click.option(
    "--proxy/--no-proxy", default=True, help="Whether to start a proxy and try an overflow on it.  [default: proxy]"
)
@json_option
def command(*, config: Path | None, proxy: bool, as_json: bool) -> int:
    """Try the plugin in this installation, and look at a configuration.

    A LiteLLM proxy and a provider with a small window start on loopback, and one overflow goes through every route and hook.
    CONFIG is your proxy's configuration: its Redis is asked, and what keeps the plugin from its work is named. Nothing is
    sent to your providers. Exits with 1 if a check fails.
    """
    from ctx_hooks.cli.configuration import read_configuration  # noqa: PLC0415 - slow to load, and not for --help

    found = read_configuration(config) if config else None
    out = console()
    told: dict[str, list[Finding]] = {}
    for name, look in _sections(found, proxy=proxy):
        with working(name):
            told[name] = list(look())
        if not as_json:
            _print(name, told[name])
    failing, weak = ([f for found in told.values() for f in found if f.level == level] for level in ("fails", "weak"))
    if as_json:
        print_json(
            {
                "works": not failing,
                "findings": [{"section": n, **asdict(f)} for n, findings in told.items() for f in findings],
            }
        )
    elif failing:
        out.print("\n1 check fails." if len(failing) == 1 else f"\n{len(failing)} checks fail.", style="bold red")
    else:
        out.print("\nNo check fails." if weak else "\nEverything works.", style="bold green")
    return FAILED if failing else 0


def _sections(config: Configuration | None, *, proxy: bool) -> Iterator[tuple[str, Callable[[], Iterable[Finding]]]]:
    from ctx_hooks.cli.doctor.installation import installation_findings  # noqa: PLC0415

    yield "The installation", installation_findings
    if proxy:
        yield "An overflow on every route of a real proxy", _overflow
    yield "Redis", lambda: _redis(config)
    if config is not None:
        yield "The configuration", lambda: _configuration(config)


def _overflow() -> Iterable[Finding]:
    from ctx_hooks.cli.findings import Finding  # noqa: PLC0415

    try:
        from ctx_hooks.cli.doctor.overflow import overflow_findings  # noqa: PLC0415

        return overflow_findings()
    except ImportError as error:
        advice = "Install LiteLLM with its proxy: pip install 'litellm[proxy]'"
        return [Finding("proxy", "fails", f"The proxy cannot be loaded: {error}", advice)]
    except RuntimeError as error:
        return [Finding("proxy", "fails", f"The proxy does not start: {error}", "What its log says of that stands above.")]


def _redis(config: Configuration | None) -> Iterable[Finding]:
    from ctx_hooks.cli.doctor.redis import redis_finding  # noqa: PLC0415

    return [redis_finding(config)]


def _configuration(config: Configuration) -> Iterator[Finding]:
    from ctx_hooks.cli.findings import Finding  # noqa: PLC0415
    from ctx_hooks.cli.weak_spots import weak_spots  # noqa: PLC0415

    for line in config.mistakes:
        yield Finding(
            "mistake", "fails", line, "Correct it: what cannot be read is ignored, and never makes the mode stronger."
        )
    found = weak_spots(config)
    yield from found
    if not found and not config.mistakes:
        yield Finding("configuration", "ok", f"{len(config.listed)} deployments, no mistakes")


def _print(name: str, findings: list[Finding]) -> None:
    from ctx_hooks.cli.findings import print_findings  # noqa: PLC0415

    out = console()
    out.print(f"\n{name}", style="bold")
    print_findings(out, findings)
