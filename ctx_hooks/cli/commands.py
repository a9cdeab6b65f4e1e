"""The commands with their arguments and options. What a command runs is imported when it runs."""

import asyncio
import logging
import os
import sys
from collections.abc import Callable, Coroutine, Sequence
from functools import wraps
from importlib import import_module
from io import TextIOWrapper
from pathlib import Path
from typing import Any

import click

from ctx_hooks.cli.terminal import CommandError, json_option, print_error, yes_option

INTERRUPTED = 130
"""The exit code of a shell if Ctrl-C ended a process: 128 and the signal's number."""
FILE = click.Path(path_type=Path)
OWNERS = {
    "team": "The team, by its id.",
    "key": "The virtual key, or its hash.",
    "organization": "The organization, by its id.",
    "user": "The user, by id, of requests without a key.",
}
"""Whose archived texts, each with the help of its option."""


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
    except OSError as error:  # of the output: a disk is full
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # the rest of the output: Python flushes once more when it exits
        return print_error(error.strerror or error)


class Commands(click.Group):
    """A group of commands, which turns a command's exception into a line of text and an exit code."""

    group_class = type

    def invoke(self, ctx: click.Context) -> int:
        """Run a command and return its exit code."""
        try:
            code = int(super().invoke(ctx) or 0)
        except CommandError as failure:
            return print_error(failure)
        except OSError as error:
            if error.filename is None:
                raise
            return print_error(f"{error.filename}: {error.strerror or error}")
        sys.stdout.flush()
        return code


def _runs(module: str, function: str = "run") -> Callable[[Callable[[], None]], Callable[..., Any]]:
    """Let a command call a function of a module of this package, which is imported only then; it may be asynchronous."""

    def made(declared: Callable[[], None]) -> Callable[..., Any]:
        @wraps(declared)
        def run(**options: Any) -> Any:
            result = getattr(import_module(f"ctx_hooks.cli.{module}"), function)(**options)
            return asyncio.run(result) if isinstance(result, Coroutine) else result

        return run

    return made


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 fine, 1 something wrong was found, 2 the command cannot be done.",
)
@click.version_option(package_name="ctx-hooks", prog_name="ctx-hooks")
def commands() -> None:
    """Fit LLM conversations to their model's context window."""


@commands.command()
@click.option("--provider-only", is_flag=True, help="Serve only the provider, for a configuration of yours.")
@click.option("--port", type=click.IntRange(1, 65_535), help="Where it listens; by default a free port.")
@click.option("--window", type=click.IntRange(1), default=12_000, show_default=True, help="Its window, in tokens.")
@json_option
@_runs("demo")
def demo() -> None:
    """Try this installation over every route; no key, no network.

    First you see the problems of this installation. Then a LiteLLM proxy with this plugin and a provider with a small window
    start on loopback. Exits with 1 if a check fails or a route is not answered.
    """


@commands.command()
@json_option
@_runs("demo", "examine")
def doctor() -> None:
    """Find problems of this installation. Exits with 1 for one.

    It looks at versions, vocabularies, the private names of LiteLLM, and the switch.
    """


@commands.command()
@click.argument("config", type=FILE)
@click.option("--observe", is_flag=True, help="Decide and record only: no request is changed.")
@click.option("--events", metavar="FOLDER", help="Record events there, for `ctx-hooks report`.")
@click.option("--dashboard", is_flag=True, help="Show the page of `ctx-hooks serve` in LiteLLM's dashboard.")
@yes_option
@_runs("editing")
def init() -> None:
    """Add the plugin to CONFIG, the YAML file of `litellm --config`. You see the change, and it is written if you agree."""


@commands.command()
@click.argument("config", type=FILE)
@click.option("--probe", is_flag=True, help="Ask each server with an api_base for its window.")
@click.option("--write", is_flag=True, help="With --probe, write the servers' windows into CONFIG.")
@yes_option
@json_option
@_runs("check")
def check() -> None:
    """Find the mistakes of CONFIG, the YAML file of `litellm --config`.

    Without a mistake you see the window of each deployment, each policy field that differs from its default, and advice.
    """


@commands.command()
@click.argument("config", type=FILE)
@click.option("--url", default="http://localhost:4000", show_default=True, help="The proxy's address.")
@json_option
@_runs("windows", "print_clients_settings")
def clients() -> None:
    """Print clients' settings for the windows of CONFIG's model groups. With them clients compact before the proxy does."""


