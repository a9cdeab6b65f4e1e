"""The messages that no step may touch, and the older messages that steps may shrink or remove."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import wraps
from typing import TypeVar

from ctx_hooks.conversation.model import ELIDED, Conversation, Message, Opaque, Reasoning, is_request, prefill_of

T = TypeVar("T")
PROVIDER_SUMMARIES = ("compaction", "compaction_summary", "context_compaction")
"""Types of blocks and items that contain a compaction made by Anthropic, OpenAI or Codex."""
REFERENCE_FIELDS = frozenset({"type", "id"})
"""A Responses item with only these refers to an item that the provider stores."""


def _once(compute: Callable[[Conversation], T]) -> Callable[[Conversation], T]:
    """Return `compute` with its result cached in the (frozen) conversation, as a cached_property does it."""
    name = f"_{compute.__name__}"

    @wraps(compute)
    def remembered(conversation: Conversation) -> T:
        known = vars(conversation)
        if name not in known:
            known[name] = compute(conversation)
        found: T = known[name]
        return found

    return remembered


@_once
def protected(conversation: Conversation) -> frozenset[int]:
    """Return the messages that stay whole: system text, pinned ones, the newest request, the newest tool loop and a prefill.

    So do settled messages, a provider's own compaction, items of no known role, and what the first speaker said last.
    """
    messages = conversation.messages
    waiting = (conversation.newest_request, request_of_first_speaker(messages), prefill_of(messages))
    stay = {*conversation.newest_loop, *range(conversation.settled), *(i for i in waiting if i is not None)}
    return frozenset(stay.union(i for i, m in enumerate(messages) if stays(m)))


def request_of_first_speaker(messages: Sequence[Message]) -> int | None:
    """Return the index of the newest message of the user who speaks first, None without one.

    Multi-agent frameworks send the output of other agents as named user messages, after the question that all work on.
    """
    requests = [i for i, m in enumerate(messages) if is_request(m)]
    return next((i for i in reversed(requests) if messages[i].name in (messages[requests[0]].name, None)), None)


@_once
def newest_words(conversation: Conversation) -> int | None:
    """Return the older message with the newest user words beside tool results, None if a user spoke after it.

    Anthropic's and Google's clients put there words typed while a tool runs. The words stay; steps may cut the results.
    """
    older = older_messages(conversation)
    behind = range(len(conversation.messages) - 1, conversation.newest_request or 0, -1)
    said = (i for i in behind if (m := conversation.messages[i]).role == "user" and m.results and m.text.strip())
    return spoken if (spoken := next(said, None)) in older else None


def stays(message: Message) -> bool:
    """Whether the message stays whole at any place: system text, pinned, a provider's own, or of no known role.

    Message text never decides this: else anybody could write a message that stays for ever.
    """
    return message.role in ("system", "other") or message.pinned or replaces_history(message)


def replaces_history(message: Message) -> bool:
    """Whether it contains a provider's summary of the messages before it, which the client may have dropped.

    Anthropic: "If a later request leaves the block out, Claude gets no summary", and a signed block comes first in
    `messages`. LiteLLM keeps the blocks of a chat message in `provider_specific_fields`.
    """
    own = message.raw.get("provider_specific_fields")
    if own and isinstance(own, Mapping) and own.get("compaction_blocks"):
        return True
    opaque = [p.raw for p in message.parts if isinstance(p, Opaque) and isinstance(p.raw, Mapping)]
    return any(raw.get("type") in PROVIDER_SUMMARIES for raw in opaque)


@_once
def newest_replacement(conversation: Conversation) -> int:
    """Return the index of the newest message that replaces the history before it, -1 without one."""
    messages = conversation.messages
    return next((i for i in range(len(messages) - 1, -1, -1) if replaces_history(messages[i])), -1)


@_once
def references(conversation: Conversation) -> frozenset[int]:
    """Return the messages that refer to stored items: their exchange stays, since nobody knows what needs them."""
    pinned = ((i, m.raw) for i, m in enumerate(conversation.messages) if m.pinned)
    return frozenset(i for i, raw in pinned if raw and raw.keys() <= REFERENCE_FIELDS)


@_once
def older_exchanges(conversation: Conversation) -> tuple[range, ...]:
    """Return the exchanges without protected messages, oldest first: steps may shrink or remove them.

    An exchange with references may only shrink.
    """
    stay = protected(conversation) - references(conversation)
    return tuple(g for g in conversation.exchanges if stay.isdisjoint(g))


@_once
def older_messages(conversation: Conversation) -> frozenset[int]:
    """Return the indices of every message of the older exchanges."""
    return frozenset(i for exchange in older_exchanges(conversation) for i in exchange)


def reasoning_left(conversation: Conversation, index: int, part: Reasoning, *, is_wanted: bool) -> Reasoning | None:
    """Return what steps leave of a message's reasoning; `is_wanted`: the model wants it back, one character is enough.

    Only turns before the newest request lose any. Anthropic, with thinking enabled: "Expected `thinking` or
    `redacted_thinking`, but found `tool_use`. When `thinking` is enabled, a final `assistant` message must start with a
    thinking block". An item of reasoning (Responses) goes only with its exchange: the next item may need it.
    """
    newest = conversation.newest_request
    if newest is None or index >= newest or conversation.has_items:
        return part
    if not is_wanted or conversation.signs_parts:
        return None
    return part if part.is_signed or part.media or not part.text else replace(part, text=ELIDED)
