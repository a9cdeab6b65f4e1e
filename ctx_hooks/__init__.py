"""ctx_hooks: conversations that fit their model's window, behind a LiteLLM proxy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ctx_hooks.api import CompressionResult, RepairResult, compress, repair
from ctx_hooks.compaction.steps import Step
from ctx_hooks.overflow.recognise import Overflow, recognise_overflow
from ctx_hooks.policy.settings import Policy
from ctx_hooks.telemetry.events import (
    AnswerEvent,
    CompactionEvent,
    CompressionTimeoutEvent,
    DecisionEvent,
    LimitEvent,
    OverflowEvent,
    TruncationEvent,
)
from ctx_hooks.telemetry.listeners import on

if TYPE_CHECKING:
    from ctx_hooks.hook import CtxHooks

    proxy_handler_instance: CtxHooks

__all__ = [
    "AnswerEvent",
    "CompactionEvent",
    "CompressionResult",
    "CompressionTimeoutEvent",
    "DecisionEvent",
    "LimitEvent",
    "Overflow",
    "OverflowEvent",
    "Policy",
    "RepairResult",
    "Step",
    "TruncationEvent",
    "compress",
    "on",
    "proxy_handler_instance",
    "recognise_overflow",
    "repair",
]


def __getattr__(name: str) -> Any:
    """Make the callback when LiteLLM asks for it: the library alone does not load LiteLLM."""
    if name != "proxy_handler_instance":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from ctx_hooks.hook import CtxHooks  # noqa: PLC0415

    globals()[name] = instance = CtxHooks()
    return instance
