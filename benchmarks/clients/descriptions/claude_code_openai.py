"""Claude Code, answered by an OpenAI-format deployment."""

from dataclasses import replace

from descriptions import claude_code

CLIENT = replace(claude_code.CLIENT, name="Claude Code to OpenAI", provider="openai")
