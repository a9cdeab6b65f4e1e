"""What stands around the `contents` of a request to Google: its route, and its `generationConfig`, LiteLLM's `config`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ctx_hooks.formats.gemini import value_of

METHODS = (":generateContent", ":streamGenerateContent")
"""How the paths of the routes end that carry a conversation; `:countTokens` only asks for its size."""
CONFIGS = ("config", "generationConfig", "generation_config")
"""LiteLLM renames the field between its pre-call hook and the attempts; where both stand, `config` is what it sends."""
OUTPUT = ("maxOutputTokens", "max_output_tokens")
COUNTED = ("responseSchema", "responseJsonSchema", "systemInstruction", "tools")
"""Google: "The size of your response schema counts towards the input token limit." Its SDK has the other two here."""


def came_over_google_route(fields: Mapping[str, Any]) -> bool:
    """Return whether the proxy received the request on such a route, or what LiteLLM has made of it for another provider."""
    received = fields.get("proxy_server_request")
    url = received.get("url") if isinstance(received, Mapping) else None
    return isinstance(url, str) and url.split("?")[0].endswith(METHODS)


def config_name(fields: Mapping[str, Any]) -> str:
    """Return the name of the field that holds the configuration, that of LiteLLM where none does."""
    return next((name for name in CONFIGS if isinstance(fields.get(name), Mapping)), CONFIGS[0])


def config_of(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the configuration, empty where there is none."""
    found = fields.get(config_name(fields))
    return found if isinstance(found, Mapping) else {}


def counted_values(fields: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return what is sent and counted beside `contents` and the top-level `tools`: the system text and schemas."""
    config = config_of(fields)
    return (value_of(fields, "systemInstruction"), *(value_of(config, name) for name in COUNTED))


def with_output(fields: Mapping[str, Any], tokens: int) -> dict[str, Any]:
    """Return the configuration's field with the output limit lowered to `tokens`, in the spelling that it came in."""
    config = config_of(fields)
    name = next((n for n in OUTPUT if config.get(n) is not None), OUTPUT[0])
    return {config_name(fields): {**config, name: tokens}}
