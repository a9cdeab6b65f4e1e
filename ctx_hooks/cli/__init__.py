"""The command line: `ctx-hooks COMMAND`."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Sequence
from io import StringIO, TextIOWrapper

import click

from ctx_hooks.cli.commands import commands
from ctx_hooks.cli.terminal import printable

INTERRUPTED = 130
"""What a shell returns for a process that Ctrl-C ended: 128 and the number of SIGINT."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    logging.getLogger("ctx_hooks").addHandler(logging.NullHandler())  # a command prints what it has to say itself
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # what a terminal cannot show is no reason to end
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # nothing is fetched
    try:
        return int(commands.main(argv, prog_name="ctx-hooks", standalone_mode=False) or 0)
    except click.ClickException as error:
        told = StringIO()
        error.show(told)
        click.echo(printable(told.getvalue()), err=True, nl=False)  # an argument may be the name of any file
        return error.exit_code
    except click.Abort:
        return INTERRUPTED  # what was started has ended with its context managers
