"""Synchronous chat calls of the SDK: LiteLLM asks nobody before one.

`litellm.completion` and `Router.completion` run no deployment hook, pre-call rules get the text alone, and prompt management
wants a prompt's id. `litellm.responses` and `Router.responses` do run the hook: these are fitted as the asynchronous ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ctx_hooks.policy.resolve import switched_off
from ctx_hooks.runtime.warnings import warn_once

if TYPE_CHECKING:
    from collections.abc import Mapping

SYNCHRONOUS_CHAT = "completion"
"""LiteLLM's call type of a synchronous chat call; that of an asynchronous one is `acompletion`."""


def warn_of_synchronous_call(call: Mapping[str, Any]) -> None:
    """Warn once that synchronous chat calls are sent as they are. `call` is what a logger is told of a call."""
    if call.get("call_type") == SYNCHRONOUS_CHAT and not switched_off():
        warn_once(
            "ctx_hooks does not fit synchronous calls (litellm.completion, Router.completion): use acompletion or the proxy"
        )
