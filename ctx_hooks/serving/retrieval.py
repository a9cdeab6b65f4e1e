"""What the rounds of the hidden tool need of policy and archive."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ctx_hooks.litellm_compat import Call
from ctx_hooks.request import target

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ctx_hooks.policy.resolve import Policies
    from ctx_hooks.policy.settings import Policy
    from ctx_hooks.serving.archiving import Archiving


class Retrieval:
    """Answers the tool, and keeps what is hidden of a conversation.

    Args:
        policies: the settings, resolved for each caller.
        archiving: where texts are, and which requests are offered the tool.
    """

    def __init__(self, policies: Policies, archiving: Archiving) -> None:
        self._policies = policies
        self._archiving = archiving
        self.was_offered, self.forget = archiving.was_offered, archiving.forget
        self.answers, self.originals = archiving.answers, archiving.originals

    async def get(self, fields: Mapping[str, Any], keys: Sequence[str]) -> Mapping[str, str]:
        """Return the texts of the tenant of a request by key; those that there are, and that are read in time."""
        call = Call(fields)
        settings = self._policy(call).archive_in_use
        return {} if settings is None else await self._archiving.noted(call, settings, keys)

    async def put(self, fields: Mapping[str, Any], key: str, text: str) -> bool:
        """Store a text of the tenant of a request, and return whether it is stored."""
        call = Call(fields)
        settings = self._policy(call).archive_in_use
        return settings is not None and await self._archiving.note(call, settings, key, text)

    def _policy(self, call: Call) -> Policy:
        return target.of_group(call, self._policies, call.model_group).policy
