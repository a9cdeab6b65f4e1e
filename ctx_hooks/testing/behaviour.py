"""How the fake provider behaves: what it counts and refuses, and what it answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from ctx_hooks.testing.rules import WireFormat

Script = Callable[[WireFormat, Mapping[str, Any], int], "Reply"]
"""Called with the format, the payload and how many requests of the same conversation were answered before."""


StreamedForm = Literal["wording", "nested", "flat", "failed"]
"""How a streamed request is refused: as the wording says, or by an event whose error is nested in it, whose error's fields
stand beside its type (Responses alone), or that is a failed response (Responses alone)."""


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer: a text, or a call of a tool with its arguments."""

    text: str = ""
    tool: str | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ProviderSettings:
    """How the provider counts and refuses.

    `tokens_factor` is what it bills per cl100k_base token; `noise_fraction` varies that by content, the same for the
    same content. `counts_output` adds the requested output to the input before comparing with the window. While it `holds`,
    it answers nothing, and records of each request whether its sender has `left`. A `refused_form` other than that of the
    wording refuses streamed requests inside a 200 answer, `refused_after_opening` behind the events that open one.
    """

    window_tokens: int = 8_000
    windows: Mapping[str, int] = field(default_factory=dict)
    tokens_factor: float = 1.0
    noise_fraction: float = 0.0
    message_overhead_tokens: int = 4
    tool_overhead_tokens: int = 8
    counts_output: bool = False
    max_output_tokens: int | None = None
    wording: str = "openai"
    silent_truncation: bool = False
    holds: bool = False
    refused_form: StreamedForm = "wording"
    refused_after_opening: bool = False
    strict: bool = True
