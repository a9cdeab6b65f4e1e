"""Second names of fields, which work wherever a field can be set or named; and the policies that come with the package."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

OTHER_NAMES: Mapping[str, str] = {"enabled": "mode"}
"""`enabled: false` is `mode: off`."""
REMOVED_NAMES: Mapping[str, str] = {
    "tags": "write these policies by `keys`, `teams` or `sessions`",
    "session_header": "the header is `x-session-id`: delete this line",
    "strict": "`ctx-hooks check` exits with 1 on a mistake: run it before the proxy starts",
    "reclassify_errors": "all overflows are retried: delete this line",
    "prometheus": "metrics are written if `prometheus_client` is installed: delete this line",
    "window_holds_output": "answers and refusals show it: delete this line",
    "expected_turns": "`cost_aware` reckons with 20 requests: delete this line",
    "truncation_skip": "the flag always keeps its message whole: delete this line",
    "reader_tools": "tools that read files are known by their names: delete this line",
    "reasoning": "older turns lose their reasoning in what is compressed: delete this line",
    "stored_history": "a stored history that exceeds the window is truncated by the provider: delete this line",
    "repair": "pairing is repaired in what is compressed: delete this line",
    "text_max_chars": "a long older answer keeps its most useful parts: delete this line",
    "calibrate": "the ratio of tokens is always learned: delete this line",
    "learned_limit_floor_fraction": "it is half of the window: delete this line",
    "smooth_event_loop": "nothing takes its place: delete this line",
}
"""Fields that are gone, each with what to do."""


def current_name(name: Any) -> Any:
    """Return the name of a field by any of its names; a value that is no second name is returned unchanged."""
    return OTHER_NAMES.get(name, name) if isinstance(name, str) else name


def with_current_names(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return fields under their first names. A name beside its other one stays: `doubled` reports it."""
    return {k if current_name(k) in fields else current_name(k): v for k, v in fields.items()}


def doubled(fields: Mapping[str, Any]) -> list[str]:
    """Return a message for each field that is given under both names."""
    both = [(second, first) for second, first in OTHER_NAMES.items() if {second, first} <= fields.keys()]
    return [f"`{second}` is another name of `{first}`, which is given as well" for second, first in both]


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
"""The systems that the package learns from, with their figures, and four of its own.

A preset states the fields in which it differs from the defaults, and no other. So it puts nothing back that a wider scope
has set. Most of the systems' figures are the defaults themselves: the descriptions in `settings.py` name whose they are.
"""
