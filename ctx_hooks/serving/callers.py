"""Whose request an event is about."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ctx_hooks import litellm_compat
from ctx_hooks.policy.caller import LONGEST_NAME_CHARS
from ctx_hooks.runtime.warnings import one_line
from ctx_hooks.telemetry.call import Call

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ctx_hooks.request.target import Target

LONGEST_CLIENT_CHARS = 60
"""Of a user agent the first product with its version, as `claude-cli/2.1.197`; what follows is platform and build."""


def call_of(fields: Mapping[str, Any], to: Target) -> Call:
    """Return whose request it is and where it goes, each name one bounded line.

    Args:
        fields: the arguments of the attempt.
        to: where it goes.
    """
    agent = litellm_compat.headers_of(fields).get("user-agent", "")
    named = {
        "request_id": to.request_id,
        "call_id": str(fields.get("litellm_call_id") or ""),
        "model_group": litellm_compat.group_of(fields),
        "deployment": to.deployment,
        "model": to.model,
        "route": litellm_compat.call_type_of(fields),
        **litellm_compat.account_of(fields)._asdict(),
    }
    client = one_line(agent.split(" ", 1)[0], LONGEST_CLIENT_CHARS)
    return Call(client=client, **{field: one_line(name, LONGEST_NAME_CHARS) for field, name in named.items()})
