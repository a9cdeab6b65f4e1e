"""The commands with their arguments and options. What a command runs is imported when it runs."""

import os
import sys
from collections.abc import Callable
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from ctx_hooks.cli.terminal import ERROR, CommandError, json_option, print_error, yes_option

READER_GONE = 141
"""The exit code that a shell returns if SIGPIPE ended a process, 128 and its number: `head` closes its input."""
FILE = click.Path(path_type=Path)
OWNERS = {
    "team": "The team, by its id.",
    "key": "The virtual key, or its hash.",
    "organization": "The organization, by its id.",
    "user": "The user, by id, of requests without a key.",
}
"""Whose archived texts, each with the help of its option."""


class Commands(click.Group):
    """A group of commands, which turns a command's exception into a line of text and an exit code."""

    group_class = type

    def invoke(self, ctx: click.Context) -> int:
        """Run a command and return its exit code."""
        try:
            code = self._code_of(ctx)
            if sys.stdout is not None:  # closed by the caller
                sys.stdout.flush()
        except OSError as error:  # an error of the output: its reader has gone, or a disk is full
            if sys.stdout is not None:
                # Discard the rest of the output: Python flushes once more when it exits.
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            if isinstance(error, BrokenPipeError):
                return READER_GONE
            click.echo(f"Error: {error.strerror or error}", err=True)
            return ERROR
        return code

    def _code_of(self, ctx: click.Context) -> int:
        try:
            return int(super().invoke(ctx) or 0)
        except CommandError as failure:
            return print_error(failure)
        except OSError as error:
            if error.filename is None:
                raise
            return print_error(f"{error.filename}: {error.strerror or error}")


def _runs(module: str, function: str = "run") -> Callable[[Callable[[], None]], Callable[..., Any]]:
    """Let a command call a function of a module of this package, which is imported only then."""

    def made(declared: Callable[[], None]) -> Callable[..., Any]:
        @wraps(declared)
        def run(**options: Any) -> Any:
            return getattr(import_module(f"ctx_hooks.cli.{module}"), function)(**options)

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


@commands.command(short_help="Try this installation over every route; no key, no network.")
@click.option("--provider-only", is_flag=True, help="Serve only the provider, for a configuration of yours.")
@click.option("--port", type=click.IntRange(1, 65_535), help="Where --provider-only listens; by default a free port.")
@click.option(
    "--window",
    type=click.IntRange(min=1),
    default=12_000,
    show_default=True,
    help="The window of --provider-only, in tokens.",
)
@json_option
@_runs("demo")
def demo() -> None:
    """Try this installation over every route of a real proxy; no key, no network.

    First you see the problems of this installation. Then a LiteLLM proxy with this plugin and a provider with a small window
    start on loopback. Exits with 1 if a check fails or a route is not answered.
    """


@commands.command(short_help="Find problems of this installation.")
@json_option
@_runs("demo", "examine")
def doctor() -> None:
    """Find problems of this installation: versions, vocabularies, names of LiteLLM, the switch. Exits with 1 for one."""


@commands.command(short_help="Add the plugin to a proxy configuration.")
@click.argument("config", type=FILE)
@click.option("--observe", is_flag=True, help="Decide and record only: no request is changed.")
@click.option("--events", metavar="FOLDER", help="Record events there, for `ctx-hooks report`.")
@click.option("--dashboard", is_flag=True, help="Show the page of `ctx-hooks serve` in LiteLLM's dashboard.")
@yes_option
@json_option
@_runs("init")
def init() -> None:
    """Add the plugin to CONFIG, the YAML file of `litellm --config`. You see the change, and it is written if you agree."""


@commands.command(short_help="Find the mistakes of a proxy configuration, or print its policies.")
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


@commands.command(short_help="Print clients' settings for the windows of your model groups.")
@click.argument("config", type=FILE)
@click.option("--url", default="http://localhost:4000", show_default=True, help="The proxy's address.")
@json_option
@_runs("clients")
def clients() -> None:
    """Print the settings by which clients know the windows of the model groups in CONFIG, and compact before the proxy."""