@commands.command()
@click.argument("request", type=FILE)
@click.option("--model", help="The model group, or a LiteLLM model name.  [default: the request's own]")
@click.option("--config", type=FILE, help="The proxy configuration.")
@click.option("--team", help="Team id or alias.")
@click.option("--key", help="Alias of a virtual key.")
@click.option("--sent", is_flag=True, help="Print the request as it would be sent, and nothing else.")
@click.option("--show", is_flag=True, help="Print also the text that the model would see.")
@json_option
@_runs("explain")
def explain() -> None:
    """Show what the plugin would do with a request, and why. Nothing is sent.

    REQUEST is the JSON body of a request to /v1/chat/completions, /v1/messages, /v1/responses or :generateContent, or -.
    """


@commands.command()
@click.argument("events", nargs=-1, required=True)
@click.option("-o", "--output", type=FILE, default="report.html", show_default=True, help="The page; - prints it.")
@json_option
@_runs("report.page")
def report() -> None:
    """Write a page about what the plugin did, or would have done.

    EVENTS are files, folders or patterns of what the proxy writes with `events: {path: FOLDER}`.
    """


@commands.command()
@click.argument("events", nargs=-1, required=True)
@click.option("--host", default="127.0.0.1", show_default=True, help="Another address needs a key.")
@click.option("--port", type=click.IntRange(1, 65_535), default=4_100, show_default=True)
@json_option
@_runs("report.server")
def serve() -> None:
    """Serve a live page of event files, also in LiteLLM's dashboard.

    It has the report, the newest requests, limits and faults, and shows no text of a message. With LITELLM_SALT_KEY, or the
    key derived from it in CTX_HOOKS_DASHBOARD_KEY, only admins whom LiteLLM's dashboard has signed in see figures.
    """


@commands.command()
@click.argument("events", nargs=-1, required=True)
@click.option("-f", "--follow", is_flag=True, help="Continue with new events.")
@_runs("report.event_files", "tail")
def tail() -> None:
    """Print a coloured line for each decision in event files. Also for refusals, failures, faults and learned limits."""


def _owner_options(*, multiple: bool) -> Callable[[Any], Any]:
    def added(function: Any) -> Any:
        for kind, text in reversed(OWNERS.items()):
            function = click.option(f"--{kind}", multiple=multiple, help=text)(function)
        return function

    return added


_config_option = click.option("--config", type=FILE, help="The proxy configuration.")


@commands.group()
def archive() -> None:
    """List and print removed texts that are kept, by tenant."""


@archive.command("ls")
@_config_option
@json_option
@_runs("stores", "print_kept")
def _archive_ls() -> None:
    """List how much is kept of each tenant."""


@archive.command("show")
@click.argument("handle")
@_config_option
@_owner_options(multiple=False)
@json_option
@_runs("stores", "print_kept_text")
def _archive_show() -> None:
    """Print a text by its placeholder's handle. Without an owner: one that came without a key."""


@archive.command("prune")
@_config_option
@json_option
@_runs("stores", "prune")
def _archive_prune() -> None:
    """Delete what has expired; Redis does that by itself."""


@commands.command()
@click.argument("config", type=FILE)
@_owner_options(multiple=True)
@click.option("--tenant", multiple=True, help="The digest that `archive ls` or `limits ls` prints.")
@yes_option
@json_option
@_runs("erase")
def erase() -> None:
    """Remove what is kept of a team, key, user or organization. CONFIG names the stores.

    You see what was found, are asked unless --yes, and get a receipt. Exits with 1 if nothing was found.
    """


@commands.group()
def limits() -> None:
    """Print or clear what was learned of each deployment. DEPLOYMENT is a name as `ls` prints it, or a pattern."""


@limits.command("ls")
@click.argument("deployment", default="*")
@_config_option
@json_option
@_runs("stores", "print_learned")
def _limits_ls() -> None:
    """Print what was learned of each deployment, the newest first."""


@limits.command("clear")
@click.argument("deployment")
@_config_option
@yes_option
@json_option
@_runs("stores", "clear")
def _limits_clear() -> None:
    """Forget what was learned of deployments. Running workers keep it until they restart."""
