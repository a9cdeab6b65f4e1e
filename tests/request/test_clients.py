"""Clients that compact by themselves are known by the user agent that they send."""

import pytest

from ctx_hooks.request.target import compacts_itself


@pytest.mark.parametrize("user_agent", [
    "claude-cli/2.1.197 (external, sdk-cli)", "codex_exec/0.169.0 (Debian 12.0.0; x86_64) unknown (codex_exec; 0.169.0)",
    "codex_cli_rs/0.50.0 (Mac OS 15.0; arm64)", "opencode/1.18.33 ai-sdk/provider-utils/4.0.23 runtime/bun/1.3.14",
    "QwenCode/0.15.10 (linux; x64)", "GeminiCLI-tui/0.61.0/m (linux; x64; terminal)",
])  # fmt: skip
def test_coding_agents_are_known(user_agent):
    assert compacts_itself(user_agent)


@pytest.mark.parametrize(
    "user_agent", [None, "", 7, "OpenAI/Python 2.20.0", "Anthropic/Python 2.12.0", "curl/8 claude-cli/2"]
)
def test_whoever_else_asks_is_not(user_agent):
    assert not compacts_itself(user_agent)
