"""The response headers: what was done with a request, and what its caller asked for and may not have."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from ctx_hooks.decision import Decision, Untouched
from ctx_hooks.request import OUTPUT_FIELDS
from ctx_hooks.store.attempts import RUNNING_REQUESTS

if TYPE_CHECKING:
    from collections.abc import Sequence

DONE = "x-ctx-hooks"
IGNORED = "x-ctx-hooks-ignored"


class Headers:
    """What was decided last for each running request, in words, by LiteLLM's call id."""

    def __init__(self) -> None:
        self._words: OrderedDict[str, str] = OrderedDict()

    def note(self, call_id: str, decision: Decision) -> None:
        """Remember a decision; an untouched attempt says nothing of the one before it."""
        if isinstance(decision, Untouched):
            return
        self._words[call_id] = _words(decision)
        if len(self._words) > RUNNING_REQUESTS:
            self._words.popitem(last=False)

    def of(self, call_id: str, ignored: Sequence[str]) -> dict[str, str]:
        """Return the headers of a request; `ignored` are the wishes that its policy passed over."""
        wishes = "; ".join(line.removeprefix("request: ") for line in ignored if line.startswith("request"))
        headers = {DONE: self._words.get(call_id, "untouched")}
        return headers | ({IGNORED: wishes.encode("ascii", "replace").decode()} if wishes else {})


def _words(decision: Decision) -> str:
    words = [type(decision).__name__.lower()]
    figures = decision.figures
    if figures is not None:
        words.append(f"before={figures.tokens_before}; after={figures.tokens_after}")
    changes = {} if isinstance(decision, Untouched) else decision.changes
    words += [f"{name}={changes[name]}" for name in OUTPUT_FIELDS if name in changes]
    return "; ".join(words)
