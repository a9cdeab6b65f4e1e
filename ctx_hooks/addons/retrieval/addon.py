"""Retrieval: what compaction removes is archived, and a model gets it back by a tool whose calls no client sees."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ctx_hooks.addons.retrieval import further_call
from ctx_hooks.addons.retrieval.archiving import Archiving
from ctx_hooks.addons.retrieval.tool_rounds import ToolRounds
from ctx_hooks.engine.engine import Decided
from ctx_hooks.policy.settings import Policy
from ctx_hooks.request.request import Request
from ctx_hooks.request.target import Target
from ctx_hooks.serving.addons import Addon, Core, Decide, Undecided


class Retrieval(Addon):
    """The archive and the tool.

    Attributes:
        archiving: where removed texts go, and come back from.
        rounds: what answers the calls of the tool.
    """

    def __init__(self, core: Core) -> None:
        self.archiving = Archiving(core.store, core.running)
        ask_again = further_call.asking(core.fitted_before_choice)
        self.rounds = ToolRounds(self.archiving, ask_again, core.running)

    async def received(self, request: Request, policy: Policy) -> Mapping[str, Any]:
        """Return the fields with the provider's own messages for answers that hide something."""
        settings = policy.archive_in_use
        if settings is None or not policy.retrieval:
            return request.fields
        return await self.rounds.restored(request.fields, settings)

    async def decided(self, undecided: Undecided, decide: Decide) -> Decided:
        """Have what is removed named for the archive, and store it there."""
        request = undecided.request
        to = self.archiving.named(request, _taking(request, undecided.to))
        decided = await decide(undecided._replace(to=to))
        self.archiving.decided(request, to, decided)
        return decided

    async def shown(self, fields: Mapping[str, Any], answer: Any, *, streamed: bool) -> Any:
        """Return an answer without the calls of the tool, continued by what the model says once they are answered."""
        return self.rounds.streamed(fields, answer) if streamed else await self.rounds.whole(fields, answer)


def _taking(request: Request, to: Target) -> Target:
    """Return where a request goes, without retrieval where an answer cannot be sent back, as a round of the tool does."""
    comes_whole = not request.wire.has_items or further_call.takes_items_back()
    if not to.policy.retrieval or (comes_whole and further_call.can_call_again()):
        return to
    return replace(to, policy=to.policy.model_copy(update={"retrieval": False}))
