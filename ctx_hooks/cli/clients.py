"""`ctx-hooks clients CONFIG`: the settings by which clients know the windows of a proxy's model groups, ready to paste.

Sources: the documentation of Codex, opencode, pi, qwen-code, Kimi Code and cline; Claude Code 2.1.197 itself, whose
`CLAUDE_CODE_AUTO_COMPACT_WINDOW` is at least 100,000, and `CLAUDE_AUTOCOMPACT_PCT_OVERRIDE` a share of it less 20,000;
`tokenLimits.ts` of Gemini CLI, which takes every model to hold 1,048,576 tokens.
"""

from pathlib import Path

from ctx_hooks.cli.configuration import Configuration, read_configuration
from ctx_hooks.cli.rendering import render
from ctx_hooks.cli.terminal import CommandError, as_json, print_json, print_text
from ctx_hooks.request.target import window_at
from ctx_hooks.tokens.budget import budget_tokens_of

EARLIER_FRACTION = 0.9
"""A client compacts between two requests: it has to begin before the proxy's budget is reached."""


def run(*, config: Path, url: str) -> None:
    """Print each client's settings for the groups whose window is known; raises CommandError if there is none."""
    sizes = sizes_of(read_configuration(config))
    if not sizes:
        raise CommandError(
            f"{config}: nobody states the window of a model group; `ctx-hooks check {config} --probe` asks servers"
        )
    groups = [{"name": name, "window_tokens": size[0], "compact_at_tokens": size[1]} for name, size in sizes.items()]
    if as_json():
        print_json(groups)
    else:
        print_text(render("clients.txt", groups=groups, url=url.rstrip("/")))


def sizes_of(found: Configuration) -> dict[str, tuple[int, int]]:
    """Return of each group the smallest stated window of its deployments, and the size at which a client should compact."""
    sizes: dict[str, tuple[int, int]] = {}
    for entry in found.listed:
        policy = found.resolved(entry).policy
        window = window_at(entry.deployment, policy)
        if window.source != "default" and "*" not in entry.group:
            size = (int(window.tokens), int(EARLIER_FRACTION * budget_tokens_of(window, policy)))
            sizes[entry.group] = min(sizes.get(entry.group, size), size)
    return sizes
