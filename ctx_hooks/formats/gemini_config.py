"""What stands around the `contents` of a request to Google: its route, and its `generationConfig`, LiteLLM's `config`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

METHODS = (":generateContent", ":streamGenerateContent")
"""How the paths of the routes end that carry a conversation; `:countTokens` only asks for its size."""
CONFIGS = ("config", "generationConfig", "generation_config")
"""LiteLLM renames the field between its pre-call hook and the attempts; where both stand, `config` is what it sends."""
OUTPUT = ("maxOutputTokens", "max_output_tokens")
COUNTED = ("responseSchema", "responseJsonSchema", "systemInstruction", "tools")
"""Google: "The size of your response schema counts towards the input token limit." Its SDK has the other two here."""


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


def with_config(fields: Mapping[str, Any], changed: Mapping[str, Any]) -> dict[str, Any]:
    """Return the configuration's field with what changes in it."""
    return {config_name(fields): {**config_of(fields), **changed}}


def value_of(fields: Any, name: str) -> Any:
    """Return the value of the field `name`, which stands there in camelCase or in snake_case; None where neither does."""
    if not isinstance(fields, Mapping):
        return None
    found = fields.get(name)
    return fields.get(snake(name)) if found is None else found


def snake(name: str) -> str:
    """Return a name in camelCase as one in snake_case."""
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name)
