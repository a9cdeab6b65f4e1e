"""The command line: `ctx-hooks demo`."""

from __future__ import annotations

import argparse

from ctx_hooks.cli import demo


def main(argv: list[str] | None = None) -> int:
    """Run one command and return its exit code."""
    parser = argparse.ArgumentParser(prog="ctx-hooks", description="Conversations that fit their model's window.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("demo", help="an overflowing conversation over every route of a real proxy; no key, no network")
    parser.parse_args(argv)
    try:
        return demo.run()
    except KeyboardInterrupt:
        return 130  # the shell's code for Ctrl-C; the processes have ended with their context managers
