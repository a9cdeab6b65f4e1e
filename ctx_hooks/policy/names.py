"""Names of earlier versions, each with what to write instead; and the policies that come with the package."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

SUCCESSORS: Mapping[str, tuple[str, str]] = {
    "enabled": ("mode", "off"),
    "reserve_tokens": ("reserve", "16384"),
    "reserve_fraction": ("reserve", "8%"),
    "keep_recent_tokens": ("keep_recent", "20000"),
    "keep_recent_fraction": ("keep_recent", "20%"),
    "retrieval_fraction": ("quoting", "10%"),
    "retrieval_max_tokens": ("quoting", "8000"),
    "cost_aware": ("compaction", "cost_aware"),
    "client_compaction": ("compaction", "client_first"),
    "warn_below_tokens": ("block_below_tokens", "0"),
    "tool_result_max_chars": ("tool_results", "{max_chars: 400000}"),
    "tool_result_max_lines": ("tool_results", "{max_lines: 2000}"),
    "tool_result_max_bytes": ("tool_results", "{max_bytes: 51200}"),
    "tool_result_max_fraction": ("tool_results", "{max_fraction: 0.3}"),
    "tool_result_direction": ("tool_results", "{direction: head}"),
}
"""Fields of earlier versions, each with the field that took its place and a value of that."""
REMOVED_NAMES: Mapping[str, str] = {
    **{old: f"write `{new}`, such as `{new}: {value}`" for old, (new, value) in SUCCESSORS.items()},
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

REMOVED_PRESETS = ("pi", "openclaw", "mycodeagent", "nanobot")
"""Policies of earlier versions. None of them said anything of the mode."""


PRESETS: Mapping[str, Mapping[str, Any]] = {
    "balanced": {},
    "gentle": {"compaction": "gentle"},
    "off": {"mode": "off"},
    "observe": {"mode": "observe"},
}
"""Policies that come with the package: the fields in which each differs from the defaults."""
