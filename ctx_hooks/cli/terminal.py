"""What the commands share: `--json`, failures, and what is printed where."""

from __future__ import annotations

import json
from typing import Any

import click

FAILED = 1
_AS_JSON = "ctx_hooks.as_json"


class CommandError(Exception):
    """A command cannot do what it was asked for; the text says why, and what to do."""


def _note(ctx: click.Context, _parameter: click.Parameter, value: bool) -> bool:  # noqa: FBT001 - click's signature
    ctx.meta[_AS_JSON] = value
    return value


json_option = click.option("--json", "as_json", is_flag=True, callback=_note, help="Print one JSON document.")
"""The option that every command has."""


def print_json(value: Any) -> None:
    """Print a JSON document."""
    click.echo(json.dumps(value, indent=2))


def print_error(ctx: click.Context, failure: CommandError) -> int:
    """Print why a command failed, to stderr, or as its JSON document; return the exit code."""
    if ctx.meta.get(_AS_JSON):
        print_json({"error": str(failure)})
    else:
        click.echo(f"Error: {failure}", err=True)
    return FAILED
