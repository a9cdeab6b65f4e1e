"""`ctx-hooks check FILE`: the mistakes of a proxy configuration, or its windows, its policies and its weak spots."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ctx_hooks.cli.terminal import FAILED, console, json_option, print_json, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from ctx_hooks.cli.configuration import Configuration
    from ctx_hooks.cli.findings import Finding
    from ctx_hooks.cli.policy_table import Row

SOURCES = {
    "policy": "the policy",
    "model_info": "model_info",
    "model_map": "LiteLLM",
    "default": "nobody: assumed",
}
"""Who states a window."""


@click.command()
@click.argument("config", type=click.Path(path_type=Path))
@json_option
def command(config: Path, *, as_json: bool) -> int:
    """Find the mistakes of a proxy configuration, or print its policies.

    CONFIG is the YAML file that `litellm --config` is given. All mistakes are named with their path; without one you see the
    window of each deployment, every field of a policy that differs from its default, and what could be better.
    """
    from ctx_hooks.cli.configuration import read_configuration  # noqa: PLC0415 - slow to load, and not for --help
    from ctx_hooks.cli.weak_spots import weak_spots  # noqa: PLC0415

    found = read_configuration(config)
    findings = weak_spots(found)
    if as_json:
        print_json(_document(found, findings))
    else:
        _print(console(), config, found, findings)
    return FAILED if found.mistakes or any(finding.level == "fails" for finding in findings) else 0


def _document(found: Configuration, findings: Sequence[Finding]) -> dict[str, Any]:
    from ctx_hooks.cli.policy_table import rows  # noqa: PLC0415

    return {
        "mistakes": found.mistakes,
        "deployments": _windows(found),
        "policies": [asdict(row) for row in rows(found)],
        "findings": [asdict(finding) for finding in findings],
    }


def _windows(found: Configuration) -> list[dict[str, Any]]:
    from ctx_hooks.cli.configuration import window_of_deployment  # noqa: PLC0415

    windows = [window_of_deployment(entry.deployment, found.resolved(entry).policy) for entry in found.listed]
    return [
        {
            "model_group": entry.group,
            "model": entry.deployment.model,
            "window_tokens": None if window.source == "default" and "*" in entry.deployment.model else window.tokens,
            "window_source": window.source,
        }
        for entry, window in zip(found.listed, windows, strict=True)
    ]


def _print(out: Console, path: Path, found: Configuration, findings: Sequence[Finding]) -> None:
    for line in found.mistakes:
        out.print(line, soft_wrap=True)
    if found.mistakes:
        out.print(f"{len(found.mistakes)} mistake{'s' * (len(found.mistakes) != 1)} in {path}", style="bold red")
        return
    from ctx_hooks.cli.findings import print_findings  # noqa: PLC0415
    from ctx_hooks.cli.policy_table import rows  # noqa: PLC0415

    if not any(finding.level == "fails" for finding in findings):
        out.print(f"{path}: no mistakes", style="bold green")
    _print_windows(out, _windows(found))
    _print_policies(out, rows(found))
    if findings:
        out.print("\nWhat could be better", style="bold")
        print_findings(out, findings)


def _print_windows(out: Console, windows: Sequence[dict[str, Any]]) -> None:
    if not windows:
        out.print("\nIt lists no deployment.")
        return
    shown = table("model group", "deployment", "window", "stated by", right=(2,))
    for row in windows:
        tokens, source = row["window_tokens"], SOURCES[row["window_source"]]
        shown.add_row(
            row["model_group"], row["model"], *((f"{tokens:,}", source) if tokens is not None else ("", "each model"))
        )
    out.print()
    out.print(shown)


def _print_policies(out: Console, rows: Sequence[Row]) -> None:
    from ctx_hooks.cli.policy_table import default_of  # noqa: PLC0415

    differing = [row for row in rows if not row.is_default]
    same = len(rows) - len(differing)
    out.print()
    if not differing:
        out.print("Every policy is the default.")
        return
    shown = table("policy of", "field", "value", "default", "set by")
    for row in differing:
        shown.add_row(_whose(row), row.field, _shown(row.value), _shown(default_of(row.field)), row.set_by)
    out.print(shown)
    if same:
        out.print(f"Not listed: {same} that {'is' if same == 1 else 'are'} set to the default.", style="dim")


def _whose(row: Row) -> str:
    models = ", ".join(row.models) or "all models"
    if not row.caller:
        return models
    kind, name = row.caller.split(".", 1)
    return f"{kind.removesuffix('s')} {name}" + (f" on {models}" if row.models else "")


def _shown(value: Any) -> str:
    """Return a value as YAML has it."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return ", ".join(f"{name}: {_shown(v)}" for name, v in value.items() if v is not None)
    if isinstance(value, list):
        return ", ".join(map(_shown, value)) or "-"
    return str(value)
