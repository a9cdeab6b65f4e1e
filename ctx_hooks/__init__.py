"""ctx_hooks: conversations that fit their model's window, behind a LiteLLM proxy."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ctx_hooks.api import CompressionResult, RepairResult, compress, repair
    from ctx_hooks.hook import CtxHooks
    from ctx_hooks.overflow.recognise import Overflow, recognise_overflow
    from ctx_hooks.policy.settings import Policy
    from ctx_hooks.telemetry.events import (
        AnswerEvent,
        ArchiveEvent,
        CompactionEvent,
        DecisionEvent,
        FailureEvent,
        FaultEvent,
        IgnoredEvent,
        ItemEvent,
        LimitEvent,
        OverflowEvent,
        RejectionEvent,
        RetrievalEvent,
        StartEvent,
        SummaryEvent,
    )
    from ctx_hooks.telemetry.listeners import on

    proxy_handler_instance: CtxHooks

__all__ = [
    "AnswerEvent",
    "ArchiveEvent",
    "CompactionEvent",
    "CompressionResult",
    "DecisionEvent",
    "FailureEvent",
    "FaultEvent",
    "IgnoredEvent",
    "ItemEvent",
    "LimitEvent",
    "Overflow",
    "OverflowEvent",
    "Policy",
    "RejectionEvent",
    "RepairResult",
    "RetrievalEvent",
    "StartEvent",
    "SummaryEvent",
    "compress",
    "on",
    "proxy_handler_instance",
    "recognise_overflow",
    "repair",
]

_MODULES = {
    "ctx_hooks.api": ("CompressionResult", "RepairResult", "compress", "repair"),
    "ctx_hooks.overflow.recognise": ("Overflow", "recognise_overflow"),
    "ctx_hooks.policy.settings": ("Policy",),
    "ctx_hooks.telemetry.listeners": ("on",),
}
"""The module of each name; all other names are in `telemetry/events.py`."""


def __getattr__(name: str) -> Any:
    """Load a name on first use, so that the command line imports only what it needs.

    The callback is created when LiteLLM asks for it: the library itself does not load LiteLLM.
    """
    if name == "proxy_handler_instance":
        value: Any = import_module("ctx_hooks.hook").CtxHooks()
    elif name in __all__:
        module = next((module for module, names in _MODULES.items() if name in names), "ctx_hooks.telemetry.events")
        value = getattr(import_module(module), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value
