"""The steps that `../pipeline.py` runs, each a pure function `(Conversation, Budget) -> Conversation`."""

from collections.abc import Callable
from typing import NamedTuple

from ctx_hooks.conversation.conversation import Conversation
from ctx_hooks.tokens.budget import Budget


class Step(NamedTuple):
    """A step with its name and the reason in reports; `apply` returns a smaller conversation, or the given object itself.

    A placeholder says that text was dropped. A step never breaks a provider's rule, and twice has the effect of once.
    """

    name: str
    why: str
    apply: Callable[[Conversation, Budget], Conversation]
