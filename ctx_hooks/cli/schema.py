"""`ctx-hooks schema`: the JSON Schema of the settings and of a policy's fields."""

from __future__ import annotations

from typing import Any

import click

from ctx_hooks.cli.terminal import json_option, print_json


@click.command()
@json_option
def command(*, as_json: bool) -> None:  # noqa: ARG001 - it is JSON in any case
    """Print the JSON Schema of the settings."""
    print_json(schema())


def schema() -> dict[str, Any]:
    """Return the JSON Schema of the settings and of a policy's fields."""
    from ctx_hooks.policy.settings import Policy, Settings  # noqa: PLC0415 - slow to load, and not for --help

    return {"settings": Settings.model_json_schema(), "policy": Policy.model_json_schema()}
