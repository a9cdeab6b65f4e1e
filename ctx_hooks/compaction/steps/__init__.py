"""The compression steps, one or two a file: pure functions `(Conversation, Budget) -> Conversation`.

| step | what it does |
|---|---|
| long_request | cuts sections from the middle of a newest request that takes most of the budget |
| repeats | of equal results the newest stays, of system texts the first |
| older_reasoning | drops the thinking of older turns, or elides it for a model that wants it back |
| oversized_results | keeps head, tail and error lines of huge results |
| large_newest | leaves the older exchanges half of the room beside large newest results |
| older_media | a line says what each older image, sound or file was |
| oldest_turns | keeps spans of older exchanges that later steps may name, summarises the rest |
| newest_loop | cuts inside the newest results |
"""

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
