"""The requests of conversations that summaries are written of, and whether any are."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ctx_hooks import litellm_compat
from ctx_hooks.compaction.summary.model_written import applies_to, conversation_key, fitted

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ctx_hooks.learning.attempts import Attempt
    from ctx_hooks.policy.summary_settings import SummarySettings
    from ctx_hooks.request.request import Request
    from ctx_hooks.request.target import Target


@dataclass(frozen=True, slots=True)
class Asking:
    """A request of a conversation that summaries are written of.

    Attributes:
        request: the request as it came.
        to: where it goes.
        settings: who writes them.
        conversation: the key of the conversation.
        payer: on whose account they are.
        size_bytes: about how much memory its messages take.
    """

    request: Request
    to: Target
    settings: SummarySettings
    conversation: str
    payer: Any
    size_bytes: int

    def fitted(self, attempt: Attempt) -> Asking:
        """Return it with a longest summary for which the budget of its attempt has room."""
        if attempt.budget_tokens is None:
            return self
        return replace(self, settings=fitted(self.settings, attempt.budget_tokens))


async def asking_of(
    request: Request, to: Target, away: Callable[[Callable[[], tuple[str, int]]], Awaitable[tuple[str, int]]]
) -> Asking | None:
    """Return a request as one of a conversation that summaries are written of; None where none are.

    Raises:
        MalformedConversationError: a message that has to be read is none.
    """
    settings = to.policy.summary
    if settings is None or not applies_to(to.policy) or not to.policy.enforces:
        return None
    payer = litellm_compat.payer_of(request.call)
    if payer is None:
        return None

    def key_and_size() -> tuple[str, int]:
        return conversation_key(request.messages, to.tenant, settings), request.size_bytes

    conversation, size_bytes = await away(key_and_size)
    if not conversation:
        return None
    return Asking(request, to, settings, conversation, payer, size_bytes)