@commands.command(short_help="Show what the plugin would do with a request, and why.")
@click.argument("request", type=FILE)
@click.option("--model", help="The model group, or a LiteLLM model name.  [default: the request's own]")
@click.option("--config", type=FILE, help="The proxy configuration.")
@click.option("--team", help="Team id or alias.")
@click.option("--key", help="Alias of a virtual key.")
@click.option("--sent", is_flag=True, help="Print the request as it would be sent, and nothing else.")
@click.option("--show", is_flag=True, help="Print also the text that the model would see.")
@json_option
@_runs("explain.printed")
def explain() -> None:
    """Show what the plugin would do with a request, message by message, and why. Nothing is sent.

    REQUEST is the JSON body of a request to /v1/chat/completions, /v1/messages, /v1/responses or :generateContent, or -.
    """


@commands.command(short_help="Write a page about recorded events.")
@click.argument("events", nargs=-1, required=True)
@click.option("-o", "--output", type=FILE, default="report.html", show_default=True, help="The page; - prints it.")
@json_option
@_runs("report.page")
def report() -> None:
    """Write a page about what the plugin did, or would have done.

    EVENTS are files, folders or patterns of what the proxy writes with `events: {path: FOLDER}`.
    """


@commands.command(short_help="Serve a live page of event files, also inside LiteLLM's dashboard.")
@click.argument("events", nargs=-1, required=True)
@click.option("--host", default="127.0.0.1", show_default=True, help="Another address needs a key.")
@click.option("--port", type=click.IntRange(1, 65_535), default=4_100, show_default=True)
@json_option
@_runs("report.server")
def serve() -> None:
    """Serve a live page of event files: the report, the newest requests, limits, faults. It shows no text of a message.

    With LITELLM_SALT_KEY, or the key derived from it in CTX_HOOKS_DASHBOARD_KEY, only admins whom LiteLLM's dashboard has
    signed in see figures.
    """


@commands.command(short_help="Print a line for each decision in event files.")
@click.argument("events", nargs=-1, required=True)
@click.option("-f", "--follow", is_flag=True, help="Continue with new events.")
@_runs("report.tail")
def tail() -> None:
    """Print a coloured line for each decision, refusal, failure, fault and learned limit in event files."""


def _owner_options(*, multiple: bool) -> Callable[[Any], Any]:
    """Return the options that say whose texts."""

    def added(function: Any) -> Any:
        for kind, text in reversed(OWNERS.items()):
            function = click.option(f"--{kind}", multiple=multiple, help=text)(function)
        return function

    return added


_config_option = click.option("--config", type=FILE, help="The proxy configuration.")


@commands.group(short_help="List and print removed texts that are kept.")
def archive() -> None:
    """List and print removed texts that are kept on disk and in Redis, by tenant."""


@archive.command("ls")
@_config_option
@json_option
@_runs("archive", "print_kept")
def _archive_ls() -> None:
    """List how much is kept of each tenant."""


@archive.command("show", short_help="Print a text by its handle.")
@click.argument("handle")
@_config_option
@_owner_options(multiple=False)
@json_option
@_runs("archive", "print_kept_text")
def _archive_show() -> None:
    """Print a text by the handle of its placeholder; without an owner one that came without a key."""


@archive.command("prune")
@_config_option
@json_option
@_runs("archive", "prune")
def _archive_prune() -> None:
    """Delete what has expired; Redis does that by itself."""


@commands.command(short_help="Remove what is kept of a team, key, user or organization.")
@click.argument("config", type=FILE)
@_owner_options(multiple=True)
@click.option("--tenant", multiple=True, help="The digest that `archive ls` or `limits ls` prints.")
@yes_option
@json_option
@_runs("erase")
def erase() -> None:
    """Remove what the stores of CONFIG keep of a team, key, user or organization, and print a receipt.

    You see what was found, and are asked unless --yes. Exits with 1 if nothing was found.
    """


@commands.group(short_help="Print or clear what was learned of each deployment.")
def limits() -> None:
    """Print or clear what was learned of each deployment; DEPLOYMENT is a name as `ls` prints it, or a pattern."""


@limits.command("ls")
@click.argument("deployment", default="*")
@_config_option
@json_option
@_runs("limits", "print_learned")
def _limits_ls() -> None:
    """Print what was learned of each deployment, the newest first."""


@limits.command("clear", short_help="Forget what was learned.")
@click.argument("deployment")
@_config_option
@yes_option
@json_option
@_runs("limits", "clear")
def _limits_clear() -> None:
    """Forget what was learned of deployments; running workers keep it until they restart."""
