"""Named policies that come with the package: the systems it learns from, with their figures, and four of its own.

A preset states the fields in which it differs from the defaults, and no other. So it puts nothing back that a wider scope
has set. Most of the systems' figures are the defaults themselves: the descriptions in `settings.py` name whose they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

PRESETS: Mapping[str, Mapping[str, Any]] = {
    "balanced": {},  # the defaults
    "gentle": {"compaction": "gentle"},
    "off": {"mode": "off"},
    "observe": {"mode": "observe"},
    # The defaults are pi's: `reserveTokens` 16,384 and `keepRecentTokens` 20,000 of its compaction settings.
    "pi": {},
    # OpenClaw refuses to run in a window below CONTEXT_WINDOW_HARD_MIN_TOKENS (16,000), and cuts the end of a result that is
    # larger than MAX_TOOL_RESULT_CONTEXT_SHARE of it.
    "openclaw": {"block_below_tokens": 16_000, "tool_result_direction": "head"},
    # MyCodeAgent: TOOL_OUTPUT_MAX_LINES 2,000, TOOL_OUTPUT_MAX_BYTES 51,200 and TOOL_OUTPUT_TRUNCATE_DIRECTION head.
    "mycodeagent": {"tool_result_max_lines": 2_000, "tool_result_max_bytes": 51_200, "tool_result_direction": "head"},
    # nanobot's history may have the window less the output less 4,096 tokens.
    "nanobot": {"reserve_tokens": 4_096},
}
"""Each as the fields in which it differs from the defaults."""
