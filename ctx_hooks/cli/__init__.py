"""The command line: `ctx-hooks COMMAND`."""

from ctx_hooks.cli.commands import main

__all__ = ["main"]
