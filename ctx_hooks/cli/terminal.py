"""What the commands share: `--json`, errors, tables in the width of the terminal, and progress on stderr."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.status import Status
    from rich.table import Table
    from rich.text import Text

FAILED, ERROR = 1, 2
"""The exit codes of a command that found something wrong, or nothing; and of one that could not do its work."""
_AS_JSON = "ctx_hooks.as_json"
_CONTROL = {n: f"\\u{n:04x}" for n in (*range(0x20), *range(0x7F, 0xA0)) if chr(n) not in "\n\t"}
"""Control characters of terminals, each with its JSON escape, so that the text of a JSON document stays valid."""


class CommandError(Exception):
    """A command cannot do its work; the text has the reason and advice."""


def _note(ctx: click.Context, _parameter: click.Parameter, value: bool) -> None:  # noqa: FBT001 - click's signature
    ctx.meta[_AS_JSON] = value


json_option = click.option("--json", is_flag=True, expose_value=False, callback=_note, help="Print one JSON document.")
yes_option = click.option("--yes", is_flag=True, help="Do not ask.")


def printable(text: str) -> str:
    """Return a text with its control characters escaped: text from a file must not control a terminal."""
    return text.translate(_CONTROL)


def setting(value: Any, other: Any = None) -> str:
    """Return a setting's value as YAML; a mapping has no braces, no unset fields and none that are the same in `other`."""
    if isinstance(value, dict):
        shown = value if not isinstance(other, dict) else {name: v for name, v in value.items() if other.get(name) != v}
        return ", ".join(f"{name}: {setting(v)}" for name, v in shown.items() if v is not None) or "-"
    if isinstance(value, list):
        return ", ".join(map(setting, value)) or "-"
    return "-" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def counted(count: float, noun: str) -> str:
    """Return how many there are of a thing, by its name in the singular."""
    return f"{count:,.0f} {noun}{'s' * (count != 1)}"


def print_text(text: str) -> None:
    """Print a text that may quote a file."""
    click.echo(printable(text))


def print_json(value: Any) -> None:
    """Print a JSON document."""
    click.echo(json.dumps(value, indent=2))


def as_json() -> bool:
    """Whether the running command prints a JSON document."""
    ctx = click.get_current_context(silent=True)
    return ctx is not None and bool(ctx.meta.get(_AS_JSON))


def tell(document: Any, shown: RenderableType) -> None:
    """Print a command's result: the document with `--json`, else a text that may quote a file, or tables."""
    if as_json():
        print_json(document)
    elif isinstance(shown, str):
        print_text(shown)
    else:
        console().print(shown)


def print_error(error: object) -> int:
    """Print why a command failed in one line, to stderr, or as its JSON document; return the exit code."""
    line = " ".join(str(error).split())
    if as_json():
        print_json({"error": line})
    else:
        click.echo(printable(f"Error: {line}"), err=True)
    return ERROR


def console(*, stderr: bool = False) -> Console:
    """Return a console on which names from files are neither markup nor control sequences."""
    from rich.console import Console  # noqa: PLC0415 - slow to load, and not for --help or --json

    class _Console(Console):
        def render_str(self, text: str, **options: Any) -> Text:
            """Every string passes here, also in a table; Rich itself lets ESC through."""
            return super().render_str(printable(text), **options)

    return _Console(stderr=stderr, highlight=False, markup=False, emoji=False)


def table(*headings: str, right: tuple[int, ...] = (), folded: tuple[int, ...] = ()) -> Table:
    """Return a table; `right` are its columns of figures, `folded` those whose words wrap: others break a long name."""
    from rich.box import SIMPLE_HEAD  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    made = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for i, heading in enumerate(headings):
        made.add_column(heading, justify="right" if i in right else "left", overflow="fold", no_wrap=i in right)
        if i in folded:
            made.columns[i].ratio = 1
    return made


def confirmed(question: str) -> bool:
    """Return whether the user says yes; raises CommandError if there is no terminal to ask on."""
    if not sys.stdin.isatty():
        raise CommandError("nothing was changed: there is no terminal to ask on, and no --yes")
    return click.confirm(question, err=True)


def working(text: str) -> Status:
    """Show progress on stderr, only on a terminal."""
    return console(stderr=True).status(text)
