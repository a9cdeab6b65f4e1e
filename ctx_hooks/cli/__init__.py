"""The command line: `ctx-hooks COMMAND`. Each command is a module of its own, imported when that command is asked for."""

from __future__ import annotations

import errno
import logging
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from io import StringIO, TextIOWrapper
from types import MappingProxyType

import click
from click.shell_completion import CompletionItem

from ctx_hooks.cli.terminal import FAILED, CommandError, print_error, printable

COMMANDS = MappingProxyType(
    {
        "demo": "Ask a real proxy over every route; no key, no network.",
        "check": "Find the mistakes of a proxy configuration, or print its policies.",
        "doctor": "Try the plugin in this installation, and look at a configuration.",
        "explain": "Say what would be done with a request, and why.",
        "replay": "Replay recorded sessions: tokens, cache and cost.",
        "report": "Make a page of what was done, from event files.",
        "archive": "List, print and delete the cut texts that are kept.",
        "limits": "Print or clear what was learned of each deployment.",
        "schema": "Print the JSON Schema of the settings.",
    }
)
"""Each command's help, here so that no command is imported for it. The module has the command's name."""
INTERRUPTED = 130
"""What a shell returns for a process that Ctrl-C ended: 128 and the number of SIGINT."""
FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""What a disk says that takes no more, of the output as of a temporary file."""
READER_GONE = 141
"""The same for SIGPIPE: who reads the output closed it, as `head` does."""


class Commands(click.Group):
    """A group that imports the module of a command when that command is run, or asked for its own help."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the names of the commands."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        """Return a command, None for an unknown name."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(f"ctx_hooks.cli.{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the list of commands."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the commands that begin as was typed, and the group's own options."""
        named = [CompletionItem(name, help=line) for name, line in COMMANDS.items() if name.startswith(incomplete)]
        return named + click.Command.shell_complete(self, ctx, incomplete)

    def invoke(self, ctx: click.Context) -> int:
        """Run a command and return its exit code."""
        try:
            code = super().invoke(ctx)
            if sys.stdout is not None:  # closed by the caller
                sys.stdout.flush()
        except CommandError as failure:
            return print_error(ctx, failure)
        except BrokenPipeError:
            _discard_output()
            return READER_GONE
        except OSError as error:
            if error.errno not in FULL:
                raise
            _discard_output()
            click.echo(f"Error: {error.strerror}", err=True)
            return FAILED
        return int(code or 0)


def _discard_output() -> None:
    """Lead the rest of the output nowhere: Python flushes once more at its end."""
    if sys.stdout is not None:  # closed by the caller
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 fine, 1 something is wrong and is told, 2 wrong usage of the command.",
)
@click.version_option(package_name="ctx-hooks", prog_name="ctx-hooks")
def commands() -> None:
    """Fit LLM conversations to their model's context window."""


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
