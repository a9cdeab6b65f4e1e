"""`ctx-hooks explain`: what the plugin would do with a request, or did with one, and why. Nothing is sent or stored."""

from __future__ import annotations

from pathlib import Path

import click

from ctx_hooks.cli.terminal import json_option


@click.command()
@click.argument("request", type=click.Path(path_type=Path), required=False)
@click.option("--model", help="The model group, or a LiteLLM model name.  [default: the request's own]")
@click.option("--config", type=click.Path(path_type=Path), help="The proxy configuration.")
@click.option("--team", help="Team id or alias.")
@click.option("--key", help="Alias of a virtual key.")
@click.option("--policy", help="A policy to try: a preset's name, or fields, as '{reserve_tokens: 8192}'.")
@click.option("--diff", is_flag=True, help="Print what changes in the request's JSON, too.")
@click.option("--sent", is_flag=True, help="Print the request as it would be sent, and nothing else.")
@click.option("--last", is_flag=True, help="Explain the last request that the proxy has written to its event file.")
@click.option("--id", "wanted", help="With --last: of this id (x-litellm-call-id).")
@click.option("--events", help="With --last: the event file or its folder.  [default: that of the configuration]")
@json_option
def command(
    *,
    request: Path | None,
    model: str | None,
    config: Path | None,
    team: str | None,
    key: str | None,
    policy: str | None,
    diff: bool,
    sent: bool,
    last: bool,
    wanted: str | None,
    events: str | None,
    as_json: bool,
) -> None:
    """Say what would be done with a request, message by message, and why.

    REQUEST is the JSON body of a request to /v1/chat/completions, /v1/messages, /v1/responses or :generateContent, or - for
    standard input. Nothing is sent. With --last, what was done with a request is read from the event file, which has figures
    and names, never text.
    """
    if last == (request is not None):
        raise click.UsageError("Name a file with a request, or --last.")
    if last:
        from ctx_hooks.cli.explain.last import explain_last  # noqa: PLC0415 - slow to load, and not for --help

        explain_last(config, events, wanted, as_json=as_json)
        return
    if wanted or events:
        raise click.UsageError("--id and --events belong to --last.")
    from ctx_hooks.cli.explain.decided import decided  # noqa: PLC0415
    from ctx_hooks.cli.explain.printed import print_decided, print_document, print_sent  # noqa: PLC0415

    assert request is not None  # noqa: S101 - as asked above
    found = decided(request, model, config, team, key, policy)
    if sent:
        print_sent(found)
    elif as_json:
        print_document(found)
    else:
        print_decided(found, diff=diff)
