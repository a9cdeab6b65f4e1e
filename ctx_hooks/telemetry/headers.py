"""The response headers: what was done with a request, and what its caller asked for and may not have."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from ctx_hooks.decision import Decision, NotRetried, Untouched
from ctx_hooks.learning.attempts import RUNNING_REQUESTS
from ctx_hooks.request import OUTPUT_FIELDS

if TYPE_CHECKING:
    from collections.abc import Sequence

DONE = "x-ctx-hooks"
IGNORED = "x-ctx-hooks-ignored"


class Headers:
    """The headers of each running request so far, by LiteLLM's call id."""

    def __init__(self) -> None:
        self._headers: OrderedDict[str, dict[str, str]] = OrderedDict()

    def note(self, call_id: str, decision: Decision) -> None:
        """Remember a decision; an untouched attempt says nothing of the one before it."""
        if not isinstance(decision, (Untouched, NotRetried)):
            self._set(call_id, DONE, _words(decision))

    def note_ignored(self, call_id: str, ignored: Sequence[str]) -> None:
        """Remember which of the request's own wishes its policy passed over."""
        wishes = "; ".join(line.removeprefix("request: ") for line in ignored if line.startswith("request"))
        if wishes:
            self._set(call_id, IGNORED, wishes.encode("ascii", "replace").decode())

    def of(self, call_id: str) -> dict[str, str]:
        """Return the headers of a request."""
        return {DONE: "untouched", **self._headers.get(call_id, {})}

    def _set(self, call_id: str, name: str, value: str) -> None:
        self._headers.setdefault(call_id, {})[name] = value
        if len(self._headers) > RUNNING_REQUESTS:
            self._headers.popitem(last=False)


def _words(decision: Decision) -> str:
    words = [type(decision).__name__.lower()]
    figures = decision.figures
    if figures is not None:
        words.append(f"before={figures.tokens_before}; after={figures.tokens_after}")
    changes = {} if isinstance(decision, (Untouched, NotRetried)) else decision.changes
    words += [f"{name}={changes[name]}" for name in OUTPUT_FIELDS if name in changes]
    return "; ".join(words)
