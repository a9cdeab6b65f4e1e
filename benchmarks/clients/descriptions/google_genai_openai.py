"""The Google Gen AI SDK, answered by an OpenAI-format deployment."""

from dataclasses import replace

from descriptions import google_genai_sdk

CLIENT = replace(google_genai_sdk.CLIENT, name="Google Gen AI SDK to OpenAI", provider="openai")
