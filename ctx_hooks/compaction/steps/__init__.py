"""The compression steps, one file each: pure functions `(Conversation, Budget) -> Conversation`.

| step | costs | what it does | when |
|---|---|---|---|
| repeats | repeated results | of equal results the newest stays, of system texts the first | files read again |
| older_reasoning | thinking of older turns | drops it, or elides it for a model that wants it back | always cheap |
| oversized_results | the middle of huge results | keeps head, tail and error lines | one result floods the window |
| large_newest | the middle of large newest results | leaves the older exchanges half of the room | small budgets |
| older_media | older images, sounds and files | a line says what each was | screenshots |
| oldest_turns | lines, exchanges | keeps spans that later steps may name, summarises the rest | nothing else is enough |
| newest_loop | the newest results' middle | cuts inside them | the last attempt |

If a step drops text, a placeholder says so. A step never increases the token count and never breaks a provider's rule.
Applying it twice has the effect of once.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from ctx_hooks.conversation.model import Conversation
from ctx_hooks.tokens.budget import Budget

Apply: TypeAlias = Callable[[Conversation, Budget], Conversation]


@dataclass(frozen=True, slots=True)
class Step:
    """A named step with the reason that reports give for it.

    Attributes:
        name: its name in reports, logs and headers.
        why: one clause for readers of a report.
        apply: returns a smaller conversation, or the given object itself; it changes neither argument.

    >>> from ctx_hooks.conversation.model import Media
    >>> def without_media(conversation, budget):
    ...     return conversation.map_parts(lambda i, part: None if isinstance(part, Media) else part)
    >>> Step("no_media", "this model sees no images", without_media).name
    'no_media'
    """

    name: str
    why: str
    apply: Apply
