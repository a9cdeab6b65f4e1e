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

PRESETS: Mapping[str, Mapping[str, Any]] = {
    "balanced": {},
    "gentle": {"compaction": "gentle"},
    "off": {"mode": "off"},
    "observe": {"mode": "observe"},
}
"""Policies that come with the package: the fields in which each differs from the defaults."""
