"""The command line: demo, check, schema, explain, replay, limits, archive, report."""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

from ctx_hooks.cli import archive, check, demo, explain, limits, replay, report


def main(argv: list[str] | None = None) -> int:
    """Run one command and return its exit code."""
    parser = argparse.ArgumentParser(prog="ctx-hooks", description="Fits LLM conversations to their model's context window.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("demo", help="an overflowing conversation over every route of a real proxy; no key, no network")
    commands.add_parser("schema", help="the JSON Schema of the settings")
    checked = commands.add_parser("check", help="validate a proxy configuration and print the resolved policies")
    checked.add_argument("config", type=Path)
    explained = commands.add_parser("explain", help="what the plugin would do with a request, and why; nothing is sent")
    explained.add_argument("request", type=Path)
    explained.add_argument("--model", required=True, help="the model group, or a LiteLLM model name")
    explained.add_argument("--config", type=Path, help="the proxy configuration")
    explained.add_argument("--team", help="team id or alias")
    explained.add_argument("--key", help="alias of a virtual key")
    explained.add_argument("--diff", action="store_true", help="print only what changes in the request")
    replayed = commands.add_parser("replay", help="recorded sessions, request by request: tokens, cache and cost")
    replayed.add_argument("sessions", type=Path, help="JSON lines with `format` and `messages`")
    replayed.add_argument("--budget", type=int, default=32_000, help="trigger tokens: a larger request is compacted")
    replayed.add_argument("--plot", type=Path, help="write a plot of the last session (needs matplotlib)")
    learned = commands.add_parser("limits", help="statistics of each deployment, in the Redis that the workers share")
    learned.add_argument("action", choices=["ls", "clear"])
    learned.add_argument("deployment", nargs="?", help="a deployment as `ls` names it, or a pattern with *")
    archive.add_arguments(commands)
    reported = commands.add_parser("report", help="what the plugin did or would have done, as a page, from files of events")
    reported.add_argument("events", nargs="+", metavar="EVENTS", help="files, folders or patterns")
    reported.add_argument("-o", "--output", type=Path, default=Path("report.html"), help="the page (default: report.html)")
    arguments = parser.parse_args(argv)
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # nothing is fetched
    try:
        return _run(arguments)
    except KeyboardInterrupt:
        return 130  # the shell's code for Ctrl-C; the processes have ended with their context managers


def _run(arguments: argparse.Namespace) -> int:
    if arguments.command == "check":
        return check.run(arguments.config)
    if arguments.command == "schema":
        print(json.dumps(check.schema(), indent=2))
        return 0
    if arguments.command == "explain":
        return explain.run(arguments)
    if arguments.command == "replay":
        return replay.run(arguments.sessions, arguments.budget, arguments.plot)
    if arguments.command == "limits":
        return limits.run(arguments.action, arguments.deployment)
    if arguments.command == "archive":
        return archive.run(arguments)
    if arguments.command == "report":
        return report.run(arguments.events, arguments.output)
    return demo.run()
