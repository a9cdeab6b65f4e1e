"""The command line: `ctx-hooks COMMAND`."""

import logging
import os
import sys
from collections.abc import Sequence
from io import TextIOWrapper

import click

from ctx_hooks.cli.commands import commands
from ctx_hooks.cli.terminal import print_error

INTERRUPTED = 130
"""The exit code that a shell returns if Ctrl-C ended a process: 128 and the number of SIGINT."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    logging.getLogger("ctx_hooks").addHandler(logging.NullHandler())  # commands print their own messages
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a character that a terminal cannot show does not end the command
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # nothing is fetched
    try:
        return int(commands.main(argv, prog_name="ctx-hooks", standalone_mode=False) or 0)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return error.exit_code
    except click.UsageError as error:
        help_of = f" (see {error.ctx.command_path} --help)" if error.ctx else ""
        return print_error(f"{error.format_message().rstrip('.')}{help_of}")
    except click.Abort:
        return INTERRUPTED  # context managers have ended all started processes
