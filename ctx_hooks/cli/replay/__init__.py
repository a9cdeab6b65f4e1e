"""`ctx-hooks replay HISTORY...`: recorded requests as the plugin would have sent them, by several policies side by side."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from ctx_hooks.cli.terminal import FAILED, CommandError, console, json_option, print_json


@click.command()
@click.argument("histories", nargs=-1, required=True)
@click.option("--policy", "policies", multiple=True, help="A policy by name, or fields: 'reserve_tokens: 8192'. Repeatable.")
@click.option("--config", type=click.Path(path_type=Path), help="The proxy's configuration: models, prices, policies.")
@click.option("--model", default="", help="Replay all for this model or model group.")
@click.option("--window", type=click.IntRange(min=1), help="Replay all for a window of so many tokens.")
@click.option("--plot", type=click.Path(path_type=Path), help="Write an SVG of the largest sessions.")
@json_option
def command(
    histories: Sequence[str],
    policies: Sequence[str],
    config: Path | None,
    model: str,
    window: int | None,
    plot: Path | None,
    *,
    as_json: bool,
) -> int:
    """Replay recorded requests: compactions, prompt cache, cost, and what would have overflowed.

    HISTORIES are files, folders or patterns: LiteLLM's spend log (JSON lines, JSON array or CSV), logs of requests to
    OpenAI and Anthropic, session files of Claude Code and Codex, or lines with `format` and `messages`. Each is recognised
    by its content. Nothing is sent anywhere.
    """
    from ctx_hooks.cli.files import read_config  # noqa: PLC0415 - slow to load, and not for --help
    from ctx_hooks.cli.replay.plot import plot as drawing  # noqa: PLC0415
    from ctx_hooks.cli.replay.printed import WITHOUT, document, print_tables  # noqa: PLC0415
    from ctx_hooks.cli.replay.replaying import replayed  # noqa: PLC0415

    reading, replay = replayed(histories, policies, read_config(config) if config else {}, model, window)
    if plot is not None:
        try:
            plot.write_text(drawing(replay.sessions, [WITHOUT, *(way.name for way in replay.ways)]), encoding="utf-8")
        except OSError as error:
            raise CommandError(f"{plot}: {(error.strerror or str(error)).lower()}") from None
    if as_json:
        print_json(document(reading, replay))
    else:
        print_tables(console(), reading, replay)
    return 0 if replay.sessions or replay.no_text else FAILED
