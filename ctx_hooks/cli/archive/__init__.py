"""`ctx-hooks archive ls | show | prune | delete`: the cut texts that are kept on disk and in Redis, by tenant."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from ctx_hooks.cli.terminal import CommandError, json_option, print_json, print_text

OWNERS = {
    "team": "The team, by its id.",
    "key": "The virtual key, or its hash.",
    "organization": "The organization, by its id.",
    "user": "The user, by id, of requests without a key.",
}
"""Whose texts, each with the help of its option."""


def _handle(_ctx: click.Context, _parameter: click.Parameter, text: str) -> str:
    from ctx_hooks.conversation.handles import HANDLE_CHARS, is_handle  # noqa: PLC0415 - slow to load, and not for --help

    if not is_handle(text):
        raise click.BadParameter(f"a handle has {HANDLE_CHARS} characters of a to z and 2 to 7")
    return text


def _options(*, owners: bool = True, tenant: bool = True) -> Callable[[Any], Any]:
    """Return the options of an action: the configuration, `--json`, and whose texts."""
    options = [click.option("--config", type=click.Path(path_type=Path), help="The proxy configuration."), json_option]
    if owners:
        options += [click.option(f"--{kind}", help=text) for kind, text in OWNERS.items()]
    if tenant:
        options.append(click.option("--tenant", help="The tenant, as `ls` names it."))

    def added(function: Any) -> Any:
        for option in reversed(options):
            function = option(function)
        return function

    return added


@click.group()
def command() -> None:
    """List, print and delete the cut texts that are kept on disk and in Redis, by tenant."""


@command.command("ls")
@_options()
def _ls(*, config: Path | None, as_json: bool, **owner: str | None) -> None:
    """List how much is kept of each tenant; with an owner its texts."""
    from ctx_hooks.cli.archive.kept import lines, listed, tenant_of  # noqa: PLC0415 - slow to load, and not for --help

    found = listed(config, tenant_of(owner))
    if as_json:
        print_json([{"place": place, **asdict(stored)} for place, texts in found.items() for stored in texts])
    else:
        print_text("\n".join(lines(found, time.time())) or "Nothing is kept.")


@command.command("show", short_help="Print a text by its handle.")
@click.argument("handle", callback=_handle)
@_options(tenant=False)
def _show(*, handle: str, config: Path | None, as_json: bool, **owner: str | None) -> None:
    """Print a text by the handle of its placeholder; without an owner one that came without a key."""
    from ctx_hooks.cli.archive.kept import text_of  # noqa: PLC0415

    text = text_of(config, owner, handle)
    if as_json:
        print_json({"handle": handle, "text": text})
    elif sys.stdout.isatty():
        print_text(text)
    else:
        click.echo(text.encode("utf-8", "replace"))


@command.command("prune")
@_options(owners=False, tenant=False)
def _prune(*, config: Path | None, as_json: bool) -> None:
    """Delete what has expired; Redis does that by itself."""
    from ctx_hooks.cli.archive.kept import pruned  # noqa: PLC0415

    _print_deleted(pruned(config), as_json=as_json)


@command.command("delete")
@_options()
def _delete(*, config: Path | None, as_json: bool, **owner: str | None) -> None:
    """Delete all texts of an owner."""
    from ctx_hooks.cli.archive.kept import deleted, tenant_of  # noqa: PLC0415

    tenant = tenant_of(owner)
    if not tenant:
        raise click.UsageError("Say whose texts: --team, --key, --organization, --user or --tenant.")
    gone = deleted(config, tenant)
    if not gone:
        raise CommandError("Nothing is kept of this owner.")
    _print_deleted(gone, as_json=as_json)


def _print_deleted(texts: int, *, as_json: bool) -> None:
    if as_json:
        print_json({"deleted": texts})
    else:
        click.echo(f"{texts:,} texts deleted")
