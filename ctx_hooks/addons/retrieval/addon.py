"""Retrieval: it archives removed texts, and a model reads them by a tool whose calls no client sees."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ctx_hooks.addons.retrieval import further_call
from ctx_hooks.addons.retrieval.archiving import Archiving
from ctx_hooks.addons.retrieval.tool_rounds import ToolRounds
from ctx_hooks.engine.engine import Decided
from ctx_hooks.serving.addons import Addon, Core, Decide, Undecided


class Retrieval(Addon):
    """The archive and the tool."""

    def __init__(self, core: Core) -> None:
        self.archiving = Archiving(core.store, core.running)
        self.rounds = ToolRounds(self.archiving, further_call.asking(core.fitted_before_choice), core.running)

    async def decided(self, undecided: Undecided, decide: Decide) -> Decided:
        """Give handles to the removed texts, and archive them."""
        request, to = undecided.request, undecided.to
        if to.policy.retrieval and not further_call.can_call_again():  # no round could follow an answer
            to = replace(to, policy=to.policy.model_copy(update={"retrieval": False}))
        to = self.archiving.named(request, to)
        decided = await decide(undecided._replace(to=to))
        self.archiving.decided(request, to, decided)
        return decided

    async def shown(self, fields: Mapping[str, Any], answer: Any, *, streamed: bool) -> Any:
        """Return an answer without the calls of the tool; it goes on with the model's text after their results."""
        return self.rounds.streamed(fields, answer) if streamed else await self.rounds.whole(fields, answer)
