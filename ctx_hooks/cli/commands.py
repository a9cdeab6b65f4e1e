"""The commands with their arguments and options. What a command runs is imported when it runs."""

import os
import sys
from collections.abc import Callable
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from ctx_hooks.cli.terminal import ERROR, CommandError, json_option, print_error, print_json, yes_option

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

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """Find a command by its name; the error for a misspelt name shows the nearest one."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            from ctx_hooks.policy.scopes import suggestion

            raise click.UsageError(f"no command {args[0]!r:.60}{suggestion(args[0], self.commands)}", ctx) from error

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the names of the commands, in the order of this module."""
        return list(self.commands)

    def invoke(self, ctx: click.Context) -> int:
        """Run a command and return its exit code."""
        try:
            code = self._code_of(ctx)
            if sys.stdout is not None:  # closed by the caller
                sys.stdout.flush()
        except BrokenPipeError:
            _discard_output()
            return READER_GONE
        except OSError as error:  # an error of the output, such as a full disk
            _discard_output()
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


def _discard_output() -> None:
    """Discard the rest of the output: Python flushes once more when it exits."""
    if sys.stdout is not None:  # closed by the caller
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


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

    First you see what keeps the plugin from working in this installation, if anything does. Then a LiteLLM proxy with this
    plugin and a provider with a small window start on loopback. The provider counts for itself and refuses what is too long
    or breaks a rule of its API. Exits with 1 if a check fails or a route is not answered.
    """


@commands.command(short_help="Look for what keeps the plugin from working here.")
@json_option
@_runs("demo", "examine")
def doctor() -> None:
    """Look for what keeps the plugin from working here: versions, vocabularies, names of LiteLLM, the switch.

    `demo` does this too, and then tries every route. Exits with 1 if a check fails.
    """


@commands.command(short_help="Add the plugin to a proxy configuration.")
@click.argument("config", type=FILE)
@click.option("--observe", is_flag=True, help="Decide and record only: no request is changed.")
@click.option("--events", metavar="FOLDER", help="Record events there, for `ctx-hooks report`.")
@yes_option
@json_option
@_runs("init")
def init() -> None:
    """Add the plugin to a proxy configuration.

    CONFIG is the YAML file that `litellm --config` is given. What would change is shown, and written if you agree.
    """


@commands.command(short_help="Find the mistakes of a proxy configuration, or print its policies.")
@click.argument("config", type=FILE)
@click.option("--probe", is_flag=True, help="Ask each server that has an address for its window.")
@click.option("--write", is_flag=True, help="Write the windows that the servers say into CONFIG, with --probe.")
@yes_option
@json_option
@_runs("check")
def check() -> None:
    """Find the mistakes of a proxy configuration, or print its policies.

    CONFIG is the YAML file that `litellm --config` is given. All mistakes are named with their path; without one you see the
    window of each deployment, every field of a policy that differs from its default, and what could be better.
    """


@commands.command(short_help="Print clients' settings for the windows of your model groups.")
@click.argument("config", type=FILE)
@click.option("--url", default="http://localhost:4000", show_default=True, help="The proxy's address.")
@json_option
@_runs("clients")
def clients() -> None:
    """Print the settings by which clients know the windows of your model groups, and compact before the proxy has to.

    CONFIG is the YAML file that `litellm --config` is given. A group whose window nobody states is left out.
    """


@commands.command(short_help="Say what would be done with a request, and why.")
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
    """Say what would be done with a request, message by message, and why.

    REQUEST is the JSON body of a request to /v1/chat/completions, /v1/messages, /v1/responses or :generateContent, or - for
    standard input. Nothing is sent.
    """


@commands.command(short_help="Make a page of what was done, from event files.")
@click.argument("events", nargs=-1, required=True)
@click.option("-o", "--output", type=FILE, default="report.html", show_default=True, help="The page; - prints it.")
@json_option
@_runs("report.page")
def report() -> None:
    """Make a page of what was done, or would have been, from event files.

    EVENTS are files, folders or patterns; the proxy writes them with `events: {path: FOLDER}` under
    callback_settings.ctx_hooks.
    """


@commands.command(short_help="Serve a live page of event files, also inside LiteLLM's dashboard.")
@click.argument("events", nargs=-1, required=True)
@click.option("--host", default="127.0.0.1", show_default=True, help="Another address needs a key.")
@click.option("--port", type=click.IntRange(1, 65_535), default=4_100, show_default=True)
@json_option
@_runs("live.server")
def serve() -> None:
    """Serve a live page of event files: requests as they come, overflows, what was cut, limits, faults. It shows no text.

    EVENTS are files, folders or patterns. With LITELLM_SALT_KEY, or the key derived of it in CTX_HOOKS_DASHBOARD_KEY, only
    admins whom LiteLLM's dashboard has signed in see figures.
    """


@commands.command(short_help="Print a line for each decision in event files.")
@click.argument("events", nargs=-1, required=True)
@click.option("-f", "--follow", is_flag=True, help="Go on with new events.")
@_runs("live.tail")
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
    """Remove what is kept of a team, key, user or organization, and print a receipt.

    CONFIG is the proxy's configuration. The archive, statistics, summaries and sizes of histories are searched, on disk and
    in Redis. You see what was found, and are asked unless --yes. Exits with 1 if nothing was found.
    """


@commands.group(short_help="Print or clear what was learned of each deployment.")
def limits() -> None:
    """Print or clear what was learned of each deployment: limits, ratios, outputs.

    DEPLOYMENT is a name as `ls` has it, or a pattern; `ls` prints all without one.
    """


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
    """Forget what was learned of deployments; the running workers still have it for a while."""


@commands.command(short_help="Print the JSON Schema of the settings, for editors.")
def schema() -> None:
    """Print the JSON Schema of the settings, for editors."""
    from ctx_hooks.policy.loading import configuration_schema

    print_json(configuration_schema())
