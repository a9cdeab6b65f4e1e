"""The OpenAI SDK on chat completions, answered by a Gemini deployment."""

from dataclasses import replace

from descriptions import openai_chat

CLIENT = replace(openai_chat.CLIENT, name="OpenAI SDK, chat to Gemini", provider="gemini")
