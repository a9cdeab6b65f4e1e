"""What a step is (a pure function), what it did, and the outcome of several; `../pipeline.py` runs them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from ctx_hooks.conversation.conversation import Conversation
from ctx_hooks.tokens.budget import Budget
from ctx_hooks.tokens.units import LocalTokens


class Step(NamedTuple):
    """A step with its name and the reason in reports; `apply` returns a smaller conversation, or the given object itself.

    A placeholder says that text was dropped. A step never breaks a provider's rule, and twice has the effect of once.
    """

    name: str
    why: str
    apply: Callable[[Conversation, Budget], Conversation]


@dataclass(frozen=True, slots=True)
class StepReport:
    """What one step did; `messages_touched` counts edited, removed and added messages."""

    name: str
    tokens_saved: int
    messages_touched: int
    why: str = ""


@dataclass(frozen=True, slots=True)
class Choice:
    """The form of the newest compaction in a request.

    Attributes:
        compaction: its digest.
        prefix: the prefix of its summary, "" for the deterministic form.
        length: how many messages of the history are compacted.
        free_tokens: the local tokens that may come before the next compaction is due; None if that one begins with this one.
    """

    compaction: str
    prefix: str
    length: int
    free_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """A compressed conversation with its figures, in local tokens of the whole request.

    Attributes:
        conversation: the compressed form; the given object itself if nothing was done.
        reason: why the goal was not met, None if it was.
        rewrites: whether it does not share its prefix with the previous request: the prompt cache has no such prefix.
        choice: the form of the newest compaction in it; None without one, and if no model writes summaries.
        offers: whether a placeholder in it says that the model can retrieve the whole removed text.
    """

    conversation: Conversation
    tokens_before: LocalTokens
    tokens_after: LocalTokens
    fits: bool
    steps: tuple[StepReport, ...]
    reason: str | None = None
    rewrites: bool = False
    choice: Choice | None = None
    offers: bool = False
