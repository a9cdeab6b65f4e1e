"""Clients that compact their conversations by themselves, known by their user agent."""

from __future__ import annotations

COMPACTING_CLIENTS = ("claude-cli/", "codex", "opencode/", "qwencode/", "geminicli")
"""How the user agents begin of Claude Code, Codex, opencode, Qwen Code and Gemini CLI, in lower case.

As sent by their versions 2.1, 0.169, 1.18, 0.15 and 0.61. Others compact as well (pi, nanobot) but show the SDK that they
are built on: they are treated as clients that do not, which costs them the chance and nothing else.
"""


def compacts_itself(user_agent: object) -> bool:
    """Return whether a user agent, None where there is none, is that of a client that compacts by itself."""
    return isinstance(user_agent, str) and user_agent.lower().startswith(COMPACTING_CLIENTS)
