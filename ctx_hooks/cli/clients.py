"""`ctx-hooks clients CONFIG`: the settings by which clients know the windows of a proxy's model groups, ready to paste.

Sources: the documentation of Codex, opencode, pi, qwen-code, Kimi Code and cline; Claude Code 2.1.197 itself, whose
`CLAUDE_CODE_AUTO_COMPACT_WINDOW` is at least 100,000, and `CLAUDE_AUTOCOMPACT_PCT_OVERRIDE` a share of it less 20,000;
`tokenLimits.ts` of Gemini CLI, which takes every model to hold 1,048,576 tokens.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from ctx_hooks.cli.configuration import read_configuration
from ctx_hooks.cli.rendering import render
from ctx_hooks.cli.terminal import CommandError, as_json, print_json, print_text
from ctx_hooks.request.target import window_at
from ctx_hooks.tokens.budget import budget_tokens_of

if TYPE_CHECKING:
    from pathlib import Path

    from ctx_hooks.cli.configuration import Configuration

EARLIER_FRACTION = 0.9
"""A client compacts between two requests: it has to begin before the proxy's budget is reached."""
CLAUDE_LEAST_WINDOW, CLAUDE_OUTPUT = 100_000, 20_000
GEMINI_WINDOW = 1_048_576


@dataclass(frozen=True, slots=True)
class Group:
    """A model group: its window and the size at which a client should compact, in tokens."""

    name: str
    window_tokens: int
    compact_at_tokens: int

    @property
    def claude_window(self) -> int:
        """The least window that Claude Code takes."""
        return max(self.window_tokens, CLAUDE_LEAST_WINDOW)

    @property
    def claude_percent(self) -> int:
        """The share of it, less the output, at which Claude Code compacts."""
        return min(95, max(1, 100 * self.compact_at_tokens // (self.claude_window - CLAUDE_OUTPUT)))

    @property
    def gemini_fraction(self) -> float:
        """The share of the window that Gemini CLI assumes."""
        return round(self.compact_at_tokens / GEMINI_WINDOW, 4)


def run(*, config: Path, url: str) -> None:
    """Print each client's settings for the groups whose window is known.

    Raises:
        CommandError: no group's window is known.
    """
    groups = groups_of(read_configuration(config))
    if not groups:
        raise CommandError(
            f"{config}: nobody states the window of a model group; `ctx-hooks check {config} --probe` asks servers"
        )
    if as_json():
        print_json([asdict(group) for group in groups])
    else:
        print_text(render("clients.txt", groups=groups, url=url.rstrip("/")))


def groups_of(found: Configuration) -> list[Group]:
    """Return the groups with the smallest stated window and budget of their deployments."""
    sizes: dict[str, tuple[int, int]] = {}
    for entry in found.listed:
        policy = found.resolved(entry).policy
        window = window_at(entry.deployment, policy)
        if window.source != "default" and "*" not in entry.group:
            size = (int(window.tokens), int(EARLIER_FRACTION * budget_tokens_of(window, policy)))
            sizes[entry.group] = min(sizes.get(entry.group, size), size)
    return [Group(name, *size) for name, size in sizes.items()]
