"""The input of a compaction: a conversation's unread messages, and the stats of each, known without reading it."""

from dataclasses import dataclass
from itertools import takewhile

from ctx_hooks.compaction.message_index import MessageStats, digest_of, request_points
from ctx_hooks.conversation.conversation import Conversation
from ctx_hooks.formats.reader import MessageReader
from ctx_hooks.tokens.counter import Counter
from ctx_hooks.tokens.units import LocalTokens


@dataclass(frozen=True, slots=True)
class History:
    """A conversation, the stats of its messages, and the size and digest of its preamble.

    Attributes:
        index: the stats of each message. Later messages are not part of the history.
        continues: whether the provider stores earlier messages.
        other_tokens: its tokens of other scripts, figures and base64, without their weight.
    """

    messages: MessageReader
    index: tuple[MessageStats, ...]
    preamble_tokens: LocalTokens
    preamble_digest: bytes
    continues: bool = False
    other_tokens: LocalTokens = LocalTokens(0)

    def conversation(self, counter: Counter, start: int = 0, end: int | None = None) -> Conversation:
        """Return the messages from `start` to `end`; `counter` gets their sizes from the index instead of counting."""
        conversation = self.messages.conversation(start, len(self.index) if end is None else end)
        for message, stats in zip(conversation.messages, self.index[start:], strict=False):
            counter.know(message, stats.tokens)
        return conversation

    @property
    def tokens(self) -> LocalTokens:
        """The tokens of the whole request."""
        return LocalTokens(self.preamble_tokens + sum(m.tokens for m in self.index))

    @property
    def seen_tokens(self) -> LocalTokens:
        """The tokens of the request before this one of the same conversation, 0 for the first."""
        before = request_points(self.index)[-2:-1]
        return LocalTokens(sum(self.preamble_tokens + sum(m.tokens for m in self.index[:point]) for point in before))

    @property
    def fixed_tokens(self) -> LocalTokens:
        """The tokens before the conversation, which no compaction reduces."""
        fixed = takewhile(lambda m: m.role == "system", self.index)
        return LocalTokens(self.preamble_tokens + sum(m.tokens for m in fixed))


def history_of(
    messages: MessageReader, index: tuple[MessageStats, ...], counter: Counter, *, continues: bool = False
) -> History:
    """Return the history of the messages that `index` lists, behind the preamble that the reader has."""
    preamble_tokens = LocalTokens(sum(counter.text(text) for text in messages.preamble))
    others = counter.others((), messages.preamble) + sum(m.other_tokens for m in index)
    return History(messages, index, preamble_tokens, digest_of(messages.preamble), continues, LocalTokens(others))
