"""Named policies that come with the package: the systems it learns from, with their figures, and three of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

PRESETS: Mapping[str, Mapping[str, Any]] = {
    "balanced": {},
    "gentle": {"compaction": "gentle"},
    "off": {"enabled": False},
    "openclaw": {
        "tool_result_max_fraction": 0.30,
        "tool_result_max_chars": 400_000,
        "tool_result_direction": "head",
        "warn_below_tokens": 32_000,
        "block_below_tokens": 16_000,
        "rescue_attempts": 3,
    },
    "pi": {"reserve": "fixed", "reserve_tokens": 16_384, "keep_recent_tokens": 20_000, "reserve_fraction": 0.08},
    "mycodeagent": {
        "tool_result_max_lines": 2_000,
        "tool_result_max_bytes": 51_200,
        "tool_result_direction": "head",
    },
    "nanobot": {
        "reserve_tokens": 4_096,
        "tool_result_max_fraction": 0.30,
        "tool_result_direction": "head_tail",
        "text_max_chars": 30_000,
        "reasoning": "newest_turn",
    },
}
"""Each as the fields in which it differs from the defaults; figures are those of the systems' own documentation."""
