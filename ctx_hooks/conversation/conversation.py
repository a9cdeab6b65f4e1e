"""A frozen conversation: its inseparable exchanges, the messages that no step may touch, and the older ones."""

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

from ctx_hooks.conversation.model import ELIDED, Message, Reasoning, is_request, stays

REFERENCE_FIELDS = frozenset({"type", "id"})
"""A Responses item with only these refers to an item that the provider stores."""


@dataclass(frozen=True)
class Conversation:
    """A conversation of one format.

    Attributes:
        preamble: the texts outside the messages (system text, tools), which no step changes.
        preamble_markers: how many of these texts have a cache marker.
        settled: how many of the first messages an earlier compaction left: no step touches them.
        has_items: whether each part of a turn is an item of its own (Responses).
        signs_parts: whether signatures are on calls and texts, not on the reasoning (Google).
    """

    format: str
    messages: tuple[Message, ...]
    preamble: tuple[str, ...] = ()
    preamble_markers: int = 0
    settled: int = 0
    has_items: bool = False
    signs_parts: bool = False

    def with_messages(self, messages: tuple[Message, ...]) -> "Conversation":
        """Return this conversation with other messages; itself if the messages are the same."""
        if len(messages) == len(self.messages) and all(a is b for a, b in zip(messages, self.messages, strict=True)):
            return self
        return replace(self, messages=messages)

    @cached_property
    def exchanges(self) -> tuple[range, ...]:
        """Ranges of messages that are kept or removed together: calls with their results, and all items of an answer."""
        messages, joins_items = self.messages, self.has_items
        ends: list[int] = []
        open_calls: set[str] = set()
        for i, message in enumerate(messages):
            own, returned = {c.id for c in message.calls}, {r.call_id for r in message.results}
            results = not returned <= own or (joins_items and not own.isdisjoint(open_calls))
            continues = joins_items and i > 0 and messages[i - 1].role == message.role == "assistant"
            if i > 0 and not (results or continues or (open_calls and message.role == "assistant")):
                ends.append(i)
                open_calls = set()
            open_calls.update(own)
            open_calls -= returned
        return tuple(range(start, end) for start, end in pairwise([0, *ends, len(messages)]) if messages)

    @cached_property
    def newest_request(self) -> int | None:
        """The index of the newest message in any user's own words, None without one."""
        return next((i for i in range(len(self.messages) - 1, -1, -1) if is_request(self.messages[i])), None)

    @cached_property
    def newest_loop(self) -> range:
        """The tool loop that waits for the model's next step (the last exchange before a prefill), empty without one."""
        for exchange in reversed(self.exchanges):
            if any(self.messages[i].results or self.messages[i].calls for i in exchange):
                return exchange
            if self._prefill not in exchange:
                break
        return range(0)

    @cached_property
    def newest_words(self) -> int | None:
        """The older message with the newest user words beside tool results, which stay; None if a user spoke after it."""
        for i in range(len(self.messages) - 1, self.newest_request or 0, -1):
            message = self.messages[i]
            if message.role == "user" and message.results and message.text.strip():
                return i if i in self.older_messages else None
        return None

    @cached_property
    def protected(self) -> frozenset[int]:
        """The messages that stay whole: settled ones, those that stay anywhere, the newest loop, requests and a prefill."""
        waiting = (self.newest_request, self._request_of_first_speaker, self._prefill)
        always = (i for i, m in enumerate(self.messages) if stays(m))
        return frozenset((*self.newest_loop, *range(self.settled), *(i for i in waiting if i is not None), *always))

    @cached_property
    def references(self) -> frozenset[int]:
        """The messages that refer to stored items: their exchange stays, since nobody knows what needs them."""
        return frozenset(i for i, m in enumerate(self.messages) if m.pinned and m.raw and m.raw.keys() <= REFERENCE_FIELDS)

    @cached_property
    def older_exchanges(self) -> tuple[range, ...]:
        """The exchanges without protected messages, oldest first; one with references may only shrink."""
        stay = self.protected - self.references
        return tuple(exchange for exchange in self.exchanges if stay.isdisjoint(exchange))

    @cached_property
    def older_messages(self) -> frozenset[int]:
        """The indices of every message of the older exchanges."""
        return frozenset(i for exchange in self.older_exchanges for i in exchange)

    def reasoning_left(self, index: int, part: Reasoning, *, is_wanted: bool) -> Reasoning | None:
        """Return what steps leave of a message's reasoning; if the model wants it back (`is_wanted`), one character."""
        newest = self.newest_request
        # Anthropic: "Expected `thinking` or `redacted_thinking`, but found `tool_use`. When `thinking` is enabled, a final
        # `assistant` message must start with a thinking block". In Responses the next item may need it.
        if newest is None or index >= newest or self.has_items:
            return part
        if not is_wanted or self.signs_parts:
            return None
        return part if part.is_signed or part.media or not part.text else replace(part, text=ELIDED)

    @property
    def _prefill(self) -> int | None:
        """The index of a prefilled answer: the last message, if the assistant's and without tool calls."""
        last = self.messages[-1] if self.messages else None
        return len(self.messages) - 1 if last is not None and last.role == "assistant" and not last.calls else None

    @property
    def _request_of_first_speaker(self) -> int | None:
        """The index of the newest message of the user who speaks first, None without one: other agents are named users."""
        requests = [i for i, m in enumerate(self.messages) if is_request(m)]
        own = [i for i in requests if self.messages[i].name in (self.messages[requests[0]].name, None)]
        return own[-1] if own else None
